"""The rows of a fit and how much each counts: `sample_weight`, `class_weight`."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from eber.estimators.validation import MAX_LISTED, one_entry_per_row, plain

ClassWeight = Mapping[Any, float] | str | None
"""Weights by class, ``"balanced"`` or none."""


class Rows(NamedTuple):
    """Rows that a fit is given.

    Attributes
    ----------
    X : (n, ...) float32
    y : (n,), labels
    environments : n entries, or None
    weight : (n,) float64, not negative, or None where all rows count alike
    """

    X: NDArray[np.float32]
    y: NDArray[Any]
    environments: Any
    weight: NDArray[np.float64] | None

    def select(self, rows: NDArray[Any]) -> Rows:
        """The given rows, a mask or an index."""
        environments = self.environments
        if environments is not None:
            environments = one_entry_per_row(environments, len(self.X), "environments")[rows]
        return Rows(self.X[rows], self.y[rows], environments, None if self.weight is None else self.weight[rows])

    def that_count(self) -> Rows:
        """Without rows of weight zero, as if they were not in the table."""
        return self if self.weight is None or self.weight.all() else self.select(self.weight > 0)


def checked_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """One weight for each row, (n_rows,), refusing by row what is none; None where none are given."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_rows, sample_weight)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight holds what is no number ({error}).") from error
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be 1D with one entry for each row, got shape {weights.shape}.")
    if len(weights) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but sample_weight has {len(weights)} entries.")
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight is {weights[row]:g} at row {row} ({int(wrong.sum())} such rows in all); a weight is a "
            "number from zero on."
        )
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number: here no row counts.")
    return weights


def class_factors(
    class_weight: ClassWeight, classes: NDArray[Any], y_index: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The factor on the rows of each class, (K,), or None.

    ``"balanced"`` gives every class the same total weight, sum_i w_i / K. A class that a mapping does not name has 1.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        totals = np.bincount(y_index, weight, minlength=len(classes))
        return np.asarray(totals.sum() / (len(classes) * totals))
    names = [plain(label) for label in classes]
    unknown = [label for label in class_weight if plain(label) not in names]
    if unknown:
        listed = ", ".join(map(repr, names[:MAX_LISTED]))
        raise ValueError(f"class_weight names the class {plain(unknown[0])!r}, which y has not; it has {listed}.")
    given = {plain(label): value for label, value in class_weight.items()}
    factors = np.array([float(given.get(name, 1.0)) for name in names])
    wrong = ~np.isfinite(factors) | (factors <= 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"class_weight is {factors[k]:g} for class {names[k]!r}; the weight of a class is positive.")
    return factors


def training_weights(
    class_weight: ClassWeight, classes: NDArray[Any], y_index: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> torch.Tensor | None:
    """The weight of each row in the objective, (n,) float32 with mean one; None where all are alike."""
    factors = class_factors(class_weight, classes, y_index, weight)
    if factors is not None:
        weight = factors[y_index] if weight is None else weight * factors[y_index]
    if weight is None or weight.min() == weight.max():
        return None
    weight = weight / weight.max()  # so that no sum overflows
    return torch.from_numpy((weight / weight.mean()).astype(np.float32))
