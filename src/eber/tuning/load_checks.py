"""What a saved search or pool must stand before it is handed out, as `eber.estimators.load_checks` for one classifier.

A part that no row of zeros reaches, a leaf of a tree, say, is looked at here and not asked.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.estimators.load_checks import MAX_ROW_NUMBERS
from eber.tuning.pool import EnvironmentPool
from eber.tuning.recalibration import RecalibratedClassifier
from eber.tuning.search import EnvironmentSearch

_RESULTS = {"candidate", "left_out", "nll"}
_TUNED = (EnvironmentSearch, EnvironmentPool, RecalibratedClassifier)


def check_tuned(loaded: Any) -> None:
    """Refuse what no fit gives: parts that do not belong together, weights that are none."""
    _check_part(loaded, np.asarray(loaded.classes_), loaded.n_features_in_)
    names = getattr(loaded, "feature_names_in_", None)
    if names is not None and (
        names.shape != (loaded.n_features_in_,) or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError("its columns have other names than columns have")


def answer_one_row(loaded: Any) -> None:
    """Refuse a model that has no answer, or one that is no probability, for a row of zeros."""
    row: Any = np.zeros((1, loaded.n_features_in_))
    if hasattr(loaded, "feature_names_in_"):
        row = pd.DataFrame(row, columns=loaded.feature_names_in_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proba = loaded.predict_proba(row)
    if proba.shape != (1, len(loaded.classes_)) or not (np.isclose(proba.sum(), 1) and (proba >= 0).all()):
        raise ValueError("it gives no probabilities")


def _check_part(part: Any, classes: NDArray[Any], n_features: Any) -> None:
    """A part with all that is in it; classes and columns are the same everywhere."""
    if not isinstance(n_features, int) or not 0 < n_features <= MAX_ROW_NUMBERS:
        raise ValueError(f"its rows have {n_features!r} columns")
    if classes.ndim != 1 or len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("its classes are not different values in their order")
    if not np.array_equal(part.classes_, classes) or part.n_features_in_ != n_features:
        raise ValueError("its parts are of different fits")
    for inner in _check_contents(part):
        _check_part(inner, classes, n_features)


def _check_contents(part: Any) -> list[Any]:
    """What a part says of itself, by its kind; gives the parts in it."""
    if isinstance(part, EnvironmentSearch):
        if not part.estimators_ or any(isinstance(inner, _TUNED) for inner in part.estimators_):
            raise ValueError("its search has kept nothing")
        if not (isinstance(part.chosen_, list) and all(isinstance(chosen, dict) for chosen in part.chosen_)):
            raise ValueError("its search has chosen nothing")
        results: dict[str, Any] = part.results_
        if set(results) != _RESULTS or len({len(values) for values in results.values()}) != 1:
            raise ValueError("its search has no results")
        _check_left_out(part)
        return list(part.estimators_)
    if isinstance(part, EnvironmentPool):
        weights = np.asarray(part.weights_, dtype=np.float64)
        if not all(isinstance(inner, EnvironmentSearch) for inner in part.searches_):
            raise ValueError("its pool is none of searches")
        if weights.shape != (len(part.searches_),) or not (weights >= 0).all() or not np.isclose(weights.sum(), 1):
            raise ValueError("its methods have weights that are no shares")
        if len(set(part.names_)) != len(part.searches_) or not all(isinstance(name, str) for name in part.names_):
            raise ValueError("its methods have no names")
        _check_left_out(part)
        return list(part.searches_)
    if isinstance(part, RecalibratedClassifier):
        if not isinstance(part.estimator_, EnvironmentSearch | EnvironmentPool):
            raise ValueError("nothing in it was recalibrated")
        return [part.estimator_]
    return []  # one of our classifiers or a model as arrays, which have looked at themselves


def _check_left_out(part: Any) -> None:
    proba = part.left_out_proba_
    if proba.ndim != 2 or proba.shape[1] != len(part.classes_) or proba.dtype != np.float64:
        raise ValueError("what it said of left-out rows is no probabilities")
