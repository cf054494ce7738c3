"""What is finished is not done again, what fails does not stop the rest, and what is damaged is done again."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import signal
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eber.runs import Cell
from eber.runs.ledger import Ledger, Record
from eber.runs.progress import BarProgress, LineProgress, Progress, describe_time_left, progress_on
from eber.runs.runner import RunSummary, run
from eber.runs.schedule import Schedule
from tests.toy_experiment import TOY


class Notes(Progress):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.cells: list[Cell] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.notes.append(message)

    def finished(self, cell: Cell, seconds_left: float | None) -> None:
        """Keep it."""
        self.cells.append(cell)


class Toy:
    """Runs the toy experiment on one folder and counts what is computed."""

    def __init__(self, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out, self._log = out, out.with_name("log")
        monkeypatch.setenv("EBER_TOY_LOG", str(self._log))

    def run(self, **arguments: Any) -> tuple[RunSummary, Notes]:
        """Run it; the log then holds the cells of this run only."""
        self._log.write_text("")
        notes = Notes()
        return run(TOY, out=self.out, **{"seeds": 2, "jobs": 1, "progress": notes, **arguments}), notes

    @property
    def computed(self) -> Counter[str]:
        """How often each cell was computed in the last run."""
        return Counter(self._log.read_text().splitlines())

    def csv(self) -> str:
        """The scores."""
        return (self.out / "cells.csv").read_text()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The toy experiment on a fresh folder."""
    return Toy(tmp_path / "out", monkeypatch)


def test_a_run_gives_tidy_tables_and_the_same_command_again_computes_nothing(toy: Toy) -> None:
    first, notes = toy.run(jobs=2)
    assert first == RunSummary(computed=16, reused=0, failures={})
    assert first.exit_status == 0
    assert len(notes.cells) == 16
    assert set(toy.computed.values()) == {1}
    table = toy.csv()
    rows = list(csv.DictReader(table.splitlines()))
    assert list(rows[0]) == ["experiment", "setting", "method", "variant", "seed", "metric", "value"]
    assert len(rows) == 2 * 2 * (4 * 3 + 2)  # settings × seeds × (methods × metrics + EBER's second variant)
    assert [row["setting"] for row in rows] == sorted(row["setting"] for row in rows), "settings as declared"
    assert list(dict.fromkeys(row["method"] for row in rows)) == ["Bayes-x", "EBER", "ERM", "V-REx"]
    again, _ = toy.run(jobs=2)
    assert again == RunSummary(computed=0, reused=16, failures={})
    assert toy.computed == Counter()
    assert toy.csv() == table


def test_workers_use_one_thread_and_leave_ctrl_c_to_the_run(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    toy.run(jobs=2)
    cells = TOY.plan(seeds=2)
    arrays = [Ledger(toy.out).read_arrays(cell) for cell in cells]
    assert {str(a["threads"]) for a in arrays} == {"1"}
    assert not any(a["hears_ctrl_c"] for a in arrays)
    assert os.environ["OMP_NUM_THREADS"] == "7", "the run itself is left as it was"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_damaged_cells_are_named_and_computed_again_and_only_they(toy: Toy) -> None:
    toy.run(settings=["baseline"])
    table = toy.csv()
    ledger = Ledger(toy.out)
    truncated, stripped = TOY.plan(seeds=2, settings=["baseline"], methods=["EBER", "ERM"])[:2]
    ledger.path(truncated).write_bytes(ledger.path(truncated).read_bytes()[:100])
    ledger.path(stripped).with_suffix(".npz").unlink()
    summary, notes = toy.run(settings=["baseline"])
    assert summary.computed == 2
    assert toy.computed == Counter([str(truncated), str(stripped)])
    assert [Path(note.split(" ")[0]).stem for note in notes.notes] == [
        truncated.file_stem,
        stripped.file_stem,
    ]
    assert toy.csv() == table


def test_changed_parameters_do_not_reuse_old_cells_nor_mix_with_them(toy: Toy) -> None:
    toy.run(settings=["baseline"])
    table = toy.csv()
    summary, _ = toy.run(settings=["baseline"], overrides={"shift": "0.05"})
    assert summary.computed == 8
    assert toy.csv() != table
    assert len(toy.csv().splitlines()) == len(table.splitlines())
    summary, _ = toy.run(settings=["baseline"])
    assert summary.reused == 8, "the cells of the first parameters are still there"
    assert toy.csv() == table


def test_a_folder_gathers_what_belongs_together(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods and seeds one after the other give the table of all at once."""
    toy.run(methods=["EBER"], seeds=[1])
    toy.run(methods=["ERM"], seeds=[1])
    toy.run(methods=["ERM", "EBER"], seeds=[0])
    at_once = Toy(tmp_path / "at-once", monkeypatch)
    at_once.run(methods=["EBER", "ERM"])
    assert toy.csv() == at_once.csv()


def test_a_failing_cell_is_reported_with_its_cause_and_the_others_go_on(toy: Toy) -> None:
    broken = {"broken_method": "ERM", "killed_method": "V-REx"}
    summary, notes = toy.run(settings=["baseline"], seeds=1, overrides=broken)
    assert summary.exit_status == 1
    assert summary.computed == 2
    assert summary.failures == {
        "ERM, seed 0, setting baseline": "ArithmeticError: the loss of ERM is not finite",
        "V-REx, seed 0, setting baseline": "its process was ended by SIGABRT",
    }
    assert any("ArithmeticError: the loss of ERM" in note for note in notes.notes)
    assert "the same command tries them again" in notes.notes[-1]
    (traceback,) = (toy.out / "failures").glob("ERM*.txt")
    assert "toy_experiment.py" in traceback.read_text()


def test_warnings_are_kept_and_not_printed(toy: Toy, capfd: pytest.CaptureFixture[str]) -> None:
    _, notes = toy.run(settings=["baseline"], overrides={"warning_method": "ERM"})
    assert (toy.out / "warnings.csv").read_text() == (
        "experiment,setting,method,seed,message\n"
        "toy,baseline,ERM,0,RuntimeWarning: the fit of seed 0 looks odd\n"
        "toy,baseline,ERM,1,RuntimeWarning: the fit of seed 1 looks odd\n"
    )
    assert notes.notes == ["2 of 8 cells gave warnings: see warnings.csv."]
    assert capfd.readouterr().err == ""


def test_a_worker_that_cannot_start_ends_the_run_and_says_so(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here: run_cell is in a module that exists in this process alone."""
    module = types.ModuleType("only_here")
    exec("def run_cell(cell): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    experiment = dataclasses.replace(TOY, run_cell=module.run_cell)
    with pytest.raises(RuntimeError, match="worker process could not start"):
        run(experiment, out=toy.out, seeds=1, progress=Progress())


def test_a_run_needs_a_job(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one job"):
        run(TOY, out=tmp_path, seeds=1, jobs=0)


def record_of(cell: Cell, seconds: float) -> Record:
    return Record(cell.identity, {}, {}, seconds, (), ())


def test_unknown_cells_run_first_then_the_longest() -> None:
    bayes, eber, erm, vrex = TOY.plan(seeds=1, settings=["baseline"])
    schedule = Schedule([bayes, eber, erm, vrex], [record_of(bayes, 1.0), record_of(eber, 9.0)])
    assert schedule.next() == [erm]
    schedule.learn(erm, 2.0)
    assert schedule.next() == [vrex]
    assert [schedule.next() for _ in range(2)] == [[eber], [bayes]]


def test_seeds_of_one_block_run_together_whichever_are_left() -> None:
    cells = [cell for cell in TOY.plan(seeds=7, settings=["baseline"], methods=["ERM"]) if cell.seed != 1]
    schedule = Schedule(cells, [])
    assert [[cell.seed for cell in schedule.next(5)] for _ in range(2)] == [[0, 2, 3, 4], [5, 6]]
    assert not len(schedule)


def test_time_left_is_the_expected_work_over_the_jobs() -> None:
    bayes, eber, erm, _ = TOY.plan(seeds=1, settings=["baseline"])
    assert Schedule([eber], []).seconds_left([], 2) is None
    schedule = Schedule([bayes, eber], [record_of(bayes, 10.0), record_of(eber, 30.0)])
    assert schedule.seconds_left([], 2) == pytest.approx(20.0)
    assert schedule.seconds_left([erm], 2) == pytest.approx(25.0), "an unknown cell counts as a typical one, half done"


def test_a_method_is_expected_to_take_as_long_as_elsewhere() -> None:
    """Where each setting is run once, as in a comparison, nothing else is known of it."""
    first, second = (TOY.plan(seeds=1, settings=[setting]) for setting in list(TOY.settings)[:2])
    slow, quick, other = second[1], second[2], first[3]
    schedule = Schedule([quick, slow, other], [record_of(first[1], 40.0), record_of(first[2], 2.0)])
    assert schedule.next() == [other], "of which nothing is known"
    assert schedule.seconds_left([], 1) == pytest.approx(42.0)
    assert schedule.next() == [slow], "the longest first"
    assert schedule.seconds_left([slow], 2) == pytest.approx(20.0), "one worker is at it, and half is done"


def test_the_first_fit_of_a_worker_does_not_spoil_the_estimate() -> None:
    """It pays for imports."""
    cells = TOY.plan(seeds=4, methods=["EBER"], settings=["baseline"])
    schedule = Schedule(cells[3:], [record_of(cell, s) for cell, s in zip(cells, (90.0, 5.0, 5.0), strict=False)])
    assert schedule.seconds_left([], 1) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "not known"), (0.0, "done"), (0.2, "1 s"), (80, "80 s"), (600, "10 min"), (9000, "2.5 h")],
)
def test_time_left_is_said_in_suitable_units(seconds: float | None, text: str) -> None:
    assert text in describe_time_left(seconds)


def test_lines_tell_where_the_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    progress = LineProgress(sys.stderr)
    cells = TOY.plan(seeds=1, settings=["baseline"])
    progress.begin(4, 1)
    for cell in cells[1:]:
        progress.finished(cell, 12.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "4 cells, 1 of them finished before",
        "[2/4] EBER, seed 0, setting baseline; about 12 s left",
        "[4/4] V-REx, seed 0, setting baseline; about 12 s left",
    ], "at most one line a second, and the last"


def test_a_bar_survives_names_with_brackets() -> None:
    stream = io.StringIO()
    progress = BarProgress(stream)
    progress.begin(1, 0)
    progress.note("[/bold] is no markup here")
    progress.finished(dataclasses.replace(TOY.plan(seeds=1)[0], circumstances="[/red]"), 0.0)
    progress.end()
    assert "[/bold] is no markup here" in stream.getvalue()
    assert "[/red]" in stream.getvalue()
    assert isinstance(progress_on(stream), LineProgress), "a bar is for terminals"
