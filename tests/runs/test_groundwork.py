"""What results are built on is computed once, kept, handed to them, and shown in no table."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eber.runs import MAIN, Cell, CellResult, Experiment
from eber.runs.cell import Part
from eber.runs.groundwork import Groundwork, plan_work
from eber.runs.ledger import Ledger
from eber.runs.progress import LineProgress
from eber.runs.runner import RunSummary, run
from tests import toy_experiment
from tests.one_process import one_process  # noqa: F401

pytestmark = pytest.mark.usefixtures("one_process")

BELOW = ("below 1", "below 2")


def run_cell(cell: Cell) -> CellResult:
    """The toy's, with the mean of what it was handed in the place of accuracy."""
    result = toy_experiment.run_cell(cell)
    if not cell.parts:
        return result
    handed = np.mean([part.arrays["draws"] for part in cell.parts.values()])
    return replace(result, scores={MAIN: {**result.scores[MAIN], "accuracy": float(handed)}})


def built_on(setting: str, method: str) -> Sequence[Part]:
    """Of two methods: each result on both of what lies below."""
    return [(below, method) for below in BELOW] if setting not in BELOW and method in ("ERM", "V-REx") else []


EXPERIMENT: Experiment = replace(
    toy_experiment.TOY,
    groundwork={name: Groundwork({"held_out": name}, f"the work {name}") for name in BELOW},
    built_on=built_on,
    run_cell=run_cell,
)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A line for each cell that is computed."""
    path = tmp_path / "log"
    path.write_text("")
    monkeypatch.setenv("EBER_TOY_LOG", str(path))
    return path


def run_toy(out: Path, experiment: Experiment = EXPERIMENT, **arguments: Any) -> RunSummary:
    return run(experiment, out=out, seeds=1, jobs=1, methods=["EBER", "ERM"], **arguments)


def planned(setting: str, method: str) -> Cell:
    return EXPERIMENT.cell(setting, method, 0, {}, "")


def test_results_are_handed_what_they_are_built_on_which_is_computed_once(tmp_path: Path, log: Path) -> None:
    out, said = tmp_path / "out", io.StringIO()
    assert run_toy(out, progress=LineProgress(said)) == RunSummary(computed=4, reused=0, failures={}), (
        "two methods in two settings"
    )
    computed = log.read_text().splitlines()
    assert len(computed) == len(set(computed)) == 6
    assert [line for line in computed if "below" in line] == [f"ERM, seed 0, the work {name}" for name in BELOW]
    assert "[6/6]" in said.getvalue(), "what is below is work as well"
    cells = pd.read_csv(out / "cells.csv")
    assert set(cells["setting"]) == {"baseline", "shift=0.1"}
    ledger = Ledger(out)
    draws = [ledger.read_arrays(planned(name, "ERM"))["draws"] for name in BELOW]
    scores = cells[(cells["method"] == "ERM") & (cells["metric"] == "accuracy")]["value"]
    assert scores.tolist() == [np.mean(draws)] * 2
    log.write_text("")
    assert run_toy(out) == RunSummary(computed=0, reused=4, failures={})
    assert not log.read_text()


def test_what_is_below_is_computed_again_only_where_a_result_needs_it(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out"
    run_toy(out)
    before = (out / "cells.csv").read_bytes()
    ledger = Ledger(out)
    gone, damaged = (ledger.path(planned(name, "ERM")) for name in BELOW)
    gone.unlink()
    damaged.write_text(damaged.read_text()[:-20])
    log.write_text("")
    assert run_toy(out).computed == 0, "all results are there"
    assert not log.read_text()
    ledger.path(planned("baseline", "ERM")).unlink()
    assert run_toy(out).computed == 1
    assert len(log.read_text().splitlines()) == 3
    assert (out / "cells.csv").read_bytes() == before


def test_results_fail_for_the_reason_of_what_they_are_built_on(tmp_path: Path, log: Path) -> None:
    said = io.StringIO()
    broken = Groundwork({"held_out": "below 1", "broken_method": "ERM"}, "the work below 1")
    experiment = replace(EXPERIMENT, groundwork={**EXPERIMENT.groundwork, "below 1": broken})
    summary = run_toy(tmp_path / "out", experiment, progress=LineProgress(said))
    cause = "ArithmeticError: the loss of ERM is not finite"
    assert summary == RunSummary(computed=2, reused=0, failures=dict.fromkeys(summary.failures, cause))
    assert list(summary.failures) == ["ERM, seed 0, setting baseline", "ERM, seed 0, setting shift=0.1"]
    assert "2 of 4 cells failed" in said.getvalue()
    (report, _) = (tmp_path / "out" / "failures").iterdir()
    assert "in run_cell" in report.read_text(), "the traceback of what failed"
    assert run_toy(tmp_path / "out", EXPERIMENT).exit_status == 0, "with what is below in order they are computed"


def test_a_result_waits_for_what_another_run_is_at(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out"
    ledger, part = Ledger(out), planned("below 1", "ERM")
    theirs = CellResult({}, {}, {"draws": np.full(5, 7.0)})
    summaries = []
    with ledger.claim(part) as claimed:
        assert claimed
        here = threading.Thread(target=lambda: summaries.append(run_toy(out, progress=LineProgress(io.StringIO()))))
        here.start()
        here.join(1.0)
        assert here.is_alive()
        ledger.write(part, theirs, 1.0)
    here.join(60.0)
    assert [summary.computed for summary in summaries] == [4]
    assert "the work below 1" not in log.read_text(), "it was computed elsewhere"
    other = ledger.read_arrays(planned("below 2", "ERM"))["draws"]
    cells = pd.read_csv(out / "cells.csv")
    scores = cells[(cells["method"] == "ERM") & (cells["metric"] == "accuracy")]["value"]
    assert scores.tolist() == [np.mean([np.full(5, 7.0), other])] * 2


def test_settings_and_groundwork_have_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="two settings 'baseline'"):
        replace(EXPERIMENT, groundwork={"baseline": Groundwork({}, "")})


def test_work_is_planned_with_the_parameters_of_the_run() -> None:
    cells = EXPERIMENT.plan(seeds=1, methods=["ERM"], settings=["baseline"], overrides={"pause": 0.5})
    work = plan_work(EXPERIMENT, cells, {"pause": 0.5}, lambda cell: False)
    assert [cell.setting for cell in work.cells] == ["baseline", *BELOW]
    assert [cell.parameters["pause"] for cell in work.missing] == [0.5, 0.5, 0.5]
    assert plan_work(EXPERIMENT, cells, {}, lambda cell: True).missing == []
