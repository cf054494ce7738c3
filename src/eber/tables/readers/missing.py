"""What is written for a missing value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eber.tables.columns import as_texts, kind_of_type, number_text

MISSING_TEXTS = ("", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NAN", "null", "NULL", "None", ".", "?")
"""What counts as a missing value in a column of text, with blanks around it or none."""
MINUS = "-"
"""Counts as missing too, except in a column of signs."""
SIGNS = ("+", "++", "+++", "++++", "(+)", "+/-", "±", MINUS)
"""Findings as laboratories write them; where a column holds nothing else, a minus is a finding."""


def with_missing_as_null(table: Any) -> Any:
    """The same with nulls where a column of text says that a value is missing, and where a number is none (NaN)."""
    missing = pa.array(MISSING_TEXTS)
    for j, column in enumerate(table.columns):
        if pa.types.is_float16(column.type):  # for which pyarrow 16 has no is_nan
            column = pc.cast(column, pa.float32())
            table = table.set_column(j, table.field(j).name, column)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            nothing = pa.scalar(None, column.type)
            table = table.set_column(j, table.field(j).name, pc.if_else(pc.is_nan(column), nothing, column))
        if kind_of_type(column.type) is not None or pa.types.is_null(column.type):
            continue
        texts = pc.cast(column, pa.string())
        found = pc.is_in(pc.utf8_trim_whitespace(texts), missing)
        if pc.any(found).as_py():  # else the column stays as it is, a category with its order
            table = table.set_column(j, table.field(j).name, pc.if_else(found, pa.scalar(None, pa.string()), texts))
    return table


def columns_of_signs(table: Any) -> tuple[str, ...]:
    """Columns that hold a plus and a minus and other signs at most."""
    found = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if kind_of_type(column.type) is None:
            texts = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
            if pc.any(pc.equal(texts, MINUS)).as_py() and are_signs(set(pc.unique(texts.drop_null()).to_pylist())):
                found.append(name)
    return tuple(found)


def are_signs(values: set[str]) -> bool:
    """Whether the different values of a column are findings, a minus among them."""
    return MINUS in values and len(values) > 1 and values <= set(SIGNS)


def with_minus_as_null(table: Any, signs: Sequence[str]) -> Any:
    """The same with nulls where a minus stands for a missing value: in all columns but those of signs."""
    for j, column in enumerate(table.columns):
        name = table.field(j).name
        if name in signs or kind_of_type(column.type) is not None or pa.types.is_null(column.type):
            continue
        texts = pc.cast(column, pa.string())
        found = pc.equal(pc.utf8_trim_whitespace(texts), MINUS)
        if pc.any(found).as_py():
            table = table.set_column(j, name, pc.if_else(found, pa.scalar(None, pa.string()), texts))
    return table


def without_values(table: Any, values: Sequence[str]) -> Any:
    """The same with nulls where a value is one of these: as it is written, or as the same number (-5 and -5.0)."""
    numbers = [number for value in values if (number := _number(value))]
    spellings = "|".join([*(re.escape(value) for value in values), *map(_spellings, numbers)])
    for j, column in enumerate(table.columns):
        kind = kind_of_type(column.type)
        if kind is None:
            found = pc.fill_null(pc.match_substring_regex(as_texts(column), f"^(?:{spellings})$"), False)
        elif kind == "numeric" and numbers:
            found = pc.is_in(as_texts(column), pa.array(numbers, pa.string()))
        else:
            continue
        if pc.any(found).as_py():
            plain = pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column
            nothing = pa.scalar(None, plain.type)
            table = table.set_column(j, table.field(j).name, pc.if_else(found, nothing, plain))
    return table


def _number(value: str) -> str:
    """A number as `as_texts` writes it; empty for what is none."""
    try:
        return number_text(float(value.replace(",", ".")))
    except ValueError:
        return ""


def _spellings(number: str) -> str:
    """A pattern for the ways in which a number is written: with zeros at its end, with a decimal comma."""
    whole, _, fraction = number.partition(".")
    return rf"\+?{re.escape(whole)}[.,]{fraction}0*" if fraction else rf"\+?{re.escape(whole)}(?:[.,]0*)?"
