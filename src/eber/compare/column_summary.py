"""Columns over all held-out environments: how much each matters, how sure that is, and where it stops working."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eber.evaluation.wording import LEVEL

MIN_FOLDS = 3
"""With fewer, nothing is said about how a column's importance varies."""


@dataclass(frozen=True)
class ColumnSummary:
    """One column of the table.

    Parameters
    ----------
    name : str
    by_fold : mapping
        Fold to the rise in NLL when the column is shuffled there, the mean over repeats and seeds.
    mean, low, high : float
        Mean over folds and its 95 % interval by Student's t; NaN for fewer than `MIN_FOLDS`.
    stops_in : tuple of str
        Folds where it does not work, although it does in the others; see :func:`summarise_columns`.
    """

    name: str
    by_fold: Mapping[str, float]
    mean: float
    low: float
    high: float
    stops_in: tuple[str, ...]

    @property
    def matters(self) -> bool:
        """Whether it is clearly above zero over environments."""
        return self.low > 0


def summarise_columns(kept: Mapping[str, Sequence[Mapping[str, NDArray[Any]]]]) -> list[ColumnSummary]:
    """All columns, the most important first.

    A column *stops working* in a fold when three things hold: the 95 % interval of its mean over the other folds lies
    above zero; in this fold, as far as its rows say, it is not above zero; and it is below what the others would
    have one expect, by the rows' standard error and corrected over all columns and folds (Bonferroni), so that a small
    environment is not blamed for being small.

    Parameters
    ----------
    kept : mapping
        Fold to the arrays of `column_importance`, one of each seed.
    """
    values: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    for fold, seeds in kept.items():
        for name in dict.fromkeys(str(name) for arrays in seeds for name in arrays["importance_columns"]):
            found = [
                (arrays["importance"][j].mean(), arrays["importance_error"][j])
                for arrays in seeds
                for j in np.flatnonzero(arrays["importance_columns"] == name)
            ]
            values.setdefault(name, {})[fold] = float(np.mean([value for value, _ in found]))
            # Seeds share the held-out rows, so that they do not make the error of the rows smaller.
            errors.setdefault(name, {})[fold] = float(np.mean([error for _, error in found]))
    looks = sum(len(by_fold) for by_fold in values.values())
    columns = [_summarise(name, by_fold, errors[name], looks) for name, by_fold in values.items()]
    return sorted(columns, key=lambda column: -column.mean)


def _summarise(name: str, values: Mapping[str, float], errors: Mapping[str, float], looks: int) -> ColumnSummary:
    low, high = mean_interval(list(values.values()))
    strict = stats.norm.ppf(1 - LEVEL / (2 * looks))
    stops = []
    for fold, value in values.items():
        others = [other for elsewhere, other in values.items() if elsewhere != fold]
        works_elsewhere = mean_interval(others)[0] > 0
        above_zero = value - stats.norm.ppf(0.975) * errors[fold] > 0
        if works_elsewhere and not above_zero and value + strict * errors[fold] < np.mean(others):
            stops.append(fold)
    return ColumnSummary(name, values, float(np.mean(list(values.values()))), low, high, tuple(stops))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean over folds, by Student's t."""
    n = len(values)
    if n < MIN_FOLDS:
        return math.nan, math.nan
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n)
    return float(np.mean(values) - half), float(np.mean(values) + half)
