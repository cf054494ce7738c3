"""A pool weighs methods by what they say about environments that they have not seen."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from eber import ERMClassifier
from eber.tuning.grids import default_candidates
from eber.tuning.pool import EnvironmentPool, default_methods, pool_weights
from eber.tuning.search import EnvironmentSearch
from tests.tuning.test_search import table

METHODS = [
    ("logistic", EnvironmentSearch(LogisticRegression(), [{"C": 1.0}])),
    ("bayes", EnvironmentSearch(GaussianNB(), [{}])),
]
NOT_BY_FOLDS = {
    "check_sample_weight_equivalence_on_dense_data": "without environments rows are left out to weigh methods by, and "
    "others of a table with repeated rows"
}


@parametrize_with_checks([EnvironmentPool(METHODS)], expected_failed_checks=lambda estimator: NOT_BY_FOLDS)
@pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
def test_the_weights_are_the_best_of_all_as_a_general_solver_finds_them(seed):
    rng = np.random.default_rng(seed)
    p, e = rng.uniform(0.05, 0.95, size=(90, 3)) ** [0.5, 1, 2], np.repeat([0, 1, 2], [20, 30, 40])

    def objective(w):
        return -sum(np.log(p[e == i] @ w).mean() for i in range(3)) - np.log(w).mean()

    found = optimize.minimize(
        objective,
        np.full(3, 1 / 3),
        method="SLSQP",
        bounds=[(1e-9, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    weights = pool_weights(p, e, equal_environments=1.0)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights, found.x, atol=1e-4)


def test_without_evidence_weights_are_equal_and_with_it_the_better_has_more():
    rng = np.random.default_rng(0)
    same = rng.uniform(0.2, 0.9, size=(60, 1))
    e = np.repeat(range(6), 10)
    np.testing.assert_allclose(pool_weights(np.hstack([same, same]), e), 0.5)
    better = pool_weights(np.hstack([same, 0.5 * same]), e)
    assert better[0] > 0.8
    assert pool_weights(np.hstack([same, 0.5 * same]), e, equal_environments=100.0)[0] < better[0]


def test_every_environment_counts_once_however_many_rows_it_has():
    p = np.array([[0.9, 0.1]] * 100 + [[0.1, 0.9]])
    np.testing.assert_allclose(pool_weights(p, np.array([0] * 100 + [1])), 0.5)


def test_weights_rest_on_left_out_environments_and_not_on_the_fit():
    """A tree that knows every training row by heart and is wrong elsewhere gets little."""
    X, y, e = table(m=6)
    memory = EnvironmentSearch(DecisionTreeClassifier(random_state=0), [{}])
    pool = EnvironmentPool([("memory", memory), METHODS[0]]).fit(X, y, environments=e)
    assert memory.estimator.fit(X, y).score(X, y) == 1
    assert pool.weights_[0] < 0.25
    members = [search.predict_proba(X) for search in pool.searches_]
    np.testing.assert_allclose(pool.predict_proba(X), np.einsum("j,jnk->nk", pool.weights_, members))
    np.testing.assert_allclose(pool.left_out_proba_.sum(1), 1)


def test_a_pool_of_fitted_searches_is_the_pool_that_fits_them():
    X, y, e = table()
    fitted = {name: clone(search).fit(X, y, environments=e) for name, search in METHODS}
    pool = EnvironmentPool(METHODS).fit(X, y, environments=e)
    np.testing.assert_allclose(
        EnvironmentPool.of_fitted(fitted, y, environments=e).predict_proba(X), pool.predict_proba(X)
    )


def test_it_says_who_weighs_what():
    X, y, e = table()
    pool = EnvironmentPool([*METHODS, ("nobody", EnvironmentSearch(DummyClassifier(), [{}]))])
    shown = pool.fit(X, y, environments=e).explain_weights()
    assert shown.index.tolist() == ["logistic", "bayes", "nobody"] == pool.names_
    assert shown["weight"].sum() == pytest.approx(1)
    assert shown["settings"]["logistic"] == [{"C": 1.0}]
    assert shown["best_left_out_nll"]["nobody"] == pytest.approx(np.log(2), abs=0.2)


def test_a_method_is_searched_over_its_default_settings_and_parameters_are_reached_by_name():
    X, y, e = table()
    pool = EnvironmentPool([("erm", ERMClassifier(epochs=1, random_state=0)), METHODS[0]])
    pool.set_params(erm__epochs=2)
    pool.fit(X, y, environments=e)
    assert len(pd.DataFrame(pool.searches_[0].results_)["candidate"].unique()) == len(
        default_candidates(ERMClassifier())
    )
    assert pool.searches_[0].estimator.epochs == 2
    assert clone(pool).get_params()["erm__epochs"] == 2
    with pytest.raises(ValueError, match="not unique"):
        EnvironmentPool([METHODS[0], METHODS[0]]).fit(X, y, environments=e)


def test_the_default_pool_has_eber_and_its_rivals():
    assert [name for name, _ in default_methods(0)] == [
        "EBER", "Logistic regression", "Gradient boosting", "Random forest",
    ]  # fmt: skip
