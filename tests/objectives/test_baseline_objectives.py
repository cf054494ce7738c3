"""The baselines' penalties against their definitions, written out environment by environment."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from eber.nn.networks import Classifier, build_network
from eber.nn.stack import ModuleStack
from eber.objectives.andmask import ANDMaskObjective
from eber.objectives.base import Batch, LossTerms, Objective, PenaltySchedule, environment_averages
from eber.objectives.coral import CORALObjective
from eber.objectives.eqrm import EQRMObjective
from eber.objectives.erm import ERMObjective
from eber.objectives.fishr import FishrObjective, gradient_variances
from eber.objectives.groupdro import GroupDROObjective
from eber.objectives.ib_erm import IBERMObjective
from eber.objectives.ib_irm import IBIRMObjective
from eber.objectives.iga import IGAObjective
from eber.objectives.irm import IRMObjective, irm_penalty
from eber.objectives.mmd import MMDObjective
from eber.objectives.spectral_decoupling import SDObjective
from eber.objectives.vrex import VRExObjective

cases = settings(max_examples=25, deadline=None)


def make(seed: int, m: int, B: int, K: int = 3) -> tuple[Classifier, Batch]:
    g = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build_network("mlp", (4,), (), K, hidden_dims=(5,), representation_dim=6).double()
    x = torch.randn(B, 4, generator=g, dtype=torch.float64)
    return Classifier(network), Batch(x, torch.randint(0, K, (B,), generator=g), torch.randint(0, m, (B,), generator=g))


def stacked(*batches: Batch) -> Batch:
    """Batches of one size as the rows of models trained side by side."""
    return Batch(*(torch.stack([getattr(b, name) for b in batches]) for name in ("x", "y", "e")))


def evaluate(objective: Objective, module: Classifier, batch: Batch, step: int = 0) -> LossTerms:
    return objective(ModuleStack([module]), stacked(batch), step, [torch.Generator()])


@cases
@given(st.integers(0, 9999), st.integers(1, 8), st.integers(1, 30))
def test_irm_penalty_is_the_product_of_two_half_batch_gradients(seed: int, m: int, B: int) -> None:
    """Environments are of any size in the batch, and may be missing from it."""
    module, batch = make(seed, m, B)
    logits = module(batch.x)[1].detach()
    products = []
    for e in batch.e.unique():
        rows = batch.e == e
        if int(rows.sum()) < 2:
            continue
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        halves = []
        for start in (0, 1):
            risk = F.cross_entropy(logits[rows][start::2] * scale, batch.y[rows][start::2])
            halves.append(torch.autograd.grad(risk, scale)[0])
        products.append(halves[0] * halves[1])
    expected = float(torch.stack(products).mean()) if products else 0.0
    assert float(irm_penalty(logits[None], stacked(batch), m)) == pytest.approx(expected, abs=1e-12)


@cases
@given(st.integers(0, 9999), st.integers(1, 8), st.integers(1, 30))
def test_vrex_is_mean_plus_weighted_variance_of_the_risks_present(seed: int, m: int, B: int) -> None:
    module, batch = make(seed, m, B)
    logits = module(batch.x)[1].detach()
    risks = torch.stack([F.cross_entropy(logits[batch.e == e], batch.y[batch.e == e]) for e in batch.e.unique()])
    expected = float(risks.mean() + 7 * risks.var(correction=0))
    result = evaluate(VRExObjective(PenaltySchedule((7.0,)), m), module, batch)
    assert result.of("loss") == pytest.approx(expected, rel=1e-10)


@cases
@given(st.integers(0, 9999), st.integers(1, 6), st.integers(2, 30))
def test_fishr_variances_are_those_of_per_sample_gradients(seed: int, m: int, B: int) -> None:
    """One backward pass for each row is the definition."""
    module, batch = make(seed, m, B)
    representation, logits = (t.detach() for t in module(batch.x))
    head = nn.Linear(6, 3).double()
    head.load_state_dict(module.network.head.state_dict())
    gradients = []
    for r, label in zip(representation, batch.y, strict=True):
        loss = F.cross_entropy(head(r[None]), label[None])
        gradients.append(torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, [head.weight, head.bias])]))
    per_row = torch.stack(gradients)
    present, variances = gradient_variances(representation[None], logits[None], stacked(batch), m)
    assert present[0].tolist() == [float(count >= 2) for count in torch.bincount(batch.e, minlength=m)]
    for e in present[0].nonzero()[:, 0]:
        expected = per_row[batch.e == e].var(0, correction=0)
        torch.testing.assert_close(variances[0, e], expected, rtol=1e-8, atol=1e-12)


def test_fishr_smooths_as_a_discounted_sum() -> None:
    """w_t = v_t + 0.95 w_(t-1) for every environment, over three batches with all of them present."""
    module, _ = make(0, 2, 4)
    objective, sums, penalties = FishrObjective(PenaltySchedule((1.0,)), 2), None, []
    for seed in range(3):
        _, batch = make(seed, 2, 12)
        batch = Batch(batch.x, batch.y, torch.arange(12) % 2)
        features, logits = (t.detach()[None] for t in module(batch.x))
        _, (v,) = gradient_variances(features, logits, stacked(batch), 2)
        sums = v if sums is None else v + 0.95 * sums
        penalties.append(float((sums - sums.mean(0)).square().mean()))
        result = evaluate(objective, module, batch, seed)
        assert result.of("penalty") == pytest.approx(penalties[-1], rel=1e-9)


def test_fishr_does_not_punish_an_environment_for_having_been_absent() -> None:
    """Equal variances in every batch, but one environment is missing half of the time: still no penalty."""
    objective = FishrObjective(PenaltySchedule((1.0,)), 3)  # the third is never there
    v = torch.rand(5, dtype=torch.float64)
    for step in range(6):
        present = torch.tensor([[1.0, float(step % 2), 0.0]], dtype=torch.float64)
        penalty = objective.penalty(present, v.expand(1, 3, -1))
    assert float(penalty) == pytest.approx(0.0, abs=1e-24)


def test_environment_averages_are_within_environments() -> None:
    """An environment that is missing has no rows, no average and count zero."""
    e = torch.tensor([[3, 1, 3, 3, 0]])
    values = torch.tensor([1.0, 2.0, 3.0, 5.0, 7.0])
    average, counts = environment_averages(e, 5, torch.float32)
    torch.testing.assert_close(average[0] @ values, torch.tensor([7.0, 2.0, 0.0, 3.0, 0.0]))
    assert counts.tolist() == [[1, 1, 0, 3, 0]]


@pytest.mark.parametrize(
    ("objective", "before"),
    [
        (IRMObjective, 1.0),
        (VRExObjective, 1.0),
        (FishrObjective, 0.0),
        (CORALObjective, 0.0),
        (MMDObjective, 0.0),
        (IGAObjective, 0.0),
        (IBERMObjective, 0.0),
    ],
)
def test_penalty_has_its_initial_weight_until_annealing_ends(objective: type, before: float) -> None:
    module, batch = make(1, 3, 20)
    at = {}
    for step in (4, 5):
        result = evaluate(objective(PenaltySchedule((10.0,), anneal_steps=5, initial=before), 3), module, batch, step)
        at[step] = (result.of("loss") - result.of("risk")) / result.of("penalty")
    assert at[4] == pytest.approx(before, abs=1e-9)
    assert at[5] == pytest.approx(10.0)


METHODS: dict[str, Callable[[tuple[float, ...]], Objective]] = {
    "ERM": lambda weights: ERMObjective(),
    "IRM": lambda weights: IRMObjective(PenaltySchedule(weights), 3),
    "V-REx": lambda weights: VRExObjective(PenaltySchedule(weights), 3),
    "Fishr": lambda weights: FishrObjective(PenaltySchedule(weights), 3),
    "GroupDRO": lambda weights: GroupDROObjective(weights, 3),
    "CORAL": lambda weights: CORALObjective(PenaltySchedule(weights), 3),
    "MMD": lambda weights: MMDObjective(PenaltySchedule(weights), 3),
    "SD": lambda weights: SDObjective(PenaltySchedule(weights)),
    "ANDMask": lambda weights: ANDMaskObjective([w / 30 for w in weights], 3),
    "IGA": lambda weights: IGAObjective(PenaltySchedule(weights), 3),
    "IB-ERM": lambda weights: IBERMObjective(PenaltySchedule(weights), 3),
    "IB-IRM": lambda weights: IBIRMObjective(PenaltySchedule(weights), PenaltySchedule(weights), 3),
    "EQRM": lambda weights: EQRMObjective([w / (1 + w) for w in weights], 3),
}


@pytest.mark.parametrize("method", METHODS)
def test_models_side_by_side_have_the_terms_and_gradients_they_have_alone(method: str) -> None:
    """Each with its own weights, rows and penalty weight; two steps, for what some remember of the first."""
    models = [make(seed, 3, 12)[0] for seed in range(3)]
    batches = [[make(10 * t + seed, 3, 12)[1] for seed in range(3)] for t in range(2)]
    weights = (0.5, 2.0, 30.0)
    alone = []
    for s, module in enumerate(models):
        stack, objective = ModuleStack([module]), METHODS[method]((weights[s],))
        for t in range(2):
            stack.gradient.zero_()
            result = objective(stack, stacked(batches[t][s]), t, [torch.Generator()])
            result.backward()
        alone.append((result.values[:, 0], stack.of_model(stack.gradient, 0)))
    stack, objective = ModuleStack(models), METHODS[method](weights)
    for t in range(2):
        stack.gradient.zero_()
        result = objective(stack, stacked(*batches[t]), t, [torch.Generator()] * 3)
        result.backward()
    for s, (values, gradient) in enumerate(alone):
        torch.testing.assert_close(result.values[:, s], values, rtol=1e-10, atol=1e-14)
        torch.testing.assert_close(stack.of_model(stack.gradient, s), gradient, rtol=1e-10, atol=1e-14)
