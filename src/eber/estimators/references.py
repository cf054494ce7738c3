"""Classifiers that know nothing of environments and that people would pick instead: forests and boosted trees.

Each function returns an unfitted scikit-learn classifier. XGBoost and LightGBM are extras, imported when asked for.
"""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eber.estimators.rows import checked_weights

MAX_ROUNDS = 1000
"""Of boosting; stopping early ends it long before on tables of moderate size."""
PATIENCE = 20
"""Rounds without a gain on held-out rows after which boosting stops."""
HELD_OUT = 0.1
"""Share of the rows on which that gain is looked for, drawn from all environments alike."""


def random_forest(random_state: int | None = None) -> RandomForestClassifier:
    """A forest of 300 trees with three rows in a leaf at least.

    With leaves of a single row, scikit-learn's default, a class often has probability zero, and a row of it then costs
    as much negative log-likelihood as the metric's clipping lets it. Larger leaves make that far rarer; they do not
    rule it out.
    """
    return RandomForestClassifier(n_estimators=300, min_samples_leaf=3, random_state=random_state)


def gradient_boosting_early_stopping(random_state: int | None = None) -> HistGradientBoostingClassifier:
    """Boosted trees that stop when a tenth of the rows, held out, gains no more.

    scikit-learn's default boosts 100 rounds whatever comes of it, on tables of up to 10,000 rows.
    """
    return HistGradientBoostingClassifier(
        max_iter=MAX_ROUNDS,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        validation_fraction=HELD_OUT,
        random_state=random_state,
    )


def xgboost_classifier(random_state: int | None = None, n_threads: int = 1) -> StoppedEarly:
    """XGBoost with early stopping as `gradient_boosting_early_stopping` has it."""
    xgboost = _extra("xgboost", "XGBoost")
    boosting = xgboost.XGBClassifier(
        n_estimators=MAX_ROUNDS,
        learning_rate=0.1,
        early_stopping_rounds=PATIENCE,
        random_state=random_state,
        n_jobs=n_threads,
    )
    return StoppedEarly(boosting, fit_options={"verbose": False}, random_state=random_state)


def lightgbm_classifier(random_state: int | None = None, n_threads: int = 1) -> StoppedEarly:
    """LightGBM with early stopping as `gradient_boosting_early_stopping` has it."""
    lightgbm = _extra("lightgbm", "LightGBM")
    boosting = lightgbm.LGBMClassifier(
        n_estimators=MAX_ROUNDS,
        learning_rate=0.1,
        early_stopping_round=PATIENCE,
        random_state=random_state,
        n_jobs=n_threads,
        verbose=-1,
    )
    return StoppedEarly(boosting, random_state=random_state)


def _extra(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{name} is not installed; it is an extra: pip install 'eber[boosting]', or leave this method out."
        ) from error


class StoppedEarly(ClassifierMixin, BaseEstimator):
    """A boosting of another package: labels of any kind, and rows held out to stop on.

    XGBoost takes labels 0 .. K-1 only, and neither package holds rows out by itself.

    Parameters
    ----------
    boosting : classifier
        Has `fit` with `eval_set`, and `predict_proba`. It is cloned.
    fit_options : dict or None
        Further arguments of its `fit`.
    random_state : int or None
        Of the rows that are held out, as many of each class as its share allows.
    """

    def __init__(
        self, boosting: Any, *, fit_options: dict[str, Any] | None = None, random_state: int | None = None
    ) -> None:
        self.boosting = boosting
        self.fit_options = fit_options
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on nine tenths of the rows, and stop by the rest; on all rows where a class has too few to hold out.

        With weights, the rows that are stopped by have theirs, too; rows of weight zero are left out.
        """
        check_classification_targets(y)
        weight = checked_weights(sample_weight, len(y))
        if weight is not None:
            counted = np.flatnonzero(weight)
            X, y, weight = _rows(X, counted), np.asarray(y)[counted], weight[counted]
        encoder = LabelEncoder()
        index = encoder.fit_transform(np.asarray(y))
        counts = np.bincount(index)
        # Each class needs a row on either side.
        n_held_out = max(len(counts), round(HELD_OUT * len(index)))
        boosting = clone(self.boosting)
        if counts.min() < 2 or len(index) - n_held_out < len(counts):
            held_out, rest = np.arange(len(index)), np.arange(len(index))
        else:
            rest, held_out = train_test_split(
                np.arange(len(index)), test_size=n_held_out, stratify=index, random_state=self.random_state
            )
        validation = [(_rows(X, held_out), index[held_out])]
        with warnings.catch_warnings():
            # LightGBM from 4.7 on has another name for it, which earlier versions and XGBoost do not know.
            warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
            options = {**(self.fit_options or {}), **_weight_options(boosting, weight, rest, held_out)}
            boosting.fit(_rows(X, rest), index[rest], eval_set=validation, **options)
        self.classes_, self.boosting_ = encoder.classes_, boosting
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K) with columns as in `classes_`."""
        check_is_fitted(self)
        return np.asarray(self.boosting_.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        predicted: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(1)]
        return predicted


def _weight_options(
    boosting: Any, weight: NDArray[np.float64] | None, rest: NDArray[np.int64], held_out: NDArray[np.int64]
) -> dict[str, Any]:
    """Weights of both kinds of rows by the names that a package has for them."""
    if weight is None:
        return {}
    of_held_out = {"sample_weight_eval_set", "eval_sample_weight"} & set(inspect.signature(boosting.fit).parameters)
    return {"sample_weight": weight[rest], **{name: [weight[held_out]] for name in of_held_out}}


def _rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Rows of an array or of a DataFrame, which keeps its column names."""
    return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
