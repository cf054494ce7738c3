"""Stata (.dta) and SPSS (.sav, .zsav), through pyreadstat.

A column whose values all have labels is read as these labels, a category; where only some have one (0 = "none" of a
scale from 0 to 10), the numbers stay. What a file declares as missing is missing.
"""

from __future__ import annotations

from typing import Any

from eber.tables.readers import protocol
from eber.tables.readers.protocol import Format, Rows, begins, naming_reader, never, require_extra, require_path
from eber.tables.readers.whole import whole_rows
from eber.tables.reading import Reading

VALUE_BYTES = 8


def _read(part: Any, what: str, function: str) -> Rows:
    pyreadstat = require_extra("pyreadstat", "statistics", what)
    path = require_path(part, what)
    read = getattr(pyreadstat, function)
    with naming_reader(path, f"a file of {what}"):
        _, found = read(str(path), metadataonly=True)
    protocol.require_room(
        path, VALUE_BYTES * (found.number_rows or 0) * len(found.column_names), protocol.memory_limit()
    )
    with naming_reader(path, f"a file of {what}"):
        frame, metadata = read(str(path))
    notes = []
    for name, labels in metadata.variable_value_labels.items():
        values = set(frame[name].dropna().unique())
        if values and values <= set(labels):
            frame[name] = frame[name].map(labels).astype("category")
        elif values & set(labels):
            shown = ", ".join(f"{value:g} = {label}" for value, label in list(labels.items())[:3] if value in values)
            notes.append(f"Column {name!r} stays numeric: only some of its values have labels ({shown}).")
    return whole_rows(frame, notes)


def _stata(part: Any, reading: Reading) -> Rows:
    return _read(part, "Stata", "read_dta")


def _spss(part: Any, reading: Reading) -> Rows:
    return _read(part, "SPSS", "read_sav")


STATA = Format("Stata", (".dta",), never, _stata, keeps=False)
SPSS = Format("SPSS", (".sav", ".zsav"), begins(b"$FL2", b"$FL3"), _spss, keeps=False)
