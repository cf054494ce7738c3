"""Excel workbooks (.xlsx): one sheet, its first row that is not empty as the header."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eber.tables.readers import protocol
from eber.tables.readers.protocol import Format, Rows, naming_reader, never, require_extra, require_path
from eber.tables.readers.whole import table_of_cells, whole_rows
from eber.tables.reading import Reading

SUFFIXES = (".xlsx", ".xlsm")
ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
"""What Excel shows where a formula has no value."""


def _open(part: Any, reading: Reading) -> Rows:
    openpyxl = require_extra("openpyxl", "excel", "Excel workbooks")
    path = require_path(part, "A workbook")
    with naming_reader(path, "an Excel workbook"), zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    protocol.require_room(path, unpacked, protocol.memory_limit())
    with naming_reader(path, "an Excel workbook"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        sheet = book[_sheet_name(path, book.sheetnames, reading.sheet)]
        with naming_reader(path, "an Excel workbook"):
            rows = list(_rows(sheet))
            formula = _first_without_value(openpyxl, path, sheet) if any(None in row for row in rows) else ""
        if formula:
            raise ValueError(
                f"Cell {formula} of {path} holds a formula without its value: open the workbook in Excel or "
                "LibreOffice, and save it there."
            )
        if not rows:
            raise ValueError(f"Sheet {sheet.title!r} of {path} is empty.")
        width = max((j + 1 for j, name in enumerate(rows[0]) if name is not None), default=0)
        width = max([width, *(len(row) for row in rows)])
        header = [*rows[0], *[None] * (width - len(rows[0]))]
        return whole_rows(table_of_cells(path, header, rows[1:]))
    finally:
        book.close()


def _sheet_name(path: object, names: list[str], wanted: str | None) -> str:
    listed = ", ".join(map(repr, names))
    if wanted is not None and wanted not in names:
        raise ValueError(f"{path} has no sheet {wanted!r}; its sheets are {listed}.")
    if wanted is None and len(names) != 1:
        raise ValueError(f"{path} has {len(names)} sheets ({listed}); name the one to be read with --sheet.")
    return wanted or names[0]


def _rows(sheet: Any) -> Iterator[list[Any]]:
    """Rows without empty cells at their end, and without empty rows."""
    for cells in sheet.iter_rows(values_only=True):
        row = [None if isinstance(value, str) and value in ERRORS else value for value in cells]
        while row and row[-1] is None:
            row.pop()
        if row:
            yield row


def _first_without_value(openpyxl: Any, path: Path, sheet: Any) -> str:
    """The first cell with a formula whose value the program that wrote it has not worked out; empty without one."""
    book = openpyxl.load_workbook(path, read_only=True)
    with contextlib.closing(book):
        for formulas, values in zip(book[sheet.title].iter_rows(), sheet.iter_rows(), strict=True):
            for formula, value in zip(formulas, values, strict=True):
                # The empty text that =IF(A2="","",A2) may give is a value, of type "str".
                if formula.data_type == "f" and value.value is None and value.data_type == "n":
                    return str(formula.coordinate)
    return ""


FORMAT = Format("an Excel workbook", SUFFIXES, never, _open, takes=("sheet",), keeps=False)
