"""The second pass: what the columns of all rows show, added up batch after batch.

The same figures as `Preprocessing.fit` takes from a table in memory, with one exception: a median is that of a KLL
sketch (Karnin, Lang & Liberty 2016), whose rank is within `MEDIAN_RANK_ERROR` of a half with a probability of 99 %. It
stands in for missing values, and nothing else depends on it.
"""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.io.text import count, cut, shortened
from eber.tables.preprocessing import (
    ColumnEncoding,
    Preprocessing,
    encode_categories,
    encode_numbers,
    ranks,
    require_columns_to_learn_from,
)
from eber.tables.schema import Feature, Schema
from eber.tables.training import FeatureColumns

SKETCH_SIZE = 2_000
MEDIAN_RANK_ERROR = 0.0015
"""Of a sketch of that size."""
MAX_TEXTS = 100_000
"""Different values of a categorical column that are counted."""


class Learning:
    """The statistics of all features so far."""

    def __init__(self, schema: Schema) -> None:
        sketches = _sketches()
        self._columns = [
            _Categories(feature) if feature.kind == "categorical" else _Numbers(feature, sketches)
            for feature in schema.features
        ]

    def add(self, columns: FeatureColumns) -> None:
        """Rows that come next."""
        for column in self._columns:
            column.add(columns.values[column.feature.name])

    def join(self, other: Learning) -> None:
        """Take the rows into account that another has seen, which come after these."""
        for ours, theirs in zip(self._columns, other._columns, strict=True):
            ours.join(theirs)

    @property
    def notes(self) -> list[str]:
        """What columns hold that the rows by which they were judged did not, in sentences."""
        return [column.note for column in self._columns if isinstance(column, _Numbers) and column.note]

    def preprocessing(self) -> Preprocessing:
        """What all rows together say."""
        return require_columns_to_learn_from(Preprocessing(tuple(column.encoding() for column in self._columns)))


def _sketches() -> ModuleType:
    try:
        return importlib.import_module("datasketches")
    except ImportError as error:
        raise ImportError(
            "datasketches is needed for the medians of a table larger than memory: pip install 'eber[scale]'."
        ) from error


class _Numbers:
    """A numeric, boolean or ordinal column: moments by Chan's update, ends, and a sketch for the median."""

    def __init__(self, feature: Feature, sketches: Any) -> None:
        self.feature = feature
        self.rows = self.known = 0
        self.mean = self.squares = 0.0  # of those known, and the sum of squared distances from it
        self.low, self.high = np.inf, -np.inf
        self.strange, self.example = 0, ""  # rows of an ordinal column with what is no step of it, and the first
        self.sketch = sketches.kll_doubles_sketch(SKETCH_SIZE)

    def add(self, column: Any) -> None:
        """Float64 with NaN, or the words of an ordinal column."""
        numbers: NDArray[np.float64] = ranks(column, self.feature.steps) if self.feature.kind == "ordinal" else column
        if self.feature.kind == "ordinal":
            values = column.filter(pc.and_(column.is_valid(), pa.array(np.isnan(numbers))))
            self._add_strange(len(values), values[0].as_py() if len(values) else "")
        self.rows += len(numbers)
        known = numbers[~np.isnan(numbers)]
        if not len(known):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(known.mean())
            squares = float(((known - mean) ** 2).sum())
        self._add_moments(len(known), mean, squares, float(known.min()), float(known.max()))
        self.sketch.update(known)

    def join(self, other: Any) -> None:
        """The same column of rows that another has seen."""
        self.rows += other.rows
        self._add_strange(other.strange, other.example)
        if other.known:
            self._add_moments(other.known, other.mean, other.squares, other.low, other.high)
            self.sketch.merge(other.sketch)

    @property
    def note(self) -> str:
        """What counts as missing because it is no step; empty where nothing does."""
        if not self.strange:
            return ""
        name, have = self.feature.name, "has" if self.strange == 1 else "have"
        return (
            f"Column {name!r}: {count(self.strange, 'row')} {have} a value that is none of its steps, such as "
            f"{shortened(self.example)}, and {'counts' if self.strange == 1 else 'count'} as missing; --categorical "
            f"{cut(name)} keeps each value as it is."
        )

    def _add_strange(self, rows: int, example: str) -> None:
        self.strange, self.example = self.strange + rows, self.example or example

    def _add_moments(self, n: int, mean: float, squares: float, low: float, high: float) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            shift = np.float64(mean) - self.mean
            self.squares += squares + float(shift**2) * (self.known * n / (self.known + n))
            self.mean += float(shift) * n / (self.known + n)
        self.known += n
        self.low, self.high = min(self.low, low), max(self.high, high)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "sketch": self.sketch.serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.sketch = _sketches().kll_doubles_sketch.deserialize(state["sketch"])

    def encoding(self) -> ColumnEncoding:
        """As for a column in memory."""
        feature, missing = self.feature, self.rows - self.known
        if not self.known:
            steps = feature.steps
            found = ColumnEncoding(feature.name, feature.kind, levels=steps, n_levels=len(steps), constant=True)
            return replace(found, rows=self.rows, missing=missing)
        if feature.kind == "boolean":
            return ColumnEncoding(
                feature.name,
                feature.kind,
                fill=float(self.mean > 0.5),
                indicator=missing > 0,
                constant=self.low == self.high,
                rows=self.rows,
                missing=missing,
            )
        fill = float(self.sketch.get_quantile(0.5))
        # Filled in, the missing values are so many more rows at one place.
        share = missing / self.rows
        mean = (1 - share) * self.mean + share * fill
        variance = self.squares / self.rows + share * (1 - share) * (fill - self.mean) ** 2
        found = encode_numbers(feature, fill, mean, float(np.sqrt(variance)), self.high, missing > 0)
        found = replace(found, rows=self.rows, missing=missing)
        return replace(found, low=self.low, high=self.high) if feature.kind == "numeric" else found


class _Categories:
    """A categorical column: the rows of each of its values."""

    def __init__(self, feature: Feature) -> None:
        self.feature, self.rows, self.missing, self.counts = feature, 0, 0, Counter[str]()

    def add(self, column: Any) -> None:
        """A pyarrow array of text."""
        self.rows, self.missing = self.rows + len(column), self.missing + column.null_count
        values, counts = pc.value_counts(column.drop_null()).flatten()
        self.counts.update(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))
        self._require_few_texts()

    def join(self, other: Any) -> None:
        """The same column of rows that another has seen."""
        self.rows, self.missing = self.rows + other.rows, self.missing + other.missing
        self.counts.update(other.counts)
        self._require_few_texts()

    def _require_few_texts(self) -> None:
        if len(self.counts) > MAX_TEXTS:
            raise ValueError(
                f"Column {self.feature.name!r} has more than {MAX_TEXTS} different texts, which are no categories: "
                f"leave it out with --drop."
            )

    def encoding(self) -> ColumnEncoding:
        """As for a column in memory."""
        found = encode_categories(self.feature.name, self.counts, self.missing)
        return replace(found, rows=self.rows, missing=self.missing)
