"""From the cell files to tidy tables: scores, which are the same in every run, times, which are not, warnings, and
what the leak audit found.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eber.io.files import write_atomically
from eber.io.spreadsheet_text import escape_formula
from eber.runs.ledger import Ledger, Record
from eber.runs.spec import Experiment

CELLS_FILE, TIMINGS_FILE, WARNINGS_FILE, FINDINGS_FILE = "cells.csv", "timings.csv", "warnings.csv", "findings.csv"
CELLS_COLUMNS = ("experiment", "setting", "method", "variant", "seed", "metric", "value")
TIMINGS_COLUMNS = ("experiment", "setting", "method", "variant", "seed", "seconds")
WARNINGS_COLUMNS = ("experiment", "setting", "method", "seed", "message")
FINDINGS_COLUMNS = ("experiment", "setting", "method", "seed", "kind", "n_rows", "n_held_out", "sentence")


def write_tables(experiment: Experiment, ledger: Ledger, overrides: Mapping[str, Any], data: str) -> dict[str, str]:
    """Write `cells.csv`, `timings.csv`, `warnings.csv` and `findings.csv`.

    They hold every finished cell in the folder that belongs to the same overrides, data and version, whichever run
    computed it, in the order in which the experiment declares settings and methods. Cells of other parameters stay in
    the folder and out of the tables.

    Returns
    -------
    dict
        File to the SHA-256 of its content.
    """
    records = _matching_records(experiment, ledger, overrides, data)
    tables = {
        CELLS_FILE: _as_csv(CELLS_COLUMNS, _score_rows(records)),
        TIMINGS_FILE: _as_csv(TIMINGS_COLUMNS, _timing_rows(records)),
        WARNINGS_FILE: _as_csv(WARNINGS_COLUMNS, _warning_rows(records)),
        FINDINGS_FILE: _as_csv(FINDINGS_COLUMNS, _finding_rows(records)),
    }
    for name, table in tables.items():
        write_atomically(ledger.folder / name, table)
    return {name: hashlib.sha256(table.encode()).hexdigest() for name, table in tables.items()}


def _matching_records(experiment: Experiment, ledger: Ledger, overrides: Mapping[str, Any], data: str) -> list[Record]:
    # A setting that the overrides contradict cannot have been run with them.
    settings = [setting for setting, changes in experiment.settings.items() if not set(changes) & set(overrides)]
    methods = experiment.all_methods

    def matches(record: Record) -> bool:
        setting, method, seed = (record.identity[key] for key in ("setting", "method", "seed"))
        if setting not in settings or method not in methods:
            return False
        return bool(experiment.cell(setting, method, seed, overrides, data).identity == record.identity)

    def position(record: Record) -> tuple[int, int, int]:
        identity = record.identity
        return settings.index(identity["setting"]), methods.index(identity["method"]), identity["seed"]

    return sorted(filter(matches, ledger.records()), key=position)


def _score_rows(records: Iterable[Record]) -> Iterable[tuple[Any, ...]]:
    for record in records:
        for variant, scores in record.scores.items():
            for metric, value in scores.items():
                yield (*_names(record), variant, record.identity["seed"], metric, repr(value))


def _timing_rows(records: Iterable[Record]) -> Iterable[tuple[Any, ...]]:
    for record in records:
        for variant, seconds in record.seconds.items():
            yield (*_names(record), variant, record.identity["seed"], repr(seconds))


def _warning_rows(records: Iterable[Record]) -> Iterable[tuple[Any, ...]]:
    for record in records:
        for message in record.warnings:
            yield (*_names(record), record.identity["seed"], message)


def _finding_rows(records: Iterable[Record]) -> Iterable[tuple[Any, ...]]:
    for record in records:
        for found in record.findings:
            yield (
                *_names(record),
                record.identity["seed"],
                found.kind,
                found.n_rows,
                found.n_held_out,
                found.sentence,
            )


def _names(record: Record) -> tuple[str, str, str]:
    return record.identity["experiment"], record.identity["setting"], record.identity["method"]


def _as_csv(columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([escape_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return buffer.getvalue()
