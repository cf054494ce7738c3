"""Tables, in the formats that are read from untrusted bytes."""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyreadstat

from eber.datasets.hospitals import draw_hospitals
from tests.trust.fuzzing.parsers import Parser
from tests.trust.test_fuzzed_tables import KINDS, as_excel, read_or_refuse

ROWS = 24
INSIDE = ("xl/worksheets/sheet1.xml", "xl/workbook.xml")


def table_parsers(scratch: Path) -> dict[str, Parser]:
    """Every format by the bytes of its file, and the inside of a workbook, which no blind change reaches."""
    table = draw_hospitals(ROWS)
    parsers = {}
    for name, encode in KINDS.items():
        parsers[name] = Parser((encode(table),), functools.partial(_attempt, scratch / name, bytes))
    for name, write in (("table.dta", pyreadstat.write_dta), ("table.sav", pyreadstat.write_sav)):
        write(table, str(scratch / name))
        parsers[name] = Parser(((scratch / name).read_bytes(),), functools.partial(_attempt, scratch / name, bytes))
    workbook = as_excel(table)
    for inside in INSIDE:
        name = f"workbook-with-{Path(inside).name}"
        wrap = functools.partial(_with_entry, workbook, inside)
        path = scratch / f"{name}.xlsx"
        parsers[name] = Parser((_entry(workbook, inside),), functools.partial(_attempt, path, wrap))
    return parsers


def _attempt(path: Path, wrap: Callable[[bytes], bytes], content: bytes) -> bool:
    path.write_bytes(wrap(content))
    return read_or_refuse(path)


def _entry(workbook: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        return archive.read(name)


def _with_entry(workbook: bytes, name: str, content: bytes) -> bytes:
    """The workbook with one of its files replaced."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive, zipfile.ZipFile(changed, "w") as copy:
        for entry in archive.namelist():
            copy.writestr(entry, content if entry == name else archive.read(entry))
    return changed.getvalue()
