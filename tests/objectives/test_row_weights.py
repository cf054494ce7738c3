"""Weighted objectives, in float64: a weight of three is three rows, a weight of zero is none, on every path.

Rows that are repeated get the same noise. IRM's two halves hold the same rows either way: copies are laid out so that
all those of a row fall into its half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import pytest
import torch
from torch import Tensor

from eber.nn.networks import Classifier, build_network
from eber.nn.stack import ModuleStack
from eber.objectives import coral, ib_erm
from eber.objectives.andmask import ANDMaskObjective
from eber.objectives.base import Batch, ModelByModel, Objective, PenaltySchedule, environment_averages
from eber.objectives.coral import CORALObjective, coral_penalty
from eber.objectives.eber import READINGS, EBERObjective, ExpectationRule
from eber.objectives.eber_supplied import SuppliedEBERObjective
from eber.objectives.eqrm import EQRMObjective
from eber.objectives.erm import ERMObjective
from eber.objectives.fishr import FishrObjective
from eber.objectives.fused.mixture_arrays import Draws
from eber.objectives.fused.objective import FusedEBERObjective
from eber.objectives.fused.sampled_mixture import Choice
from eber.objectives.groupdro import GroupDROObjective
from eber.objectives.ib_erm import IBERMObjective, bottleneck_penalty
from eber.objectives.ib_irm import IBIRMObjective
from eber.objectives.iga import IGAObjective
from eber.objectives.irm import IRMObjective
from eber.objectives.mmd import MMDObjective
from eber.objectives.spectral_decoupling import SDObjective
from eber.objectives.vrex import VRExObjective
from tests.objectives.test_hand_written_gradients import CASES
from tests.objectives.test_supplied_posteriors import Discretised
from tests.small_networks import make_networks

M = 3
WEIGHT = PenaltySchedule((7.0,))
COUNTS = torch.tensor([1, 2, 2, 1, 3, 1, 1, 3, 2, 4, 4, 2])
"""Four rows of each environment; its first and third weigh as much as its second and fourth."""
ENVIRONMENTS = torch.arange(M).repeat_interleave(4)

BASELINES: dict[str, Callable[[], Objective]] = {
    "ERM": ERMObjective,
    "SD": lambda: SDObjective(WEIGHT),
    "IRM": lambda: IRMObjective(WEIGHT, M),
    "V-REx": lambda: VRExObjective(WEIGHT, M),
    "Fishr": lambda: FishrObjective(WEIGHT, M),
    "CORAL": lambda: CORALObjective(WEIGHT, M),
    "MMD": lambda: MMDObjective(WEIGHT, M),
    "MMD, differences": lambda: MMDObjective(WEIGHT, M, "differences"),
    "GroupDRO": lambda: GroupDROObjective((0.3,), M),
    "ANDMask": lambda: ANDMaskObjective((0.6,), M),
    "IGA": lambda: IGAObjective(WEIGHT, M),
    "IB-ERM": lambda: IBERMObjective(WEIGHT, M),
    "IB-IRM": lambda: IBIRMObjective(WEIGHT, WEIGHT, M),
    "EQRM": lambda: EQRMObjective((0.8,), M),
    "EQRM, exact": lambda: EQRMObjective((0.8,), M, gradient="exact"),
}


def read_as(reading: str) -> Objective:
    """EBER's objective in a reading, by autograd."""
    return ModelByModel(EBERObjective(reading, ExpectationRule(1), 1.3, 0.6))


EBER: dict[str, Callable[[], Objective]] = {
    **{reading: partial(read_as, reading) for reading in READINGS},
    "quadrature": lambda: ModelByModel(EBERObjective("stratified", ExpectationRule(1, 6, True), 1.3, 0.6)),
    "supplied posteriors": lambda: ModelByModel(SuppliedEBERObjective(Discretised(make_networks(9)), 1.3, 0.6)),
    "by hand": lambda: FusedEBERObjective(1.3, 0.6),
    "by hand, sampled": lambda: FusedEBERObjective(1.3, 0.6, sampled=True),
}
OBJECTIVES = {**BASELINES, **EBER}


def table(seed: int) -> Batch:
    g = torch.Generator().manual_seed(seed)
    n = len(COUNTS)
    x = torch.randn(1, n, 4, generator=g, dtype=torch.float64)
    return Batch(x, torch.randint(0, 2, (1, n), generator=g), ENVIRONMENTS[None])


def weighted(batch: Batch, weight: Tensor) -> Batch:
    """With weights of mean one."""
    return Batch(batch.x, batch.y, batch.e, None, (weight / weight.double().mean())[None])


def at(batch: Batch, rows: Tensor) -> Batch:
    weight = None if batch.weight is None else batch.weight[:, rows]
    return Batch(batch.x[:, rows], batch.y[:, rows], batch.e[:, rows], None, weight)


def copies() -> Tensor:
    """Each row as often as it counts; within an environment, those of even and of odd rows in turn."""
    order: list[int] = []
    for e in range(M):
        halves = [
            [row for row in range(4 * e + half, 4 * e + 4, 2) for _ in range(int(COUNTS[row]))] for half in (0, 1)
        ]
        order += [row for pair in zip_longest(*halves) for row in pair if row is not None]
    return torch.tensor(order)


def network(objective: str, seed: int) -> torch.nn.Module:
    if objective in EBER:
        return make_networks(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Classifier(build_network("mlp", (4,), (), 2, hidden_dims=(5,), representation_dim=6).double())


def evaluate(objective: str, batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """Values and gradient at the last of a few steps; some objectives remember the earlier ones."""
    stack, made = ModuleStack([network(objective, 5)]), OBJECTIVES[objective]()
    for step, batch in enumerate(batches):
        stack.gradient.zero_()
        result = made(stack, batch, step, [torch.Generator()])
        result.backward()
    return result.values.clone(), stack.gradient.clone()


@pytest.fixture
def noise_of_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[Tensor], None]:
    """Says which rows the next batches have: a row then has its own noise wherever it stands."""
    g = torch.Generator().manual_seed(1)
    normal = torch.randn(8, 8, 8, len(COUNTS), generator=g, dtype=torch.float64)
    uniform = torch.rand(1, len(COUNTS), 2, generator=g, dtype=torch.float64)
    rows = torch.arange(len(COUNTS))

    def draw(self: ExpectationRule, shape: tuple[int, ...], like: Tensor, generator: Any) -> tuple[Tensor, Tensor]:
        if self.quadrature:
            return unpatched(self, shape, like, generator)
        leading = shape[:-1]
        noise = normal
        for _ in range(3 - len(leading)):
            noise = noise[0]
        for axis, n in enumerate(leading):
            noise = noise.narrow(axis, 0, n)
        return noise[..., rows][None, None], torch.ones(1, dtype=torch.float64)

    def fill_noise(self: Draws, generators: Any) -> None:
        _, L, C, _ = self.noise.shape
        self.noise.copy_(normal[0, :L, :C, rows][None])

    unpatched = ExpectationRule.draw
    monkeypatch.setattr(ExpectationRule, "draw", draw)
    monkeypatch.setattr(Draws, "fill_noise", fill_noise)
    monkeypatch.setattr(Choice, "fill_uniform", lambda self, generators: self.uniform.copy_(uniform[:, rows]))

    def use(wanted: Tensor) -> None:
        nonlocal rows
        rows = wanted

    return use


@pytest.fixture
def population_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Bessel's correction, which knows how many rows there are and not only how they are distributed."""
    for module in (coral, ib_erm):
        monkeypatch.setattr(module, "degrees_of_freedom", lambda counts: counts)


def assert_same(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert b.abs().max() > 1e-3
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("population_moments")
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_row_of_weight_three_is_a_row_that_is_there_three_times(objective: str, noise_of_rows: Any) -> None:
    tables = [table(0), table(1)]
    noise_of_rows(copies())
    expected = evaluate(objective, [at(batch, copies()) for batch in tables])
    noise_of_rows(torch.arange(len(COUNTS)))
    assert_same(evaluate(objective, [weighted(batch, COUNTS) for batch in tables]), expected)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_row_of_weight_zero_is_a_row_that_is_not_there(objective: str, noise_of_rows: Any) -> None:
    weight = torch.rand(len(COUNTS), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    weight[[1, 4, 5, 6, 10]] = 0  # one row of the second environment is left
    kept = weight.nonzero()[:, 0]
    tables = [table(0), table(1)]
    noise_of_rows(kept)
    expected = evaluate(objective, [weighted(at(batch, kept), weight[kept]) for batch in tables])
    noise_of_rows(torch.arange(len(COUNTS)))
    assert_same(evaluate(objective, [weighted(batch, weight) for batch in tables]), expected)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weights_of_one_are_no_weights(objective: str, noise_of_rows: Any) -> None:
    tables = [table(0), table(1)]
    values, gradient = evaluate(objective, tables)
    found_values, found_gradient = evaluate(objective, [weighted(batch, torch.ones(len(COUNTS))) for batch in tables])
    torch.testing.assert_close(found_values, values, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(found_gradient, gradient, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_models_side_by_side_have_weights_of_their_own(case: str, sampled: bool) -> None:
    """By hand, against the readable form where it has one and against fits alone where environments are drawn."""
    options: dict[str, Any] = {"K": 2, "m": 3, "L": 1, **CASES[case]}
    supplied = options.pop("supplied", False)
    m = options.get("n_observed", options["m"])
    g = torch.Generator().manual_seed(0)
    x = torch.randn(2, 9, 4, generator=g, dtype=torch.float64)
    y, e = torch.randint(0, options["K"], (2, 9), generator=g), torch.randint(0, m, (2, 9), generator=g)
    given = torch.log_softmax(torch.randn(2, options["m"], 9, generator=g, dtype=torch.float64), 1)
    weight = 2 * torch.rand(2, 9, generator=g, dtype=torch.float64)
    models = [make_networks(seed, **options) for seed in range(2)]

    def run(objective: Objective, which: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        stack, rows = ModuleStack([models[s] for s in which]), torch.tensor(which)
        part = Batch(x[rows], y[rows], e[rows], given[rows] if supplied else None, weight[rows])
        result = objective(stack, part, 0, [torch.Generator().manual_seed(s) for s in which])
        result.backward()
        return [(result.values[:, s], stack.of_model(stack.gradient, s)) for s in range(len(which))]

    fused = lambda: FusedEBERObjective(1.3, 0.6, sampled)  # noqa: E731
    readable = lambda: ModelByModel(EBERObjective("stratified", ExpectationRule(options["L"]), 1.3, 0.6))  # noqa: E731
    together = run(fused(), [0, 1])
    for s in range(2):
        (alone,) = run((fused if sampled else readable)(), [s])
        for found, expected in zip(together[s], alone, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_covariances_and_variances_are_unbiased_for_weights_of_any_scale() -> None:
    """As `torch.cov` with `aweights` has it: sum w - sum w² / sum w in the place of n - 1."""
    batch = weighted(table(0), COUNTS)
    features = torch.randn(1, len(COUNTS), 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    average, counts = environment_averages(batch.e, M, torch.float64, batch.weight)
    means, covariances = [], []
    for e in range(M):
        rows, weight = features[0, e == ENVIRONMENTS], COUNTS[e == ENVIRONMENTS].double()
        means.append((weight[:, None] * rows).sum(0) / weight.sum())
        covariances.append(torch.cov(rows.T, aweights=weight))
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = sum(
        (means[a] - means[b]).square().mean() + (covariances[a] - covariances[b]).square().mean() for a, b in pairs
    )
    assert float(coral_penalty(features, average, counts, batch.e)) == pytest.approx(float(expected) / 3, rel=1e-12)
    variance = torch.stack([covariance.diagonal().mean() for covariance in covariances]).mean()
    assert float(bottleneck_penalty(features, average, counts, batch.e)) == pytest.approx(float(variance), rel=1e-12)
