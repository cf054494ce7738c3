"""Cells that are built on others wait for them, and are handed what they found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eber.runs.cell import Cell, CellResult
from eber.runs.ledger import Ledger
from eber.runs.runner import with_parts
from eber.runs.schedule import Schedule
from tests.toy_experiment import TOY

PARTS = {"Pool": ("a", "b")}


def cell(method: str, setting: str = "s", seed: int = 0) -> Cell:
    return Cell("toy", setting, method, seed, {})


def test_a_cell_waits_until_what_it_is_built_on_is_finished() -> None:
    schedule = Schedule([cell("Pool"), cell("a"), cell("b"), cell("a", "t")], [], PARTS)
    assert schedule.next() == [cell("a")]
    assert schedule.next(running=[cell("a")]) == [cell("b")]
    assert schedule.next(running=[cell("a"), cell("b")]) == [cell("a", "t")]
    assert schedule.next(running=[cell("b"), cell("a", "t")]) == [], "the last part is still running"
    assert len(schedule) == 1
    assert schedule.next(running=[cell("a", "t")]) == [cell("Pool")]


def test_a_cell_whose_parts_are_not_asked_for_does_not_wait() -> None:
    assert Schedule([cell("Pool")], [], PARTS).next() == [cell("Pool")]


def test_a_cell_is_handed_the_finished_results_that_it_is_built_on(tmp_path: Path) -> None:
    ledger, experiment = Ledger(tmp_path), replace(TOY, built_on=PARTS)
    assert with_parts(cell("Pool"), experiment, ledger).parts == {}
    ledger.write(cell("a"), CellResult({"main": {"nll": 0.5}}, {"main": 2.0}, {"proba": np.eye(2)}), 2.0)
    handed = with_parts(cell("Pool"), experiment, ledger)
    assert set(handed.parts) == {"a"}
    np.testing.assert_array_equal(handed.parts["a"].arrays["proba"], np.eye(2))
    assert handed.parts["a"].seconds == {"main": 2.0}
    assert handed == cell("Pool"), "what a cell is does not depend on it"
    assert handed.file_stem == cell("Pool").file_stem
