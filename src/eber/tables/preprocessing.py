"""From feature columns to a matrix: imputed, encoded and standardised by what the training rows showed.

- numeric: median for missing values, then (x - mean) / standard deviation;
- boolean: 0 or 1, the more frequent one for missing values;
- ordinal: the number of its step, then as a numeric column. Values that are no step count as missing;
- categorical: one column for each of the `MAX_LEVELS` most frequent values. Rarer values, and values never seen in
  training, are zero in all of them;
- a further 0/1 column "... is missing" for each column that had missing values in training.

A column that was constant in the training rows is left out. The same numbers as scikit-learn's `SimpleImputer`,
`StandardScaler` and `OneHotEncoder` give, kept as plain data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.tables.schema import Feature, FeatureKind, Schema
from eber.tables.training import FeatureColumns

MAX_LEVELS = 30
MAX_STANDARDISED = 1e6
"""Standardised values are cut off here: beyond, they would not fit into float32 and mean no more than "far away"."""


@dataclass(frozen=True)
class ColumnEncoding:
    """What the training rows showed of one column.

    Parameters
    ----------
    name : str
    kind : str
        "numeric", "boolean", "ordinal" or "categorical".
    fill : float
        For missing values: the median, or the more frequent of 0 and 1.
    mean, scale : float
        Of a numeric or ordinal column, after missing values were filled in.
    levels : tuple of str
        Values of a categorical column that have a column of their own, or the steps of an ordinal one.
    n_levels : int
        Values of a categorical column in all, or the number of steps.
    indicator : bool
        Whether there is a column that says where it is missing.
    constant : bool
        Whether there was nothing to learn from its values.
    rows, missing : int
        Training rows, and those without a value; no rows in a model that was saved without these figures.
    low, high : float, optional
        The smallest and the largest value of a numeric column.
    """

    name: str
    kind: FeatureKind
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    n_levels: int = 0
    indicator: bool = False
    constant: bool = False
    rows: int = 0
    missing: int = 0
    low: float | None = None
    high: float | None = None

    @property
    def names_out(self) -> list[str]:
        """Columns of the matrix."""
        if self.kind == "categorical":
            names = [f"{self.name} = {level}" for level in self.levels]
        else:
            names = [] if self.constant else [self.name]
        return names + ([f"{self.name} is missing"] if self.indicator else [])

    @property
    def missing_share(self) -> str:
        """Of the training rows, in words."""
        return f"{100 * self.missing / self.rows:.2g} %" if self.missing else "none"


@dataclass(frozen=True)
class Preprocessing:
    """A fitted encoding of all feature columns.

    Parameters
    ----------
    encodings : tuple of ColumnEncoding
    """

    encodings: tuple[ColumnEncoding, ...]

    @classmethod
    def fit(cls, columns: FeatureColumns, schema: Schema) -> Preprocessing:
        """Learn from training rows alone."""
        encodings = (_describe_column(feature, columns.values[feature.name]) for feature in schema.features)
        return require_columns_to_learn_from(cls(tuple(encodings)))

    @property
    def names_out(self) -> list[str]:
        """Names of the columns of the matrix, (d,)."""
        return [name for encoding in self.encodings for name in encoding.names_out]

    def transform(self, columns: FeatureColumns) -> NDArray[np.float64]:
        """The matrix, (n, d)."""
        X = np.zeros((columns.n_rows, len(self.names_out)))
        start = 0
        for encoding in self.encodings:
            width = len(encoding.names_out)
            _fill_block(X[:, start : start + width], encoding, columns.values[encoding.name])
            start += width
        return X

    def unseen(self, columns: FeatureColumns) -> dict[str, tuple[int, str]]:
        """Of each categorical or ordinal column, how many rows have a value that is not listed, and the first such."""
        found: dict[str, tuple[int, str]] = {}
        for encoding in self.encodings:
            # Where rare values were put together in training, a value that is not listed may well have been seen.
            if encoding.kind not in ("categorical", "ordinal") or encoding.n_levels > len(encoding.levels):
                continue
            values = columns.values[encoding.name].drop_null()
            strange = values.filter(pc.invert(pc.is_in(values, _array(encoding.levels))))
            if len(strange):
                found[encoding.name] = (len(strange), strange[0].as_py())
        return found

    def to_json(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [{**vars(encoding), "levels": list(encoding.levels)} for encoding in self.encodings]

    @classmethod
    def from_json(cls, content: list[Mapping[str, Any]]) -> Preprocessing:
        """From plain data."""
        return cls(tuple(ColumnEncoding(**{**entry, "levels": tuple(entry["levels"])}) for entry in content))


def require_columns_to_learn_from(fitted: Preprocessing) -> Preprocessing:
    """The same, unless it leaves no column."""
    if not fitted.names_out:
        raise ValueError("Every feature is constant in the training rows; there is nothing to learn from.")
    return fitted


def _describe_column(feature: Feature, column: Any) -> ColumnEncoding:
    """The encoding of a column, with what new rows are compared with."""
    encoding = _fit_column(feature, column)
    if not isinstance(column, np.ndarray):
        return replace(encoding, rows=len(column), missing=column.null_count)
    known = column[~np.isnan(column)]
    encoding = replace(encoding, rows=len(column), missing=len(column) - len(known))
    if feature.kind != "numeric" or len(known) == 0:
        return encoding
    return replace(encoding, low=float(known.min()), high=float(known.max()))


def _fit_column(feature: Feature, column: Any) -> ColumnEncoding:
    name, kind, steps = feature.name, feature.kind, feature.steps
    if kind == "categorical":
        return _fit_categories(name, column)
    if kind == "ordinal":
        column = ranks(column, steps)
    missing = np.isnan(column)
    known = column[~missing]
    indicator = bool(missing.any() and len(known))
    if len(known) == 0:
        return ColumnEncoding(name, kind, levels=steps, n_levels=len(steps), constant=True)
    if kind == "boolean":
        constant = bool((known == known[0]).all())
        return ColumnEncoding(name, kind, fill=float(known.mean() > 0.5), indicator=indicator, constant=constant)
    with np.errstate(over="ignore", invalid="ignore"):
        fill = float(np.median(known))
        filled = np.where(missing, fill, column)
        mean, scale = float(filled.mean()), float(filled.std())
    return encode_numbers(feature, fill, mean, scale, float(known.max()), indicator)


def encode_numbers(
    feature: Feature, fill: float, mean: float, scale: float, largest: float, indicator: bool
) -> ColumnEncoding:
    """The encoding of a column of numbers or steps with that median, and mean and deviation once it is filled in."""
    name, steps = feature.name, feature.steps
    if not (math.isfinite(mean) and math.isfinite(scale)):
        raise ValueError(f"Column {name!r} holds numbers too large to be standardised; its largest is {largest:g}.")
    constant = bool(scale <= 1e-12 * max(abs(mean), 1e-300))
    scale = 1.0 if constant else scale
    return ColumnEncoding(name, feature.kind, fill, mean, scale, steps, len(steps), indicator, constant)


def _fit_categories(name: str, column: Any) -> ColumnEncoding:
    values, counts = pc.value_counts(column.drop_null()).flatten()
    return encode_categories(name, dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)), column.null_count)


def encode_categories(name: str, counts: Mapping[str, int], missing: int) -> ColumnEncoding:
    """The encoding of a categorical column whose values stand in so many rows each."""
    order = sorted(((count, value) for value, count in counts.items()), key=lambda pair: (-pair[0], pair[1]))
    indicator = missing > 0 and len(order) > 0
    if len(order) < 2:
        levels = tuple(level for _, level in order)
        return ColumnEncoding(name, "categorical", levels=(), n_levels=len(levels), indicator=indicator, constant=True)
    levels = tuple(sorted(level for _, level in order[:MAX_LEVELS]))
    return ColumnEncoding(name, "categorical", levels=levels, n_levels=len(order), indicator=indicator)


def _fill_block(block: NDArray[np.float64], encoding: ColumnEncoding, column: Any) -> None:
    """Write one column's part of the matrix, which is zero so far."""
    if encoding.kind == "categorical":
        if encoding.levels:
            index = pc.fill_null(pc.index_in(column, _array(encoding.levels)), -1).to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(index >= 0)
            block[rows, index[rows]] = 1.0
        missing = column.is_null().to_numpy(zero_copy_only=False)
    else:
        if encoding.kind == "ordinal":
            column = ranks(column, encoding.levels)
        missing = np.isnan(column)
        if not encoding.constant:
            filled = np.where(missing, encoding.fill, column)
            with np.errstate(over="ignore"):
                standardised = filled if encoding.kind == "boolean" else (filled - encoding.mean) / encoding.scale
            block[:, 0] = np.clip(standardised, -MAX_STANDARDISED, MAX_STANDARDISED)
    if encoding.indicator:
        block[:, -1] = missing


def ranks(column: Any, steps: tuple[str, ...]) -> NDArray[np.float64]:
    """The number of each value's step, from zero; NaN for what is no step."""
    index = pc.index_in(column, _array(steps))
    return np.array(pc.cast(index, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _array(levels: tuple[str, ...]) -> Any:
    return pa.array(levels, type=pa.string())
