"""Every backward pass that is written by hand, against autograd and finite differences."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from eber.conditional_mlp import ConditionalMLP, MLPLayout
from eber.networks import build_network
from eber.objectives.base import Batch
from eber.objectives.eber import TERMS, EBERObjective, ExpectationRule
from eber.objectives.eber_fused import FusedEBERObjective
from tests.mathematics.conftest import make_batch, make_networks


def by_concatenation(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What a conditional network means: plain layers on [x; one-hot contexts], one combination at a time."""
    out = []
    for combination in product(*(range(size) for size in network.contexts)):
        features = x if network.extractor is None else network.extractor(x)
        one_hot = [
            F.one_hot(torch.tensor(c), size).to(x).expand(len(x), -1)
            for c, size in zip(combination, network.contexts, strict=True)
        ]
        inputs = torch.cat([features, *one_hot], 1)
        weight = torch.cat([network.first.weight, *network.tables], 1)
        hidden = inputs @ weight.T + network.first.bias
        layers = list(network.layers)
        last = layers.pop() if network.linear_representation and layers else None
        if not (network.linear_representation and last is None):
            hidden = hidden.relu()
        for layer in layers:
            hidden = layer(hidden).relu()
        out.append(network.head(hidden if last is None else last(hidden)).T)
    return torch.stack(out, 1).view(-1, *network.contexts, len(x))


@pytest.mark.parametrize("featurizer", ["linear", "mlp", lambda shape, R: nn.Linear(shape[0], R)])
@pytest.mark.parametrize("contexts", [(3,), (2, 3)])
@pytest.mark.parametrize("hidden_dims", [(5,), (5, 4, 3)])
def test_conditional_network_means_plain_layers_on_the_concatenation(
    featurizer: object, contexts: tuple[int, ...], hidden_dims: tuple[int, ...]
) -> None:
    network = build_network(
        featurizer,  # type: ignore[arg-type]
        (4,),
        contexts,
        2,
        hidden_dims=hidden_dims,
        representation_dim=6,
    ).double()
    x = torch.randn(7, 4, dtype=torch.float64)
    expected = by_concatenation(network, x)
    torch.testing.assert_close(network(x), expected)
    upstream = torch.randn_like(expected)
    found = torch.autograd.grad((network(x) * upstream).sum(), list(network.parameters()))
    wanted = torch.autograd.grad((expected * upstream).sum(), list(network.parameters()))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("linear_representation", [True, False])
@pytest.mark.parametrize("contexts", [(), (3,), (2, 3)])
def test_conditional_mlp_passes_gradcheck(contexts: tuple[int, ...], linear_representation: bool) -> None:
    g = torch.Generator().manual_seed(1)

    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64, requires_grad=True)

    layout = MLPLayout(len(contexts), linear_representation)
    parameters = [leaf(4, 3), leaf(4), *(leaf(4, size) for size in contexts), leaf(5, 4), leaf(5), leaf(2, 5), leaf(2)]
    assert torch.autograd.gradcheck(ConditionalMLP.apply, (leaf(6, 3), layout, *parameters))


CASES = {
    "default": {},
    "three classes, two dimensions, deep decoder": {"K": 3, "L": 2, "decoder_hidden_dims": (4,)},
    "no bounds": {"latent_bounds": None},
    "many environments": {"m": 9},
    "one environment": {"m": 1},
    "linear featurizer": {"featurizer": "linear", "L": 3},
    "supplied weights": {"supplied": True},
    "module featurizer": {"featurizer": lambda shape, R: nn.Sequential(nn.Linear(shape[0], R), nn.Tanh())},
}


@pytest.mark.parametrize("case", CASES)
def test_fused_objective_equals_the_readable_one_in_value_terms_and_gradient(case: str) -> None:
    options = {"K": 2, "m": 3, "L": 1, **CASES[case]}
    supplied = options.pop("supplied", False)
    module = make_networks(6, **options)  # type: ignore[arg-type]
    batch = make_batch(6, K=options["K"], m=options["m"], B=9)  # type: ignore[arg-type]
    if supplied:
        batch = Batch(batch.x, batch.y, batch.e, torch.log_softmax(torch.randn(3, 9, dtype=torch.float64), 0))
    results = []
    for objective in (
        EBERObjective("stratified", ExpectationRule(options["L"]), 1.3, 0.6),  # type: ignore[arg-type]
        FusedEBERObjective(1.3, 0.6),
    ):
        for p in module.parameters():
            p.grad = torch.zeros_like(p)
        result = objective(module, batch, 0, torch.Generator().manual_seed(3))
        result.backward()
        results.append((result, [p.grad.clone() for p in module.parameters() if p.grad is not None]))
    (readable, wanted), (fused, found) = results
    assert fused.loss == pytest.approx(readable.loss, rel=1e-12)
    for name in TERMS:
        assert fused.terms[name] == pytest.approx(readable.terms[name], rel=1e-9, abs=1e-12), name
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_fused_gradient_is_the_slope_of_the_fused_loss() -> None:
    """Finite differences, independent of autograd and of the readable form."""
    module, batch = make_networks(8), make_batch(8)
    objective = FusedEBERObjective(1.0, 0.5)

    def loss() -> float:
        return objective(module, batch, 0, torch.Generator().manual_seed(4)).loss

    for p in module.parameters():
        p.grad = torch.zeros_like(p)
    objective(module, batch, 0, torch.Generator().manual_seed(4)).backward()
    step = 1e-6
    for p in module.parameters():
        flat, gradient = p.data.view(-1), p.grad.view(-1)  # type: ignore[union-attr]
        for i in range(0, len(flat), max(1, len(flat) // 3)):
            value = float(flat[i])
            flat[i] = value + step
            up = loss()
            flat[i] = value - step
            down = loss()
            flat[i] = value
            assert float(gradient[i]) == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-7)
