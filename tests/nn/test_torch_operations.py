"""Where torch has not the operation that it does not promise, public ones give the same to the bit."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import eber
from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.nn import context_blocks, stacked_layers, torch_operations
from eber.nn.torch_operations import add_relu, add_then_relu, masked_gradient, operation, threshold_backward
from eber.objectives.fused import exact_mixture, networks

SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-40])


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal to the bit, but for the kind of NaN."""
    bits = a.view(torch.int32) == b.view(torch.int32)
    return bool((bits | (a.isnan() & b.isnan())).all())


def test_what_torch_has_is_used_and_what_it_has_not_is_replaced() -> None:
    assert operation("_add_relu", "out", add_then_relu) is torch.ops.aten._add_relu.out
    assert operation("no_such_operation", "out", add_then_relu) is add_then_relu
    assert operation("_add_relu", "no_such_overload", add_then_relu) is add_then_relu


def test_the_replacements_give_the_same_to_the_bit() -> None:
    a, b = SPECIAL[:, None].expand(8, 8).contiguous(), SPECIAL.expand(8, 8).contiguous()
    assert same(add_relu(a, b, out=torch.empty(8, 8)), add_then_relu(a, b, out=torch.empty(8, 8)))
    one, other = a.clone(), a.clone()  # in place, as layers do it
    threshold_backward(one, b, 0, grad_input=one)
    masked_gradient(other, b, 0, grad_input=other)
    assert same(one, other)


def test_the_other_gradients_are_those_of_autograd() -> None:
    """Of what torch has and of what takes its place, in float64."""
    generator = torch.Generator().manual_seed(0)
    x, g = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    x.requires_grad_()
    cases = (
        (torch.sigmoid(x), ("sigmoid_backward", "gradient_through_sigmoid"), (), "grad_input"),
        (torch.log_softmax(x, 1), ("log_softmax_backward", "gradient_through_log_softmax"), (1, x.dtype), "out"),
        (torch.softmax(x, 1), ("softmax_backward", "gradient_through_softmax"), (1, x.dtype), "grad_input"),
    )
    for y, names, rest, out in cases:
        (expected,) = torch.autograd.grad(y, x, g)
        for name in names:
            found = torch.empty_like(g)
            getattr(torch_operations, name)(g, y.detach(), *rest, **{out: found})
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


REPLACED = (
    (context_blocks, "add_relu", "add_then_relu"),
    (stacked_layers, "threshold_backward", "masked_gradient"),
    (networks, "sigmoid_backward", "gradient_through_sigmoid"),
    (networks, "log_softmax_backward", "gradient_through_log_softmax"),
    (exact_mixture, "softmax_backward", "gradient_through_softmax"),
)


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_a_fit_without_them_is_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """To what float32 rounds off in sums over environments and labels."""
    rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1), random_state=0).train
    called = set()

    def noted(name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            called.add(name)
            return getattr(torch_operations, name)(*given, **named)

        return call

    def fit() -> NDArray[np.float64]:
        classifier = EBERClassifier(hidden_dims=(16, 8), epochs=2, random_state=0)
        return classifier.fit(rows.X, rows.y, environments=rows.environments).predict_proba(rows.X)

    usual = fit()
    for module, name, instead in REPLACED:
        monkeypatch.setattr(module, name, noted(instead))
    np.testing.assert_allclose(fit(), usual, rtol=0, atol=1e-6)
    assert called == {instead for _, _, instead in REPLACED}


def test_no_other_file_uses_an_operation_that_torch_does_not_promise() -> None:
    """Names of torch that begin with an underscore, and torch.ops."""
    home = Path(torch_operations.__file__)
    for path in Path(eber.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
                assert path == home or not (node.attr.startswith("_") or node.attr == "ops"), f"{path}:{node.lineno}"
