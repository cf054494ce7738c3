"""Whom a display asks, and how the rows that it is given are grouped by environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from eber.estimators import EBERClassifier
from eber.estimators.validation import one_entry_per_row, plain
from eber.io.text import natural_order
from eber.tuning.search import EnvironmentSearch

ALL_ROWS = "all rows"


def fitted_eber(estimator: Any, X: Any, display: type) -> tuple[EBERClassifier, Any]:
    """The EBER fit inside a classifier, and the rows as that fit takes them.

    A pipeline has its earlier steps applied, and a search hands out what it chose.
    """
    check_is_fitted(estimator)
    asked = estimator
    if isinstance(asked, Pipeline):
        X, asked = (X if X is None else asked[:-1].transform(X)), asked[-1]
    if isinstance(asked, EnvironmentSearch):
        asked = asked.estimators_[0]
    if not isinstance(asked, EBERClassifier):
        raise TypeError(
            f"{display.__name__} shows what only EBER says, and {type(asked).__name__} is no EBERClassifier: give a "
            "fitted one, a pipeline that ends in one, or an EnvironmentSearch over one."
        )
    return asked, X


def grouped(environments: Any, n_rows: int) -> dict[str, NDArray[np.int64]]:
    """Rows of each environment by its name, s 2 before s 10; without environments all rows are one group."""
    if environments is None:
        return {ALL_ROWS: np.arange(n_rows)}
    values = one_entry_per_row(environments, n_rows, "environments")
    names = sorted({plain(value) for value in np.unique(values)}, key=lambda name: natural_order(str(name)))
    return {str(name): np.flatnonzero(values == name) for name in names}


def checked_matrix(values: Any, columns: int, name: str, what: str) -> NDArray[np.float64]:
    """An array of shape (n, columns) with rows that sum to one, refusing others by row."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != columns:
        raise ValueError(f"{name} has shape {array.shape}; give a row for each row and a column for each of {what}.")
    if len(array) == 0:
        raise ValueError(f"{name} has no rows; there is nothing to show.")
    bad = ~np.isfinite(array).all(1) | (array < 0).any(1) | (np.abs(array.sum(1) - 1) > 1e-3)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{name} holds {array[row].tolist()} in row {row}: not finite, not ≥ 0, or not of sum 1.")
    return array
