"""A few labels of a new environment, and how far off a probability may be before there are any."""

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from eber.evaluation.metrics import negative_log_likelihood
from eber.tuning.calibration import INTERCEPT_SD, SLOPE_SD, Calibration, estimate_calibration
from eber.tuning.pool import EnvironmentPool
from eber.tuning.recalibration import RecalibratedClassifier
from eber.tuning.search import EnvironmentSearch
from tests.tuning.test_search import table


def environments(m, n, slope_sd, intercept_sd, seed, centre=0.0, K=2):
    """Probabilities p and labels drawn from softmax(s log p + b) with s and b of each environment's own."""
    rng = np.random.default_rng(seed)
    p = special.softmax(1.5 * rng.normal(size=(m * n, K)), axis=1)
    e = np.repeat(np.arange(m), n)
    s, b = np.exp(centre + slope_sd * rng.normal(size=m)), intercept_sd * rng.normal(size=(m, K))
    true = special.softmax(s[e, None] * np.log(p) + b[e], axis=1)
    y = (true.cumsum(1) < rng.random((m * n, 1))).sum(1)
    return p, y, e, true


@parametrize_with_checks([RecalibratedClassifier(LogisticRegression())])
@pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("K", [2, 3])
def test_the_spread_over_environments_is_found(K):
    p, y, e, _ = environments(60, 300, 0.4, 0.8, seed=0, centre=-0.5, K=K)
    found = estimate_calibration(p, y, e)
    assert found.mean[0] == pytest.approx(-0.5, abs=0.15)
    assert np.sqrt(found.covariance[0, 0]) == pytest.approx(0.4, abs=0.12)
    # Intercepts of K classes are known up to a common shift, about which the prior is all that is known.
    assert np.sqrt(found.covariance[1, 1]) == pytest.approx(0.8, abs=0.2)
    calm = estimate_calibration(*environments(60, 300, 0.0, 0.0, seed=1, K=K)[:3])
    assert np.sqrt(calm.covariance[0, 0]) < 0.15
    assert np.sqrt(calm.covariance[1, 1]) < 0.35


@pytest.mark.parametrize("k", [0, 2])
def test_with_too_few_environments_spreads_are_the_fixed_ones(k):
    p, y, e, _ = environments(max(k, 1), 40, 0.4, 0.8, seed=0)
    known = estimate_calibration(p if k else np.full_like(p, np.nan), y, e)
    assert known.n_environments == k
    assert not known.is_measured
    np.testing.assert_allclose(np.diag(known.covariance), [SLOPE_SD**2, INTERCEPT_SD**2, INTERCEPT_SD**2])
    np.testing.assert_array_equal(known.mean, 0)


def test_where_environments_are_alike_labels_move_less_than_where_nothing_is_known():
    """Four quiet environments tell more than none: the prior for a fifth is half as wide as the fixed one, or less."""
    p, y, e, _ = environments(4, 400, 0.0, 0.0, seed=5)
    known = np.sqrt(np.diag(estimate_calibration(p, y, e).covariance))
    assert (known < [SLOPE_SD / 2, INTERCEPT_SD / 2, INTERCEPT_SD / 2]).all()


@pytest.mark.parametrize("K", [2, 4])
def test_the_posterior_is_the_mode_that_a_general_solver_finds(K):
    p, y, _, _ = environments(1, 50, 0.5, 1.0, seed=3, K=K)
    prior = Calibration(np.array([0.1] + [0.0] * K), np.diag([0.2] + [0.5] * K), 5)

    def loss(theta):
        u = np.exp(theta[0]) * np.log(p) + theta[1:]
        fit = (u[np.arange(50), y] - special.logsumexp(u, axis=1)).sum()
        return -fit + (theta - prior.mean) @ np.linalg.solve(prior.covariance, theta - prior.mean) / 2

    posterior = prior.after(p, y)
    np.testing.assert_allclose(posterior.mean, optimize.minimize(loss, prior.mean, tol=1e-10).x, atol=1e-4)
    assert posterior.n_labels == 50
    assert (np.diag(posterior.covariance) < np.diag(prior.covariance)).all()


def test_labels_help_where_environments_differ_and_more_of_them_more():
    p, y, e, _ = environments(30, 500, 0.3, 1.0, seed=4)
    prior = estimate_calibration(p[e < 20], y[e < 20], e[e < 20])
    losses = {}
    for n_labels in (0, 10, 100):
        scores = []
        for name in range(20, 30):
            rows = np.flatnonzero(e == name)
            fitted = prior.after(p[rows[:n_labels]], y[rows[:n_labels]])
            rest = rows[100:]
            scores.append(negative_log_likelihood(y[rest], fitted.apply(p[rest]), [0, 1]))
        losses[n_labels] = np.mean(scores)
    assert losses[100] < losses[10] < losses[0] - 0.02


def test_intervals_hold_new_environments_as_often_as_stated():
    """200 draws of eight environments to learn from and one new one; slopes and intercepts as assumed."""
    levels = (0.5, 0.9)
    rates, rows_in = np.empty((2, 200)), np.empty((2, 200))
    for seed in range(200):
        p, y, e, true = environments(9, 100, 0.3, 0.6, seed)
        found = estimate_calibration(p[e < 8], y[e < 8], e[e < 8])
        new = e == 8
        for i, level in enumerate(levels):
            low, high = found.rate_interval(p[new], level)
            rates[i, seed] = low[1] <= y[new].mean() <= high[1]
            low, high = found.interval(p[new], level)
            rows_in[i, seed] = np.mean((low <= true[new]) & (true[new] <= high))
    for level, of_rates, of_rows in zip(levels, rates, rows_in, strict=True):
        allowance = 3 * np.sqrt(level * (1 - level) / 200)  # and 0.05: the fallback makes spreads a little large
        assert level - allowance < of_rates.mean() < level + allowance + 0.05
        assert level - allowance < of_rows.mean() < level + allowance + 0.05


def test_intervals_contain_the_prediction_and_narrow_with_labels():
    X, y, e = table(m=6)
    model = RecalibratedClassifier(LogisticRegression()).fit(X, y, environments=e)
    adapted = model.adapt(X[e == "A"], y[e == "A"])
    widths = []
    for fitted in (model, adapted):
        (low, high), p = fitted.predict_interval(X), fitted.predict_proba(X)
        assert ((low <= p) & (p <= high)).all()
        np.testing.assert_allclose(low[:, 0], 1 - high[:, 1], atol=1e-9)
        widths.append((high - low).mean())
    assert widths[1] < widths[0]
    assert model.calibration_.n_labels == 0
    assert adapted.adapt(X[:5], y[:5]).calibration_.n_labels == 45
    assert (model.predict_interval(X, 0.5)[0] > model.predict_interval(X, 0.95)[0]).all()
    with pytest.raises(ValueError, match="level"):
        model.predict_interval(X, 1.5)
    with pytest.raises(ValueError, match="no class of the fit"):
        model.adapt(X[:2], [0, 7])


def test_a_pool_that_is_fitted_already_is_recalibrated_and_saved(tmp_path):
    X, y, e = table(m=5)
    methods = [("weak", EnvironmentSearch(LogisticRegression(), [{"C": 0.01}])), ("strong", LogisticRegression())]
    pool = EnvironmentPool(methods).fit(X, y, environments=e)
    model = RecalibratedClassifier.of_fitted(pool, y, environments=e)
    again = RecalibratedClassifier(EnvironmentPool(methods)).fit(X, y, environments=e)
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X), atol=1e-9)
    adapted = model.adapt(X[:20], y[:20])
    adapted.save(tmp_path)
    loaded = RecalibratedClassifier.load(tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(X), adapted.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(loaded.predict_interval(X), adapted.predict_interval(X), rtol=0, atol=1e-12)
