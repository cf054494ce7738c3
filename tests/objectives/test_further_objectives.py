"""Nine further objectives against their definitions, written out environment by environment in float64.

Environments are of any size in a batch, and may be missing from it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor, nn
from torch.nn import functional as F

from eber.nn.networks import Classifier, build_network
from eber.nn.stack import ModuleStack
from eber.objectives.andmask import ANDMaskObjective
from eber.objectives.base import Batch, LossTerms, Objective, PenaltySchedule
from eber.objectives.coral import CORALObjective
from eber.objectives.eqrm import EQRMObjective, risk_quantile
from eber.objectives.fishr import FishrObjective
from eber.objectives.groupdro import GroupDROObjective
from eber.objectives.ib_erm import IBERMObjective
from eber.objectives.ib_irm import IBIRMObjective
from eber.objectives.iga import IGAObjective
from eber.objectives.irm import irm_penalty
from eber.objectives.mmd import GAMMAS, MMDObjective
from eber.objectives.spectral_decoupling import SDObjective
from tests.objectives.test_baseline_objectives import evaluate, make, stacked

cases = settings(max_examples=25, deadline=None)
drawn = given(st.integers(0, 9999), st.integers(1, 8), st.integers(1, 30))
WEIGHT = PenaltySchedule((7.0,))


def of_environments(module: Classifier, batch: Batch) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Representation, logits and labels of the environments present."""
    representation, logits = module(batch.x)
    return [(representation[rows], logits[rows], batch.y[rows]) for rows in (batch.e == e for e in batch.e.unique())]


def risks_of(module: Classifier, batch: Batch) -> Tensor:
    return torch.stack([F.cross_entropy(logits, y) for _, logits, y in of_environments(module, batch)])


def check(result: LossTerms, risk: Tensor, penalty: float | Tensor, rel: float = 1e-9) -> None:
    assert result.of("risk") == pytest.approx(risk.item(), rel=1e-10)
    value = penalty.item() if isinstance(penalty, Tensor) else penalty
    assert result.of("penalty") == pytest.approx(value, rel=rel, abs=1e-12)
    assert result.of("loss") == pytest.approx(risk.item() + 7 * value, rel=rel)


def mean_over_pairs(groups: list[Tensor], distance: Callable[[Tensor, Tensor], Tensor]) -> float:
    found = [float(distance(a, b)) for a, b in combinations(groups, 2)]
    return float(np.mean(found)) if found else 0.0


@cases
@given(st.integers(0, 9999), st.integers(1, 8), st.integers(1, 30))
def test_groupdro_multiplies_weights_by_the_exponential_of_risks_present(seed: int, m: int, B: int) -> None:
    module, _ = make(seed, m, B)
    objective, q = GroupDROObjective((0.3,), m), torch.ones(m, dtype=torch.float64)
    for step in range(3):
        _, batch = make(seed + step, m, B)
        present, risks = batch.e.unique(), risks_of(module, batch)
        for e, risk in zip(present, risks, strict=True):
            q[e] *= torch.exp(0.3 * risk.detach())
        q /= q.sum()
        result = evaluate(objective, module, batch, step)
        assert result.of("loss") == pytest.approx((q[present] * risks).sum().item(), rel=1e-9)
        assert result.of("risk") == pytest.approx(risks.mean().item(), rel=1e-9)


@cases
@drawn
def test_coral_compares_means_and_covariances_of_every_pair(seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    features = [r.detach() for r, _, _ in of_environments(module, batch)]
    means = mean_over_pairs(features, lambda a, b: (a.mean(0) - b.mean(0)).square().mean())
    several = [r for r in features if len(r) > 1]
    covariances = mean_over_pairs(several, lambda a, b: (a.T.cov() - b.T.cov()).square().mean())
    result = evaluate(CORALObjective(WEIGHT, m), module, batch)
    check(result, risks_of(module, batch).mean(), means + covariances)


@pytest.mark.parametrize("distances", ["expansion", "differences"])
@cases
@drawn
def test_mmd_compares_kernel_means_of_every_pair(distances: str, seed: int, m: int, B: int) -> None:
    def kernel(a: Tensor, b: Tensor) -> Tensor:
        squares = (a[:, None] - b).square().sum(2)
        return sum((torch.exp(-gamma * squares) for gamma in GAMMAS), torch.zeros_like(squares)).mean()

    module, batch = make(seed, m, B)
    features = [r.detach() for r, _, _ in of_environments(module, batch)]
    expected = mean_over_pairs(features, lambda a, b: kernel(a, a) + kernel(b, b) - 2 * kernel(a, b))
    result = evaluate(MMDObjective(WEIGHT, m, distances), module, batch)
    check(result, risks_of(module, batch).mean(), expected)


def test_mmd_by_differences_is_exact_where_the_expansion_is_not() -> None:
    """In float32, far from the origin: |u|^2 + |v|^2 - 2 u·v has nothing left of |u - v|^2 there."""
    g = torch.Generator().manual_seed(0)
    x = 100 + 0.01 * torch.randn(1, 20, 4, generator=g)
    y, e = torch.randint(0, 2, (1, 20), generator=g), torch.arange(20)[None] % 2
    penalties = {}
    for dtype in (torch.float64, torch.float32):
        network = build_network("linear", (4,), (), 2, hidden_dims=(), representation_dim=4)
        assert network.first is not None
        network.first.weight.data, network.first.bias.data = torch.eye(4), torch.zeros(4)
        stack = ModuleStack([Classifier(network.to(dtype))])
        for distances in ("expansion", "differences"):
            result = MMDObjective(WEIGHT, 2, distances)(stack, Batch(x.to(dtype), y, e), 0, [torch.Generator()])
            penalties[distances, dtype] = result.of("penalty")
    truth = penalties["differences", torch.float64]
    assert penalties["differences", torch.float32] == pytest.approx(truth, rel=1e-4)
    assert penalties["expansion", torch.float64] == pytest.approx(truth, rel=1e-4)
    assert penalties["expansion", torch.float32] != pytest.approx(truth, rel=0.1)


@cases
@drawn
def test_spectral_decoupling_is_the_mean_square_of_the_logits(seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    logits = module(batch.x)[1]
    check(evaluate(SDObjective(WEIGHT), module, batch), F.cross_entropy(logits, batch.y), logits.square().mean())


@pytest.mark.parametrize("agreement", [0.0, 0.6, 1.0])
@cases
@drawn
def test_andmask_follows_what_environments_agree_on(agreement: float, seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    parameters, risks = list(module.parameters()), risks_of(module, batch)
    by_environment = [torch.autograd.grad(risk, parameters, retain_graph=True) for risk in risks]
    expected = []
    for of_parameter in zip(*by_environment, strict=True):
        grads = torch.stack(of_parameter)
        mask = (grads.sign().mean(0).abs() >= agreement).double()
        expected.append(mask * grads.mean(0) / (1e-10 + mask.mean()))
    stack = ModuleStack([module])
    result = ANDMaskObjective((agreement,), m)(stack, stacked(batch), 0, [torch.Generator()])
    result.backward()
    assert result.of("loss") == pytest.approx(risks.mean().item(), rel=1e-10)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-8, atol=1e-12)


@cases
@drawn
def test_iga_is_the_spread_of_the_environments_gradients_and_so_is_its_own_gradient(seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    parameters, risks = list(module.parameters()), risks_of(module, batch)
    gradients = torch.stack(
        [torch.cat([g.flatten() for g in torch.autograd.grad(risk, parameters, create_graph=True)]) for risk in risks]
    )
    # With the mean gradient differentiated as well: that changes nothing.
    penalty = (gradients - gradients.mean(0)).square().sum()
    expected = torch.autograd.grad(risks.mean() + 7 * penalty, parameters)
    stack = ModuleStack([module])
    result = IGAObjective(WEIGHT, m)(stack, stacked(batch), 0, [torch.Generator()])
    result.backward()
    check(result, risks.mean(), penalty)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-7, atol=1e-10)


def bottleneck(module: Classifier, batch: Batch) -> float:
    variances = [r.var(0).mean().item() for r, _, _ in of_environments(module, batch) if len(r) > 1]
    return float(np.mean(variances)) if variances else 0.0


@cases
@drawn
def test_ib_erm_is_the_mean_variance_within_environments(seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    result = evaluate(IBERMObjective(WEIGHT, m), module, batch)
    check(result, risks_of(module, batch).mean(), bottleneck(module, batch))


@cases
@drawn
def test_ib_irm_has_both_penalties_each_with_its_weight(seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    result = evaluate(IBIRMObjective(WEIGHT, PenaltySchedule((3.0,)), m), module, batch)
    irm = irm_penalty(module(batch.x)[1][None], stacked(batch), m).item()
    assert result.of("penalty") == pytest.approx(irm, rel=1e-9, abs=1e-14)
    assert result.of("bottleneck") == pytest.approx(bottleneck(module, batch), rel=1e-9, abs=1e-14)
    expected = risks_of(module, batch).mean().item() + 7 * irm + 3 * bottleneck(module, batch)
    assert result.of("loss") == pytest.approx(expected, rel=1e-9)


def density_quantile(risks: Tensor, alpha: float) -> float:
    """The quantile of the kernel density, by scipy's root finding."""
    values = risks.detach().numpy()
    if len(values) < 2:
        return float(values[0])
    h = 1.06 * values.std(ddof=1) * len(values) ** -0.2
    return float(brentq(lambda t: norm.cdf((t - values) / h).mean() - alpha, values.min() - 9, values.max() + 9))


@pytest.mark.parametrize("gradient", ["bisection", "exact"])
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.75, 0.99])
@cases
@drawn
def test_eqrm_is_the_quantile_of_the_kernel_density(gradient: str, alpha: float, seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    result = evaluate(EQRMObjective((alpha,), m, gradient=gradient), module, batch)
    assert result.of("loss") == pytest.approx(density_quantile(risks_of(module, batch), alpha), rel=1e-7)


def test_eqrm_has_the_gradient_of_the_quantile_if_asked() -> None:
    risks = torch.tensor([[0.4, 0.9, 0.55, 0.7, 0.0]], dtype=torch.float64)
    present, alpha = (risks > 0).double(), torch.tensor([[0.8]], dtype=torch.float64)
    leaf = risks.clone().requires_grad_()
    (found,) = torch.autograd.grad(risk_quantile(leaf, present, alpha, "exact").sum(), leaf)
    for e in range(4):
        moved = [risks[0, :4] + sign * 1e-5 * F.one_hot(torch.tensor(e), 4) for sign in (1, -1)]
        slope = (density_quantile(moved[0], 0.8) - density_quantile(moved[1], 0.8)) / 2e-5
        assert float(found[0, e]) == pytest.approx(slope, rel=1e-5)
    assert float(found[0, 4]) == 0  # missing from the batch
    assert float(found.sum()) == pytest.approx(1)  # risks that all grow by one take the quantile with them


@pytest.mark.parametrize("gradient", ["bisection", "exact"])
def test_eqrm_of_equal_risks_is_their_value_with_a_finite_gradient(gradient: str) -> None:
    risks = torch.full((1, 3), 0.6, dtype=torch.float64, requires_grad=True)
    present, alpha = torch.ones(1, 3, dtype=torch.float64), torch.tensor([[0.75]], dtype=torch.float64)
    loss = risk_quantile(risks, present, alpha, gradient)
    assert loss.item() == pytest.approx(0.6, abs=1e-9)
    assert torch.isfinite(torch.autograd.grad(loss.sum(), risks)[0]).all()


def test_eqrm_is_the_mean_risk_during_its_burn_in() -> None:
    module, batch = make(3, 4, 30)
    objective = EQRMObjective((0.9,), 4, burn_in=5)
    at = [evaluate(objective, module, batch, step) for step in (4, 5)]
    assert at[0].of("loss") == at[0].of("risk")
    assert at[1].of("loss") > at[1].of("risk")


def test_fishr_smooths_exponentially_as_in_its_paper_if_asked() -> None:
    """w_t = 0.95 w_(t-1) + 0.05 v_t from zero on."""
    g = torch.Generator().manual_seed(0)
    objective, average = FishrObjective(WEIGHT, 2, moving_average="exponential"), torch.zeros(2, 5)
    for _ in range(4):
        v = torch.rand(1, 2, 5, generator=g)
        average = 0.95 * average + 0.05 * v[0]
        expected = float((average - average.mean(0)).square().mean())
        assert float(objective.penalty(torch.ones(1, 2), v)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "objective", [lambda m: ANDMaskObjective((0.6, 0.6), m), lambda m: IGAObjective(PenaltySchedule((7.0, 7.0)), m)]
)
def test_gradients_of_environments_reach_extractors_of_any_kind(objective: Callable[[int], Objective]) -> None:
    """A stack of two with a module as extractor has the gradients of the same networks without one."""

    def extractor(input_shape: tuple[int, ...], width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(input_shape[0], 5), nn.ReLU(), nn.Linear(5, width))

    found, batches, models = [], [], []
    for seed in range(2):
        builtin, batch = make(seed, 3, 12)
        custom = build_network(extractor, (4,), (), 3, hidden_dims=(), representation_dim=6).double()
        for ours, theirs in zip(custom.parameters(), builtin.network.parameters(), strict=True):
            ours.data = theirs.data.clone()
        models.append((builtin, Classifier(custom)))
        batches.append(batch)
    for kind in zip(*models, strict=True):
        stack = ModuleStack(kind)
        result = objective(3)(stack, stacked(*batches), 0, [torch.Generator()] * 2)
        result.backward()
        found.append((result.values, torch.stack([stack.of_model(stack.gradient, s) for s in range(2)])))
    torch.testing.assert_close(found[0], found[1], rtol=1e-8, atol=1e-11)
