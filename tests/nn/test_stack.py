"""Modules of one shape in one vector: each keeps its own numbers, gradient and norm."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from eber.nn.stack import ALIGNMENT, ModuleStack


def modules(number: int = 3) -> list[nn.Module]:
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)) for _ in range(number)]


def test_modules_keep_their_values_and_see_changes_of_the_vector() -> None:
    several = modules()
    before = [[p.detach().clone() for p in module.parameters()] for module in several]
    stack = ModuleStack(several)
    for module, values in zip(several, before, strict=True):
        for p, value in zip(module.parameters(), values, strict=True):
            torch.testing.assert_close(p.detach(), value, rtol=0, atol=0)
    stack.vector.mul_(2.0)
    torch.testing.assert_close(several[1].state_dict()["0.bias"], 2 * before[1][1])


def test_every_parameter_begins_where_the_alignment_says() -> None:
    """The rounding of a matrix product may depend on it, and a fit should not depend on its neighbours."""
    several = modules()
    stack = ModuleStack(several)
    for module in several:
        for p in module.parameters():
            assert (p.data_ptr() - stack.vector.data_ptr()) % (ALIGNMENT * p.element_size()) == 0


def test_the_gradient_of_a_module_is_the_one_it_has_alone() -> None:
    several, x = modules(), torch.randn(7, 3)
    alone = [torch.autograd.grad(module(x).square().sum(), list(module.parameters())) for module in several]
    stack = ModuleStack(several)
    stack.backward(torch.stack([module(x).square().sum() for module in several]).sum())
    for s, gradients in enumerate(alone):
        torch.testing.assert_close(stack.of_model(stack.gradient, s), torch.cat([g.reshape(-1) for g in gradients]))


def test_clipping_shortens_only_the_gradients_that_are_too_long() -> None:
    stack = ModuleStack(modules(2))
    stack.gradient.copy_(torch.where(stack.owner == 0, 10.0, 1e-4))
    before = stack.of_model(stack.gradient, 1).clone()
    stack.clip(1.0)
    assert float(stack.gradient[stack.owner == 0].norm()) == pytest.approx(1.0, rel=1e-4)
    assert torch.equal(stack.of_model(stack.gradient, 1), before)


def test_one_module_that_is_not_finite_is_told_from_the_others() -> None:
    stack = ModuleStack(modules())
    stack.vector[stack.owner == 1] = float("nan")
    assert stack.all_finite(stack.vector) == [True, False, True]


def test_modules_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="same names and shapes"):
        ModuleStack([nn.Linear(3, 2), nn.Linear(4, 2)])
