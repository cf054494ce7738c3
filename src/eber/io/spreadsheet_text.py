"""Text that a spreadsheet would take for a formula, made harmless in CSV files.

A cell that begins with = + - @, a tab or a line end is computed when a spreadsheet opens the file, and may then fetch
or send anything. Such text gets an apostrophe in front, as spreadsheets themselves write it; text that already has
apostrophes before such a sign gets one more, so that it can always be taken off again. Numbers, and a sign alone ("+"
as a label), are none of these. Parquet files need none of this and keep every text as it is.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^'*[=+\-@\t\r\n]"
_NUMBER = r"[+-]?((\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[iI][nN][fF])?"


def escape_formula(text: str) -> str:
    """The text as it may stand in a CSV file."""
    return f"'{text}" if re.match(_FORMULA, text) and not re.fullmatch(_NUMBER, text, re.ASCII) else text


def unescape_formula(text: str) -> str:
    """What `escape_formula` was given."""
    return text[1:] if text.startswith("'") and escape_formula(text[1:]) == text else text


def escape_formulas(table: Any) -> tuple[Any, int]:
    """A pyarrow table whose texts and column names no spreadsheet computes, and how many cells were changed."""
    columns, changed = [], 0
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type):
            begins, number = (pc.match_substring_regex(column, pattern) for pattern in (_FORMULA, f"^({_NUMBER})$"))
            found = pc.fill_null(pc.and_not(begins, number), False)
            changed += pc.sum(found).as_py() or 0
            column = pc.if_else(found, pc.binary_join_element_wise("'", column, ""), column)
        columns.append(column)
    return pa.table(columns, names=[escape_formula(name) for name in table.column_names]), changed
