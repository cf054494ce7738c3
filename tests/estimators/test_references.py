"""Forests and boosted trees: labels of any kind, early stopping, and a sentence where a package is missing."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from eber.estimators.references import (
    StoppedEarly,
    gradient_boosting_early_stopping,
    lightgbm_classifier,
    random_forest,
    xgboost_classifier,
)

EXTRAS = {"xgboost": xgboost_classifier, "lightgbm": lightgbm_classifier}


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["pulse", "lactate", "age"])
    score = X["pulse"] + 0.5 * rng.normal(size=n)
    return X, np.select([score < -0.5, score < 0.5], ["grave", "ill"], "well")


def check(make):
    X, y = table()
    model = make(random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    assert list(model.classes_) == ["grave", "ill", "well"]
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-5)
    new, truth = table(seed=1)
    assert np.mean(model.predict(new) == truth) > 0.6
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), proba)
    return model


def test_a_forest_rules_labels_out_far_less_often_than_with_leaves_of_one_row():
    model, (X, y), (new, _) = check(random_forest), table(), table(4000, seed=2)
    default = clone(model).set_params(min_samples_leaf=1).fit(X, y)
    ruled_out = [np.mean(forest.predict_proba(new) == 0) for forest in (model, default)]
    assert ruled_out[0] < 0.5 * ruled_out[1]


def test_boosting_stops_when_held_out_rows_gain_no_more():
    assert check(gradient_boosting_early_stopping).n_iter_ < 200


@pytest.mark.parametrize("name", EXTRAS)
def test_extras_take_labels_that_are_text_and_stop_early(name):
    pytest.importorskip(name)
    boosting = check(EXTRAS[name]).boosting_
    assert (boosting.best_iteration if name == "xgboost" else boosting.best_iteration_) < 200


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_that_is_missing_is_named_with_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"is not installed.*pip install 'eber\[boosting\]'"):
        EXTRAS[name]()


class Recorder:
    """A boosting that notes what it is given."""

    def get_params(self, deep=False):
        return {}

    def fit(self, X, y, eval_set):
        self.seen = len(X), len(eval_set[0][0]), np.unique(y).tolist()
        return self


@pytest.mark.parametrize(("counts", "held_out"), [((90, 10), 10), ((5, 2), 2), ((5, 1), 6), ((1, 1), 2)])
def test_a_tenth_is_held_out_with_every_class_on_both_sides_or_nothing_is(counts, held_out):
    y = np.repeat(["a", "b"], counts)
    model = StoppedEarly(Recorder(), random_state=0).fit(np.zeros((len(y), 1)), y)
    fitted = len(y) if min(counts) < 2 else len(y) - held_out
    assert model.boosting_.seen == (fitted, held_out, [0, 1])
