"""Tables in memory: DataFrames of pandas and polars, pyarrow tables, and whatever else hands its columns to Arrow.

A table in memory is read as the Parquet file is that it would be written to, so that there is one way to read a table
and its fingerprint is that of such a file. An index of pandas is no column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from eber.tables.columns import as_texts

KINDS = "a path, or a DataFrame of pandas, polars or pyarrow"


def is_path(table: Any) -> bool:
    """Whether a table is named by where it lies."""
    return isinstance(table, str | Path)


def to_parquet(table: Any) -> Any:
    """A table in memory as a pyarrow buffer that holds a Parquet file."""
    columns, names = _columns(table)
    stream = pa.BufferOutputStream()
    try:
        pq.write_table(pa.table([storable(column) for column in columns], names=names), stream)
    except pa.ArrowException as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(f"{type(table).__name__} has a column that Parquet cannot hold: {reason}.") from error
    return stream.getvalue()


def frame_like(table: Any, answers: Any) -> Any:
    """Answers, a pyarrow table, as the kind of frame that the rows came in; of pandas for rows of a file.

    A frame of pandas gets the index of the rows.
    """
    if _is_polars(table):
        import polars

        return polars.from_arrow(answers)
    if is_path(table):
        return exact_frame(answers)
    if isinstance(table, pd.DataFrame):
        return exact_frame(answers).set_axis(table.index, axis=0)
    return answers


def exact_frame(answers: Any) -> pd.DataFrame:
    """A pyarrow table as a frame of pandas; whole numbers stay such where some are missing, as no float holds them."""
    return answers.to_pandas(integer_object_nulls=True)


def _columns(table: Any) -> tuple[list[Any], list[str]]:
    """Its columns as Arrow has them, and their names."""
    if isinstance(table, pd.DataFrame):
        names = [str(name) for name in table.columns]
        return [_from_pandas(table.iloc[:, j], name) for j, name in enumerate(names)], names
    if isinstance(table, pa.Table | pa.RecordBatch) or hasattr(table, "__arrow_c_stream__"):
        try:
            arrow = pa.table(table)
        except (TypeError, pa.ArrowException):  # a column by itself, for one
            arrow = None
        if arrow is not None:
            return arrow.columns, arrow.column_names
    advice = ": collect it first" if hasattr(table, "collect") else ""
    raise TypeError(f"A table is {KINDS}; {type(table).__name__} is none of these{advice}.")


def _from_pandas(column: pd.Series, name: str) -> Any:
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(
            f"Column {name!r} of DataFrame holds values of several kinds, or of one that no table file has ({reason}): "
            "make them all numbers or all text."
        ) from error


def storable(column: Any) -> Any:
    """The column as Parquet keeps it: plain strings for views of strings, and categories as text.

    Parquet has no categories of numbers; as text they stay the categories that somebody made of them.
    """
    if pa.types.is_dictionary(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [_text_categories(chunk) for chunk in chunks]
        return pa.chunked_array(parts, type=pa.dictionary(pa.int32(), pa.string(), ordered=column.type.ordered))
    if pa.types.is_string_view(column.type):
        try:
            return column.cast(pa.string())
        except pa.ArrowNotImplementedError:  # pyarrow 16 can read views of strings, and do no more with them
            return pa.array(column.to_pylist(), pa.string())
    return column


def _text_categories(column: Any) -> Any:
    texts = as_texts(column.dictionary)
    return pa.DictionaryArray.from_arrays(
        column.indices.cast(pa.int32()), texts.cast(pa.string()), ordered=column.type.ordered
    )


def _is_polars(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "polars"
