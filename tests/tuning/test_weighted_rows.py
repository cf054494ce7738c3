"""Weights of rows in searches and pools: in the fits, in what settings are judged by, and in the pool's weights."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from eber import EBERClassifier
from eber.tuning.pool import EnvironmentPool, pool_weights
from eber.tuning.search import EnvironmentSearch
from tests.tuning.test_search import CS, table

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
X, Y, E = table()
WEIGHTS = np.random.default_rng(0).integers(0, 4, size=len(Y)).astype(float)
COUNTED = WEIGHTS > 0


def test_a_search_fits_and_judges_with_weights():
    search = EnvironmentSearch(LogisticRegression(), CS).fit(X, Y, environments=E, sample_weight=WEIGHTS)
    expected = []
    for candidate in CS:
        for left_out in "ABCD":
            train, test = (left_out != E) & COUNTED, (left_out == E) & COUNTED
            fitted = LogisticRegression(**candidate).fit(X[train], Y[train], sample_weight=WEIGHTS[train])
            p = fitted.predict_proba(X[test])[np.arange(test.sum()), Y[test]]
            expected.append(np.average(-np.log(p), weights=WEIGHTS[test]))
    np.testing.assert_allclose(search.results_["nll"], expected)
    assert np.array_equal(np.isnan(search.left_out_proba_).any(1), ~COUNTED)


def test_rows_of_weight_zero_are_not_there_for_searches_and_pools():
    methods = [
        ("logistic", EnvironmentSearch(LogisticRegression(), CS)),
        ("bayes", EnvironmentSearch(GaussianNB(), [{}])),
    ]
    with_zeros = EnvironmentPool(methods).fit(X, Y, environments=E, sample_weight=WEIGHTS)
    without = EnvironmentPool(methods).fit(
        X[COUNTED], Y[COUNTED], environments=E[COUNTED], sample_weight=WEIGHTS[COUNTED]
    )
    np.testing.assert_array_equal(with_zeros.weights_, without.weights_)
    np.testing.assert_array_equal(with_zeros.predict_proba(X), without.predict_proba(X))
    again = EnvironmentPool.of_fitted(
        dict(zip(with_zeros.names_, with_zeros.searches_, strict=True)), Y, environments=E, sample_weight=WEIGHTS
    )
    np.testing.assert_array_equal(again.weights_, with_zeros.weights_)


def test_the_weights_of_a_pool_are_those_of_repeated_rows():
    rng = np.random.default_rng(1)
    p, e, counts = rng.uniform(0.05, 0.95, (60, 3)), np.repeat([0, 1, 2], 20), rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    weights = (counts * 0.1).astype(np.float64)
    np.testing.assert_allclose(pool_weights(p, e, row_weights=weights), pool_weights(p[rows], e[rows]), atol=1e-8)


def test_a_search_over_our_own_kind_hands_weights_on():
    search = EnvironmentSearch(EBERClassifier(epochs=1, random_state=0), [{}])
    weighted = search.fit(X, Y, environments=E, sample_weight=WEIGHTS).predict_proba(X)
    alone = EBERClassifier(epochs=1, random_state=0).fit(X, Y, environments=E, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(weighted, alone.predict_proba(X))


def test_a_search_over_what_takes_no_weights_is_refused():
    with pytest.raises(ValueError, match="the fit of KNeighborsClassifier has no place for them"):
        EnvironmentSearch(KNeighborsClassifier(), [{}]).fit(X, Y, environments=E, sample_weight=WEIGHTS)
