"""Weights of rows and classes in fits: what a user may rely on, for every classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eber import EBERClassifier, ERMClassifier, IRMClassifier, MultiEnvironmentData, fit_many
from eber.estimators.references import StoppedEarly
from eber.method.diagnostics import rows_by_weight
from tests.estimators.all_classifiers import CLASSIFIERS

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3)).astype(np.float32)
E = np.repeat(["a", "b", "c"], 30)
Y = np.where(X[:, 0] + 0.8 * RNG.normal(size=90) > 0, "yes", "no")
WEIGHTS = RNG.integers(0, 4, size=90).astype(float)
SPLIT_OR_CORRECTED = {"IRMClassifier", "IBIRMClassifier", "CORALClassifier", "IBERMClassifier"}
"""Their penalties split an environment's rows in two, or know how many there are (docs/weights.md)."""


def fitted(kind: type, rows: Any = slice(None), **options: Any) -> Any:
    weights = options.pop("sample_weight", None)
    model = kind(**{"epochs": 2, "random_state": 0, **options})
    return model.fit(X[rows], Y[rows], environments=E[rows], sample_weight=weights)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_row_of_weight_zero_is_left_out_to_the_bit(kind: type) -> None:
    kept = WEIGHTS > 0
    with_zeros, without = fitted(kind, sample_weight=WEIGHTS), fitted(kind, kept, sample_weight=WEIGHTS[kept])
    np.testing.assert_array_equal(with_zeros.predict_proba(X), without.predict_proba(X))
    assert with_zeros.history_ == without.history_
    assert not np.array_equal(with_zeros.predict_proba(X), fitted(kind, kept).predict_proba(X))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_only_ratios_of_weights_matter(kind: type) -> None:
    once = fitted(kind, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(fitted(kind, sample_weight=1024 * WEIGHTS).predict_proba(X), once.predict_proba(X))
    constant = fitted(kind, sample_weight=np.full(90, 0.3))
    np.testing.assert_array_equal(constant.predict_proba(X), fitted(kind).predict_proba(X), "no weights at all")


@pytest.mark.parametrize("kind", [k for k in CLASSIFIERS if k.__name__ not in SPLIT_OR_CORRECTED])
def test_weights_are_repeated_rows_where_a_batch_is_the_whole_table(kind: type) -> None:
    options: dict[str, Any] = {"epochs": 5, "batch_size": 1000, "learning_rate": 0.01}
    if kind is EBERClassifier:
        options["expectation"] = "quadrature"  # no noise
    repeated = fitted(kind, np.repeat(np.arange(90), WEIGHTS.astype(int)), **options)
    weighted = fitted(kind, sample_weight=WEIGHTS, **options)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-4)
    assert np.abs(weighted.predict_proba(X) - fitted(kind, **options).predict_proba(X)).max() > 2e-3


@pytest.mark.parametrize("kind", [EBERClassifier, IRMClassifier])
def test_fits_side_by_side_have_the_weights_they_have_alone(kind: type) -> None:
    others = np.roll(WEIGHTS, 7)
    tables = [MultiEnvironmentData(X, Y, E, weights=w) for w in (WEIGHTS, others, None)]
    together = [kind(epochs=2, random_state=seed) for seed in range(3)]
    fit_many(together, tables)
    for seed, (model, table) in enumerate(zip(together, tables, strict=True)):
        alone = fitted(kind, random_state=seed, sample_weight=table.weights)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)
    members = fitted(kind, n_members=2, sample_weight=WEIGHTS)
    first = fitted(kind, sample_weight=WEIGHTS)
    np.testing.assert_allclose(members.members_[0].predict_proba(X), first.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.where(np.arange(90) == 7, -1.0, 1.0), "sample_weight is -1 at row 7 .1 such rows"),
        (np.where(np.arange(90) == 8, np.nan, 1.0), "sample_weight is nan at row 8"),
        (np.where(np.arange(90) == 9, np.inf, 1.0), "sample_weight is inf at row 9"),
        (np.zeros(90), "here no row counts"),
        (np.ones(89), "X has 90 rows, but sample_weight has 89 entries"),
        (np.ones((90, 2)), "sample_weight must be 1D"),
        (["much"] * 90, "sample_weight holds what is no number"),
    ],
)
def test_what_is_no_weight_is_refused_by_row(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(ERMClassifier, sample_weight=weights)


def test_the_prior_of_environments_is_weighted() -> None:
    model = fitted(EBERClassifier, epochs=20, sample_weight=np.where(E == "a", 8.0, 1.0))
    p = model.predict_environment_proba(X)
    np.testing.assert_allclose(model.environment_prior_, np.average(p, 0, np.where(E == "a", 8.0, 1.0)), atol=1e-6)
    assert model.environment_prior_[0] > 0.6  # 8 / 10 of the weight


def test_diagnostics_look_at_rows_as_often_as_they_weigh() -> None:
    rows = rows_by_weight(torch.tensor([1.0, 0.0, 3.0, 4.0]), 800)
    np.testing.assert_array_equal(np.bincount(rows, minlength=4), [100, 0, 300, 400])


@pytest.mark.parametrize("kind", [EBERClassifier, ERMClassifier, IRMClassifier])
def test_a_class_weight_is_the_weight_of_its_rows(kind: type) -> None:
    by_class = fitted(kind, class_weight={"yes": 3.0}, sample_weight=WEIGHTS)
    by_row = fitted(kind, sample_weight=WEIGHTS * np.where(Y == "yes", 3.0, 1.0))
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    shares = {label: WEIGHTS.sum() / (2 * WEIGHTS[label == Y].sum()) for label in ("yes", "no")}
    balanced = fitted(kind, class_weight="balanced", sample_weight=WEIGHTS)
    np.testing.assert_array_equal(
        balanced.predict_proba(X), fitted(kind, class_weight=shares, sample_weight=WEIGHTS).predict_proba(X)
    )


def test_a_class_weight_moves_the_probabilities() -> None:
    """By Bayes' rule the odds grow by the factor: probabilities are then no longer those of the population."""
    options: dict[str, Any] = {"epochs": 60, "learning_rate": 0.01, "featurizer": "linear"}
    plain = fitted(ERMClassifier, **options).predict_proba(X)
    heavy = fitted(ERMClassifier, **options, class_weight={"yes": 4.0}).predict_proba(X)
    gained = np.median(np.log(heavy[:, 1] / heavy[:, 0]) - np.log(plain[:, 1] / plain[:, 0]))
    assert gained == pytest.approx(np.log(4), abs=0.5)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({"maybe": 2.0}, "class_weight names the class 'maybe', which y has not; it has 'no', 'yes'"),
        ({"yes": 0.0}, "class_weight is 0 for class 'yes'; the weight of a class is positive"),
        ("even", "The 'class_weight' parameter of ERMClassifier must be"),
    ],
)
def test_what_is_no_class_weight_is_refused(class_weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(ERMClassifier, class_weight=class_weight)


def test_class_weights_are_saved_with_their_classes(tmp_path: Any) -> None:
    labels = (Y == "yes").astype(int)
    model = ERMClassifier(epochs=1, class_weight={np.int64(1): 2.0, 0: 0.5}, random_state=0).fit(X, labels)
    model.save(tmp_path / "model")
    again = ERMClassifier.load(tmp_path / "model")
    assert again.class_weight == {1: 2.0, 0: 0.5}
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_other_peoples_classifiers_get_the_weights_or_are_refused() -> None:
    table = MultiEnvironmentData(X, Y, E, weights=WEIGHTS)
    plain, pipeline = LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())
    fit_many([plain, pipeline], table)
    expected = LogisticRegression().fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(plain.coef_, expected.coef_)
    scaled = StandardScaler().fit_transform(X)
    expected = LogisticRegression().fit(scaled, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_)
    with pytest.raises(ValueError, match="the fit of KNeighborsClassifier has no place for them"):
        fit_many([KNeighborsClassifier()], table)
    fit_many([KNeighborsClassifier()], MultiEnvironmentData(X, Y, E))


class Boosting(ClassifierMixin, BaseEstimator):
    """Stands for XGBoost and LightGBM, with the name that one of them has for the weights of held-out rows."""

    def fit(self, X: Any, y: Any, *, eval_set: Any, sample_weight: Any = None, eval_sample_weight: Any = None) -> Any:
        self.seen_ = len(X), len(eval_set[0][0]), sample_weight, eval_sample_weight
        return self


def test_boosting_that_stops_early_weighs_both_kinds_of_rows() -> None:
    rows, held_out, weight, of_held_out = StoppedEarly(Boosting(), random_state=0).fit(X, Y, WEIGHTS).boosting_.seen_
    assert rows + held_out == (WEIGHTS > 0).sum()
    assert weight.sum() + of_held_out[0].sum() == WEIGHTS.sum()
    *_, weight, of_held_out = StoppedEarly(Boosting(), random_state=0).fit(X, Y).boosting_.seen_
    assert weight is None
    assert of_held_out is None
