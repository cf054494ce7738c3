"""Rows that come at once, and are read from then on as the Parquet file is that they would be written to."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eber.tables.frames import to_parquet
from eber.tables.readers import protocol
from eber.tables.readers.parquet import ParquetRows, open_parquet

CELL_BYTES = 64
"""What a value takes as an object of Python, roughly."""


def whole_rows(table: Any, notes: Sequence[str] = ()) -> ParquetRows:
    """A pyarrow table or a DataFrame, as rows to be read."""
    return replace(open_parquet([to_parquet(table)]), notes=tuple(notes))


def table_of_cells(title: object, header: Sequence[object], rows: Iterable[Sequence[Any]]) -> Any:
    """A pyarrow table from rows of Python values, whose columns may hold values of several kinds."""
    columns: list[list[Any]] = [[] for _ in header]
    limit, size = protocol.memory_limit(), 0
    for row in rows:
        for j, values in enumerate(columns):
            values.append(row[j] if j < len(row) else None)
        size += CELL_BYTES * len(columns)
        protocol.require_room(title, size, limit)
    names = ["" if name is None else str(name) for name in header]
    return pa.table([_column(values) for values in columns], names=names)


def _column(values: list[Any]) -> Any:
    """Numbers, truth values, times, or else text, as a program would write them to CSV."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and not (float in kinds and any(_loses_digits(value) for value in values)):
        return _numbers(values)
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds and kinds <= {datetime.datetime, datetime.date, datetime.time, datetime.timedelta}:
        return pa.array([None if value is None else str(value) for value in values])
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _numbers(values: list[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    try:
        return pa.array(values, pa.int64() if kinds == {int} else pa.float64())
    except (pa.ArrowException, OverflowError):  # more digits than 64 bits hold
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _loses_digits(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > 2**53


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.15g}"
    return value.hex() if isinstance(value, bytes) else str(value)
