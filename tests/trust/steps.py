"""Writes that are broken off at every step, as functions that a process of its own can run."""

from __future__ import annotations

from pathlib import Path

from eber.compare.record import ComparisonRecord
from eber.runs.ledger import Ledger
from eber.tables.model_folder import TableModel
from eber.tables.prediction import predict_file
from tests.toy_experiment import TOY, run_cell


def save_copy(source: Path, target: Path) -> None:
    """Save a model over another, or into a new folder."""
    TableModel.load(source).save(target)


def predict(model: Path, new: Path, out: Path) -> None:
    """Predict a file."""
    predict_file(TableModel.load(model), new, out)


def keep_cell(folder: Path) -> None:
    """Compute a cell and keep it."""
    cell = TOY.plan(seeds=1, methods=["EBER"])[0]
    ledger = Ledger(folder)
    with ledger.claim(cell) as held:
        assert held
        ledger.write(cell, run_cell(cell), 0.5)


def record(folder: Path, table: str) -> None:
    """Say what a comparison is about."""
    fields = dict.fromkeys(ComparisonRecord.__dataclass_fields__)
    ComparisonRecord(**{**fields, "table": table, "suspicions": []}).save(folder)  # type: ignore[arg-type]
