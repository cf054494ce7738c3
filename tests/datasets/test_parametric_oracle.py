"""The oracles of the parametric simulation agree with brute-force integration and with the paper's figures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logsumexp
from scipy.stats import norm

from eber.datasets import parametric_oracle
from eber.datasets.parametric import ParametricParameters, draw
from eber.datasets.parametric_oracle import ParametricOracle

SMALL = ParametricParameters(n=30, m_validation=6, m_test=8)


@pytest.fixture(scope="module")
def small():
    """A small draw, its oracle, and a few test rows with the extremes of the branch cue among them."""
    sample = draw(SMALL, random_state=3)
    order = np.argsort(sample.test.X[:, 2])
    return sample, ParametricOracle(SMALL, sample.centres), sample.test.X[order[[0, 40, 80, 119, 160, 200, -1]]]


def log_p_x_given_z(x, z, p=SMALL):
    """The density of the informative columns, written out from the model."""
    return (
        norm.logpdf(x[0], np.cos(z), p.sigma_phase)
        + norm.logpdf(x[1], np.sin(z), p.sigma_phase)
        + norm.logpdf(x[2], p.rho * z, p.sigma_branch)
    )


def brute_force(x, centre, sd, p=SMALL):
    """Nodes of a grid much finer and wider than the oracle's, and log p(x, z|e) at them."""
    z = np.linspace(centre - 8.5 * sd, centre + 8.5 * sd, 30_001)
    return z, log_p_x_given_z(x, z, p) + norm.logpdf(z, centre, sd) + np.log(z[1] - z[0])


def test_bayes_x_has_the_papers_figures():
    """The paper: NLL 0.233 ± 0.004, accuracy 0.934 ± 0.002, ECE 0.002 over seeds."""
    scores = []
    for seed in range(3):
        sample = draw(random_state=seed)
        proba = ParametricOracle(sample.parameters, sample.centres).bayes_x(sample.test.X)
        y = sample.test.y
        bins = np.minimum((10 * proba[:, 1]).astype(int), 9)
        ece = np.abs(np.bincount(bins, proba[:, 1] - y)).sum() / len(y)
        scores.append([-np.log(proba[np.arange(len(y)), y]).mean(), np.mean(proba.argmax(axis=1) == y), ece])
    nll, accuracy, ece = np.mean(scores, axis=0)
    assert nll == pytest.approx(0.233, abs=0.008)
    assert accuracy == pytest.approx(0.934, abs=0.004)
    assert ece < 0.005


def test_bayes_x_agrees_with_brute_force(small):
    _, oracle, X = small
    sd = np.hypot(SMALL.sigma_z, SMALL.sigma_delta)
    expected = []
    for x in X:
        parts = zip(*(brute_force(x, SMALL.Delta * b + SMALL.phi_0, sd) for b in SMALL.branches), strict=True)
        z, log_joint = map(np.concatenate, parts)
        expected.append(np.sum(np.exp(log_joint - logsumexp(log_joint)) * expit(4 * np.sin(z / 2))))
    np.testing.assert_allclose(oracle.bayes_x(X)[:, 1], expected, rtol=1e-10)
    np.testing.assert_allclose(oracle.bayes_x(X).sum(axis=1), 1, rtol=1e-12)


def test_bayes_x_agrees_with_adaptive_quadrature(small):
    """A second judge, which shares no grid: every branch integrated by itself around the seen phase."""
    _, oracle, X = small
    sd = np.hypot(SMALL.sigma_z, SMALL.sigma_delta)
    x = X[3]
    near = np.array([SMALL.Delta * b for b in SMALL.branches]) + np.arctan2(x[1], x[0])
    peak = max(log_p_x_given_z(x, z) for z in near)
    joint = np.zeros(2)
    for b, z0 in zip(SMALL.branches, near, strict=True):
        for label in (0, 1):

            def density(z, b=b, label=label):
                p_y = expit((2 * label - 1) * 4 * np.sin(z / 2))
                return np.exp(log_p_x_given_z(x, z) - peak) * norm.pdf(z, SMALL.Delta * b + SMALL.phi_0, sd) * p_y

            joint[label] += quad(density, z0 - 0.6, z0 + 0.6, epsabs=1e-14, epsrel=1e-11, limit=200)[0]
    np.testing.assert_allclose(oracle.bayes_x(x[None])[0], joint / joint.sum(), rtol=1e-8)


def test_environment_probabilities_agree_with_brute_force_even_when_tiny(small):
    """Environments several branches away have probabilities down to 1e-200, and their logarithms are right."""
    sample, oracle, X = small
    log_p_x = np.array([[logsumexp(brute_force(x, c, SMALL.sigma_z)[1]) for c in sample.centres] for x in X])
    expected = log_p_x - logsumexp(log_p_x, axis=1, keepdims=True)
    assert expected.min() < -300
    np.testing.assert_allclose(np.log(oracle.environment_proba(X)), expected, rtol=1e-8, atol=1e-10)


def test_posteriors_agree_with_brute_force_in_every_environment(small):
    """Mean and variance of p(z|x,y,e_j), for environments near and far."""
    sample, oracle, X = small
    posterior = oracle.posteriors(X)
    q = np.exp(posterior.log_q)  # (n, 2, m, W)
    z = posterior.z[posterior.index, 0]  # (m, W)
    mean = np.sum(q * z, axis=-1)
    variance = np.sum(q * (z - mean[..., None]) ** 2, axis=-1)
    for i, x in enumerate(X):
        for j, centre in enumerate(sample.centres):
            nodes, log_joint = brute_force(x, centre, SMALL.sigma_z)
            for label in (0, 1):
                log_q = log_joint - np.logaddexp(0, (1 - 2 * label) * 4 * np.sin(nodes / 2))
                expected = np.exp(log_q - logsumexp(log_q))
                expected_mean = np.sum(expected * nodes)
                assert mean[i, label, j] == pytest.approx(expected_mean, abs=1e-9)
                expected_variance = np.sum(expected * (nodes - expected_mean) ** 2)
                assert variance[i, label, j] == pytest.approx(expected_variance, rel=1e-7)


def test_posteriors_are_normalised_in_their_windows(small):
    sample, oracle, _ = small
    posterior = oracle.posteriors(sample.test.X)
    np.testing.assert_allclose(logsumexp(posterior.log_q, axis=-1), 0, atol=1e-10)
    assert np.all(np.isfinite(posterior.log_q))
    windows = posterior.z[posterior.index, 0]
    assert np.all(windows[:, 0] < sample.centres - 6 * SMALL.sigma_z + 0.02)
    assert np.all(windows[:, -1] > sample.centres + 6 * SMALL.sigma_z - 0.02)


def test_no_posterior_leans_on_the_edge_of_its_window(small):
    """Otherwise the windows would be too narrow for the rows that the simulation produces."""
    sample, oracle, _ = small
    log_q = oracle.posteriors(sample.test.X).log_q
    assert max(log_q[..., 0].max(), log_q[..., -1].max()) < -30


def test_posteriors_average_to_the_posterior_given_x(small):
    """Σ_ye p(e|x) p(y|x,e) p(z|x,y,e) = p(z|x), node by node, with p(y|x,e) and p(z|x) by brute force."""
    sample, oracle, X = small
    posterior = oracle.posteriors(X)
    z, index = posterior.z[:, 0], posterior.index
    p_e = oracle.environment_proba(X)
    for i, x in enumerate(X):
        averaged, log_p_xz = np.zeros(len(z)), np.full((len(sample.centres), len(z)), -np.inf)
        for j, centre in enumerate(sample.centres):
            p_y = expit(np.array([[-4.0], [4.0]]) * np.sin(z[index[j]] / 2))  # (2, W)
            log_joint = log_p_x_given_z(x, z[index[j]]) + norm.logpdf(z[index[j]], centre, SMALL.sigma_z)
            p_y_given_xe = p_y @ np.exp(log_joint - logsumexp(log_joint))
            averaged[index[j]] += p_e[i, j] * p_y_given_xe @ np.exp(posterior.log_q[i, :, j])
            log_p_xz[j, index[j]] = log_joint
        p_z_given_x = np.exp(logsumexp(log_p_xz, axis=0) - logsumexp(log_p_xz))
        np.testing.assert_allclose(averaged, p_z_given_x, rtol=1e-9, atol=1e-15)


def test_predictions_from_the_posteriors_are_the_bayes_rule_of_the_training_environments(small):
    """Σ_je p(e|x) p(j|x,e) E[p(y|z)|x,j,e] = p(y|x) when z comes from one of the training environments.

    p(y=1|x,e) is not assumed: it solves p = p E[p(y=1|z)|x,1,e] + (1 - p) E[p(y=1|z)|x,0,e].
    """
    sample, oracle, X = small
    posterior = oracle.posteriors(X)
    p_y1_given_z = expit(4 * np.sin(posterior.z[posterior.index, 0] / 2))
    expected_p_y1 = np.sum(np.exp(posterior.log_q) * p_y1_given_z, axis=-1)  # (n, 2, m)
    p_y1_given_xe = expected_p_y1[:, 0] / (1 + expected_p_y1[:, 0] - expected_p_y1[:, 1])
    predicted = np.sum(oracle.environment_proba(X) * p_y1_given_xe, axis=1)
    for x, proba in zip(X, predicted, strict=True):
        parts = zip(*(brute_force(x, centre, SMALL.sigma_z) for centre in sample.centres), strict=True)
        z, log_joint = map(np.concatenate, parts)
        bayes = np.sum(np.exp(log_joint - logsumexp(log_joint)) * expit(4 * np.sin(z / 2)))
        assert proba == pytest.approx(bayes, rel=1e-8)


def test_environments_that_share_a_branch_share_nodes():
    """Otherwise the decoder would be evaluated at the same z again and again."""
    p = ParametricParameters(m_train=36, n=1)
    sample = draw(p, random_state=0)
    posterior = ParametricOracle(p, sample.centres).posteriors(sample.train.X[:2])
    assert len(posterior.z) < 8 * posterior.index.shape[1]
    assert len(np.unique(posterior.z)) == len(posterior.z)


def test_working_in_blocks_changes_nothing(small, monkeypatch):
    sample, oracle, _ = small
    X = sample.test.X
    whole = oracle.bayes_x(X), oracle.environment_proba(X), oracle.posteriors(X).log_q
    monkeypatch.setattr(parametric_oracle, "BLOCK", 20_000)
    parts = oracle.bayes_x(X), oracle.environment_proba(X), oracle.posteriors(X).log_q
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(x=st.tuples(*[st.integers(-3000, 3000).map(lambda thousandths: thousandths / 1000)] * 3))
def test_oracles_are_probabilities_at_any_x_and_never_underflow(x):
    oracle = ParametricOracle(SMALL, SMALL.Delta * np.arange(-3.0, 3.0) + SMALL.phi_0)
    X = np.array([[*x, 0.0]])
    with np.errstate(all="raise"):
        for proba in (oracle.bayes_x(X), oracle.environment_proba(X)):
            assert proba.min() > 0
            assert proba.sum() == pytest.approx(1, abs=1e-12)
        assert np.all(np.isfinite(oracle.posteriors(X).log_q))


def test_noise_columns_say_nothing(small):
    _, oracle, X = small
    np.testing.assert_array_equal(oracle.bayes_x(X), oracle.bayes_x(np.hstack([X[:, :3], X[:, 3:] + 100])))


def test_too_few_columns_are_refused(small):
    _, oracle, X = small
    with pytest.raises(ValueError, match=r"shape \(7, 2\); the oracle reads x1, x2 and x3"):
        oracle.environment_proba(X[:, :2])
