"""Gaussians and integration rules against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

from eber.method.distributions import expected_sigmoid, gauss_hermite, log_normal, soft_bound, standard_normal_draws


def test_log_normal_is_scipys_log_density() -> None:
    rng = np.random.default_rng(0)
    z, mu, log_sigma = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    expected = stats.norm(mu, np.exp(log_sigma)).logpdf(z).sum(0)
    found = log_normal(*(torch.from_numpy(a) for a in (z, mu, log_sigma)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_log_normal_keeps_float32_accuracy_when_sigma_is_small() -> None:
    """Expanded into natural parameters, the same density is off by 0.5 at sigma = 0.01."""
    z, mu, log_sigma = torch.tensor([[3.001]]), torch.tensor([[3.0]]), torch.tensor([[np.log(0.01)]])
    exact = log_normal(z.double(), mu.double(), log_sigma.double())
    assert abs(float(log_normal(z, mu, log_sigma.float()) - exact)) < 1e-3


@pytest.mark.parametrize("latent_dim", [1, 2])
def test_gauss_hermite_is_exact_for_polynomials(latent_dim: int) -> None:
    points, weights = gauss_hermite(6, latent_dim)
    assert points.shape == (latent_dim, 6**latent_dim)
    moments = {0: 1.0, 2: 1.0, 4: 3.0, 6: 15.0, 8: 105.0}
    for power, moment in moments.items():
        value = (weights * points.pow(power).prod(0)).sum()
        assert float(value) == pytest.approx(moment**latent_dim, rel=1e-12)


def test_monte_carlo_agrees_with_quadrature_within_its_error_bars() -> None:
    generator = torch.Generator().manual_seed(7)
    points, weights = standard_normal_draws(20_000, 1, generator)
    values = torch.sigmoid(1.5 * points[0] + 0.3)
    nodes, node_weights = gauss_hermite(64, 1)
    exact = (node_weights * torch.sigmoid(1.5 * nodes[0] + 0.3)).sum()
    error = float(values.std()) / np.sqrt(len(values))
    assert abs(float((weights * values).sum() - exact)) < 4 * error


@settings(max_examples=40, deadline=None)
@given(mean=st.floats(-30, 30), log_sd=st.floats(-4, 3))
def test_expected_sigmoid_is_the_integral_at_any_steepness(mean: float, log_sd: float) -> None:
    sd = np.exp(log_sd)
    kink = float(np.clip(-mean / sd, -12, 12))
    exact, _ = integrate.quad(
        lambda u: expit(mean + sd * u) * stats.norm.pdf(u), -12, 12, points=[kink], epsabs=1e-12, limit=400
    )
    found = expected_sigmoid(torch.tensor([mean], dtype=torch.float64), torch.tensor([sd**2], dtype=torch.float64))
    assert float(found) == pytest.approx(exact, abs=1e-8)


@given(st.floats(-1e4, 1e4, allow_subnormal=False))
def test_soft_bound_is_the_identity_near_zero_and_never_beyond_the_bound(value: float) -> None:
    bounded = float(soft_bound(torch.tensor(value, dtype=torch.float64), torch.tensor(5.0, dtype=torch.float64)))
    assert abs(bounded) <= 5
    assert abs(bounded) <= abs(value) * (1 + 1e-12)
    if abs(value) < 0.1:
        assert bounded == pytest.approx(value, rel=1e-3)
    assert float(soft_bound(torch.tensor(value), None)) == float(torch.tensor(value))
