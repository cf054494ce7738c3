"""The four readings of the objective against brute-force integration, and Theorem 1 as an identity."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eber.method.aggregates import Conditionals, at_label
from eber.method.distributions import gauss_hermite
from eber.method.inference import predict
from eber.method.integration import integration_rule
from eber.method.model import EBERNetworks
from eber.method.theorem import prior_discrepancy, theorem_rows, theorem_terms
from eber.objectives.base import Batch
from eber.objectives.eber import READINGS, TERMS, EBERObjective, ExpectationRule
from tests.small_networks import make_batch, make_networks

GRID = torch.linspace(-16, 16, 16_001, dtype=torch.float64)
STEP = float(GRID[1] - GRID[0])
QUADRATURE = ExpectationRule(1, 96, quadrature=True)

cases = settings(max_examples=10, deadline=None)
seeds = st.integers(0, 10_000)


class BruteForce:
    """All terms of the bound for one batch, by sums over a fine grid of z."""

    def __init__(self, module: EBERNetworks, batch: Batch) -> None:
        with torch.no_grad():
            self.c: Conditionals = module.conditionals(batch.x)
            B = len(batch.y)
            log_n = self.c.log_q_zxye(GRID[None, :, None].expand(1, -1, B))  # (S, K, m, B)
            self.q_yxe = log_n
            self.own = at_label(log_n, batch.y, 1)  # (S, m, B)
            self.q_xe = self.c.log_q_zxe(log_n)  # (S, m, B)
            self.q_xy = self.c.log_q_zxy(log_n, batch.y)  # (S, B)
            self.q_x = self.c.log_q_zx(log_n)  # (S, B)
            log_p = module.log_p_y_given_z(GRID[None])  # (K, S)
            self.log_p = log_p[batch.y].T  # (S, B)
            self.p_all = log_p.exp()
            self.r = self.c.log_p_e_given_xy(batch.y).exp()

    def expect(self, log_density: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return (log_density.exp() * values).sum(0) * STEP

    def elbo(self) -> torch.Tensor:
        """E_q(z;x,y)[log p(y|z)] - KL(q(z;x,y) || q(z;x)), (B,)."""
        return self.expect(self.q_xy, self.log_p - self.q_xy + self.q_x)

    def inner(self) -> torch.Tensor:
        """Likelihood - KL(q(z;x,y,e) || q(z;x,e)) for every environment, (m, B)."""
        return self.expect(self.own, self.log_p[:, None] - self.own + self.q_xe)

    def posterior(self) -> torch.Tensor:
        return self.expect(self.own, self.own - self.q_xy[:, None])

    def prior(self) -> torch.Tensor:
        return self.expect(self.q_xe, self.q_xe - self.q_x[:, None])


def loss_of(reading: str, module: EBERNetworks, batch: Batch, tie: float = 0.0, env: float = 0.0) -> float:
    objective = EBERObjective(reading, QUADRATURE, env_loss_weight=env, tie_weight=tie)
    return float(objective.terms(module, batch, torch.Generator())["loss"].detach())


@cases
@given(seeds)
def test_stratified_is_the_bound_itself(seed: int) -> None:
    module, batch = make_networks(seed), make_batch(seed)
    expected = -float(BruteForce(module, batch).elbo().mean())
    assert loss_of("stratified", module, batch) == pytest.approx(expected, abs=2e-4)


@cases
@given(seeds)
def test_decomposed_is_theorem_1(seed: int) -> None:
    module, batch = make_networks(seed), make_batch(seed)
    brute = BruteForce(module, batch)
    rows = torch.arange(len(batch.y))
    value = (
        brute.inner()[batch.e, rows]
        + (brute.r * brute.posterior()).sum(0)
        - (brute.c.log_p_e_given_x.exp() * brute.prior()).sum(0)
    )
    assert loss_of("decomposed", module, batch) == pytest.approx(-float(value.mean()), abs=2e-4)


@cases
@given(seeds)
def test_collapsed_is_the_observed_environments_own_bound_and_so_is_the_tie(seed: int) -> None:
    module, batch = make_networks(seed), make_batch(seed)
    own = float(BruteForce(module, batch).inner()[batch.e, torch.arange(len(batch.y))].mean())
    assert loss_of("collapsed", module, batch) == pytest.approx(-own, abs=1e-4)
    tied, untied = loss_of("stratified", module, batch, tie=0.7), loss_of("stratified", module, batch)
    assert tied - untied == pytest.approx(-0.7 * own, abs=1e-4)


@cases
@given(seeds)
def test_algorithm_reading_takes_z_from_the_observed_component_in_all_terms(seed: int) -> None:
    module, batch = make_networks(seed), make_batch(seed)
    brute = BruteForce(module, batch)
    observed = brute.own[:, batch.e, torch.arange(len(batch.y))]
    value = brute.expect(observed, brute.log_p - brute.q_xy + brute.q_x)
    assert loss_of("algorithm", module, batch) == pytest.approx(-float(value.mean()), abs=2e-4)


@cases
@given(seeds)
def test_the_bound_lies_below_the_log_likelihood(seed: int) -> None:
    """ELBO <= log p_q(y|x)."""
    module, batch = make_networks(seed), make_batch(seed)
    brute = BruteForce(module, batch)
    with torch.no_grad():
        prediction = predict(module, batch.x, gauss_hermite(96, 1))
    log_p = torch.from_numpy(prediction.p_y_given_x).log()[torch.arange(len(batch.y)), batch.y]
    assert (brute.elbo() <= log_p + 1e-9).all()


@cases
@given(seeds)
def test_prediction_is_the_integral_over_z(seed: int) -> None:
    """Equation (pred) by quadrature and in closed form, against a fine grid."""
    module, batch = make_networks(seed), make_batch(seed)
    brute = BruteForce(module, batch)
    exact = torch.einsum("ks,sb->bk", brute.p_all, brute.q_x.exp() * STEP).numpy()
    for rule in (gauss_hermite(96, 1), None):
        np.testing.assert_allclose(predict(module, batch.x, rule).p_y_given_x, exact, atol=1e-7)


def test_closed_form_equals_product_quadrature_in_two_latent_dimensions() -> None:
    module, batch = make_networks(3, L=2), make_batch(3)
    closed = predict(module, batch.x, None)
    nodes = predict(module, batch.x, gauss_hermite(48, 2))
    np.testing.assert_allclose(closed.p_y_given_xe, nodes.p_y_given_xe, atol=1e-7)
    np.testing.assert_allclose(closed.mean_z, nodes.mean_z, atol=1e-12)


def test_monte_carlo_prediction_agrees_with_quadrature_within_its_error_bars() -> None:
    module, batch = make_networks(5), make_batch(5)
    exact = predict(module, batch.x, gauss_hermite(64, 1)).p_y_given_x
    sampled = predict(module, batch.x, integration_rule(1, "monte_carlo", 4000, seed=1)).p_y_given_x
    # Each p(y|z) lies in [0, 1], so its standard deviation is at most 1/2.
    assert np.abs(exact - sampled).max() < 5 * 0.5 / math.sqrt(4000)


def test_sampled_terms_agree_with_quadrature_within_their_error_bars() -> None:
    """Mean of many one-sample losses, for every reading."""
    module, batch = make_networks(11), make_batch(11, B=3)
    generator = torch.Generator().manual_seed(2)
    for reading in READINGS:
        exact = EBERObjective(reading, QUADRATURE, 1.0).terms(module, batch, generator)
        sampled = EBERObjective(reading, ExpectationRule(1, 1), 1.0)
        draws = [sampled.terms(module, batch, generator) for _ in range(600)]
        for name in TERMS:
            values = np.array([draw[name].item() for draw in draws])
            error = values.std() / math.sqrt(len(values)) + 1e-9
            assert abs(values.mean() - exact[name].item()) < 5 * error, (reading, name)


@cases
@given(seeds, st.integers(2, 3), st.integers(1, 4))
def test_theorem_1_is_an_identity_under_the_models_own_tables(seed: int, K: int, m: int) -> None:
    """With p(x) the rows, p(e|x) = h and p(y|x,e) = f0, L = E[L_e] + R(q) at the very nodes of the rule."""
    module, batch = make_networks(seed, K=K, m=m), make_batch(seed, K=K, m=m)
    rows = theorem_rows(module, batch.x, gauss_hermite(12, 1))
    L = (rows.w.sum(2) * rows.bound_y).sum(1).mean()
    inner = (rows.w * rows.L_ye).sum((1, 2)).mean()
    posterior = (rows.w * rows.posterior_ye).sum((1, 2)).mean()
    prior = (rows.w.sum(1) * rows.prior_e).sum(1).mean()
    assert pytest.approx(inner + posterior - prior, abs=1e-12) == L


@cases
@given(seeds)
def test_point_mass_environment_weights_make_both_discrepancies_vanish(seed: int) -> None:
    """The paper's collapsed regime."""
    module, batch = make_networks(seed), make_batch(seed)
    certain = torch.full((3, len(batch.y)), -1e4, dtype=torch.float64)
    certain[1] = 0.0
    points, weights = gauss_hermite(16, 1)
    with torch.no_grad():
        c = module.conditionals(batch.x, certain)
        terms = theorem_terms(c, module, batch.y, points, weights)
        assert abs(float(terms.posterior_coupling[1].max())) < 1e-12
        assert abs(float(terms.prior_coupling[1].max())) < 1e-12
        assert abs(float(prior_discrepancy(c, points, weights)[1].max())) < 1e-12


def test_discrepancies_are_divergences() -> None:
    """Both are Kullback-Leibler divergences, so neither is negative."""
    module, batch = make_networks(2), make_batch(2)
    rows = theorem_rows(module, batch.x, gauss_hermite(64, 1))
    assert rows.posterior_ye.min() > -1e-6
    assert rows.prior_e.min() > -1e-6


def test_supplied_weights_take_the_place_of_h() -> None:
    module, batch = make_networks(4), make_batch(4)
    uniform = torch.full((3, len(batch.y)), -math.log(3), dtype=torch.float64)
    supplied = Batch(batch.x, batch.y, batch.e, uniform)
    generator = torch.Generator()
    a = EBERObjective("stratified", QUADRATURE, 0.0).terms(module, supplied, generator)["loss"]
    module.h.head.weight.data.zero_()
    module.h.head.bias.data.zero_()
    b = EBERObjective("stratified", QUADRATURE, 0.0).terms(module, batch, generator)["loss"]
    torch.testing.assert_close(a, b, rtol=1e-12, atol=0)
