"""The motivating example: both propositions, by simulation and against brute force."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from eber.datasets import motivating
from eber.datasets.motivating import MotivatingExample, run_motivating

EXAMPLE = MotivatingExample()
X = np.linspace(0.001, 0.999, 101)
proportions = st.lists(st.floats(0.001, 0.999), min_size=1, max_size=20).map(np.array)


def sup_error(example, p_z):
    """Largest error of p(y=1|x) over x; (...,) from (..., n)."""
    target = example.p_y_given_x(example.p_z_given_x(X, example.mu))
    return np.abs(example.p_y_given_x(p_z) - target).max(axis=-1)


def test_defaults_are_the_papers():
    assert (EXAMPLE.alpha, EXAMPLE.rho_y, EXAMPLE.a, EXAMPLE.b, EXAMPLE.mu) == (0.85, 0.1, 0.5, 0.5, 0.5)


def test_densities_integrate_to_one():
    for z in (0, 1):
        assert quad(lambda x, z=z: EXAMPLE.p_x_given_z(x)[z], 0, 1)[0] == pytest.approx(1)


@given(pi=proportions, alpha=st.floats(0.05, 0.95))
def test_conditional_weights_are_bayes_rule_and_average_to_the_closed_form(pi, alpha):
    """Σ_j p(e_j|x) f_x(π_j) = f_x(mean of π_j), with every term from p(e,x,z) summed out."""
    example = MotivatingExample(alpha=alpha)
    p_x = np.stack(example.p_x_given_z(X))  # (z, n)
    joint = np.stack([1 - pi, pi]).T[:, :, None] * p_x / len(pi)  # p(e,z,x): (m, 2, n)
    p_x_marginal = joint.sum(axis=(0, 1))
    np.testing.assert_allclose(example.p_e_given_x(X, pi).T, joint.sum(axis=1) / p_x_marginal, rtol=1e-12)
    np.testing.assert_allclose(
        example.p_z_by_conditional_weights(X, pi), joint[:, 1].sum(axis=0) / p_x_marginal, rtol=1e-11
    )


@given(pi=proportions)
def test_uniform_weights_are_the_mean_of_the_environments_posteriors(pi):
    expected = np.mean([EXAMPLE.p_z_given_x(X, p) for p in pi], axis=0)
    np.testing.assert_allclose(EXAMPLE.p_z_by_uniform_weights(X, pi), expected, rtol=1e-11)


def test_an_environment_without_the_state_counts_as_such():
    """Beta(1/2, 1/2) comes so close to 0 and 1 that draws can round to them."""
    np.testing.assert_allclose(EXAMPLE.p_z_by_uniform_weights(X, np.array([0.0, 1.0])), 0.5)


def test_larger_x_favours_environments_with_larger_pi():
    weights = EXAMPLE.p_e_given_x(np.array([0.15, 0.5, 0.85]), np.array([0.1, 0.5, 0.9]))
    assert weights[0, 0] > weights[0, 1] > weights[0, 2]
    np.testing.assert_allclose(weights[1], 1 / 3)
    assert weights[2, 0] < weights[2, 1] < weights[2, 2]


def test_the_sufficient_number_of_environments_is_the_papers_formula():
    """(0.8 · 37/3 / 0.1)² / 2 · log(2 / 0.05) = 17955.8."""
    assert EXAMPLE.sufficient_environments(0.1, 0.05) == 17956


@pytest.mark.parametrize(("epsilon", "delta"), [(0.4, 0.5), (0.3, 0.1), (0.2, 0.3), (0.1, 0.05)])
def test_proposition_1_the_stated_number_of_environments_suffices(epsilon, delta):
    m = EXAMPLE.sufficient_environments(epsilon, delta)
    rng = np.random.default_rng(0)
    mu_hat = np.array([EXAMPLE.draw_environments(m, rng).mean() for _ in range(400)])
    errors = sup_error(EXAMPLE, EXAMPLE.p_z_given_x(X, mu_hat[:, None]))
    assert np.mean(errors <= epsilon) >= 1 - delta


def test_proposition_1_is_not_met_by_too_few_environments():
    """The event in the proposition is not one that always holds."""
    rng = np.random.default_rng(0)
    mu_hat = EXAMPLE.draw_environments((400, 10), rng).mean(axis=1)
    assert np.mean(sup_error(EXAMPLE, EXAMPLE.p_z_given_x(X, mu_hat[:, None])) <= 0.05) < 0.6


@given(alpha=st.floats(0.05, 0.95), rho_y=st.floats(0.01, 0.49), pi=st.floats(0, 1))
def test_proposition_1_rests_on_a_lipschitz_bound(alpha, rho_y, pi):
    """sup_x |error of p(y=1|x)| <= (1 - 2ρ_y) κ |π - μ|."""
    example = MotivatingExample(alpha=alpha, rho_y=rho_y)
    bound = (1 - 2 * rho_y) * (1 + alpha) / (1 - alpha) * abs(pi - example.mu)
    assert sup_error(example, example.p_z_given_x(X, pi)) <= bound + 1e-12


def test_proposition_2_the_limit_agrees_with_quadrature():
    """For Beta(1/2, 1/2) the limit is √r / (1 + √r), r = p(x|z=1)/p(x|z=0); for another Beta it is integrated."""
    p_x_0, p_x_1 = EXAMPLE.p_x_given_z(X)
    root = np.sqrt(p_x_1 / p_x_0)
    limit = EXAMPLE.uniform_limit(X, 200_000, np.random.default_rng(0))
    np.testing.assert_allclose(limit, root / (1 + root), atol=4 * 0.5 / np.sqrt(200_000))

    skewed = MotivatingExample(a=2.0, b=5.0)
    limit = skewed.uniform_limit(X[[10]], 200_000, np.random.default_rng(0))[0]
    expected = quad(lambda pi: skewed.p_z_given_x(X[10], pi) * beta.pdf(pi, 2, 5), 0, 1)[0]
    assert limit == pytest.approx(expected, abs=4 * 0.2 / np.sqrt(200_000))


@pytest.mark.parametrize("x", [0.05, 0.3, 0.85])
def test_proposition_2_uniform_weights_converge_to_a_biased_limit(x):
    """At x ≠ 1/2 the limit differs from the target, and the probability of an error above any smaller ε goes to one."""
    at = np.array([x])
    target = EXAMPLE.p_z_given_x(at, EXAMPLE.mu)[0]
    ratio = np.sqrt(np.divide(*EXAMPLE.p_x_given_z(x)[::-1]))
    bias = abs(ratio / (1 + ratio) - target)
    assert bias > 0.01
    rng = np.random.default_rng(1)
    exceeded = [
        np.mean(
            [
                abs(EXAMPLE.p_z_by_uniform_weights(at, EXAMPLE.draw_environments(m, rng))[0] - target) > bias / 2
                for _ in range(100)
            ]
        )
        for m in (20, 20_000)
    ]
    assert exceeded[1] == 1
    assert exceeded[0] < 1


def test_conditional_weights_converge_at_the_root_of_m_and_uniform_weights_do_not():
    result = EXAMPLE.convergence(X, (20, 50, 100, 200, 500, 1000, 2000), 300, 100_000, np.random.default_rng(0))
    log_m = np.log(result.m)
    slope = np.polyfit(log_m, np.log(result.conditional.mean(axis=0)), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)
    p_x_0, p_x_1 = EXAMPLE.p_x_given_z(X)
    root = np.sqrt(p_x_1 / p_x_0)
    limit = sup_error(EXAMPLE, root / (1 + root))
    assert limit > 0.1
    assert result.uniform_limit == pytest.approx(limit, abs=0.003)
    # The largest of many errors about a bias lies above the bias, and approaches it at the root of m.
    excess = result.uniform.mean(axis=0) - limit
    assert excess[-1] == pytest.approx(0, abs=0.006)
    assert np.all(np.diff(excess) < 0)


def test_errors_against_m_agree_with_brute_force(monkeypatch):
    """Prefixes of one sequence of environments, in blocks smaller than the prefixes."""
    monkeypatch.setattr(motivating, "BLOCK", 7 * len(X))
    m = (3, 10, 31)
    result = EXAMPLE.convergence(X, m, 2, 10, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    for repetition in range(2):
        pi = EXAMPLE.draw_environments(31, rng)
        for j, count in enumerate(m):
            conditional = sup_error(EXAMPLE, EXAMPLE.p_z_by_conditional_weights(X, pi[:count]))
            uniform = sup_error(EXAMPLE, np.mean([EXAMPLE.p_z_given_x(X, p) for p in pi[:count]], axis=0))
            assert result.conditional[repetition, j] == pytest.approx(conditional, rel=1e-10)
            assert result.uniform[repetition, j] == pytest.approx(uniform, rel=1e-10)


def test_the_figure_is_the_same_for_the_same_seed():
    small: dict[str, Any] = {"m_convergence": (5, 10), "repetitions": 3, "draws": 100}
    first, again, other = (run_motivating(random_state=s, **small) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.convergence.uniform, again.convergence.uniform)
    np.testing.assert_array_equal(first.pi, again.pi)
    assert not np.array_equal(first.pi, other.pi)
    assert (len(first.pi), len(first.x), first.x[0], first.x[-1]) == (30, 500, 0.001, 0.999)
    assert first.weights.shape == (3, 30)


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"alpha": 1.0}, "alpha is 1.0"), ({"rho_y": 0.5}, "rho_y is 0.5"), ({"a": 0.0}, "a and b are 0.0 and 0.5")],
)
def test_impossible_parameters_are_refused_by_name(bad, message):
    with pytest.raises(ValueError, match=message):
        MotivatingExample(**bad)


def test_numbers_of_environments_must_increase():
    with pytest.raises(ValueError, match=r"m is \(50, 20\)"):
        EXAMPLE.convergence(X, (50, 20), 1, 10, np.random.default_rng(0))


def test_an_impossible_guarantee_is_refused():
    with pytest.raises(ValueError, match=r"epsilon is 0\.1 and delta 1\.5"):
        EXAMPLE.sufficient_environments(0.1, 1.5)
