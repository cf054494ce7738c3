"""SIGKILL at random moments of every command: given again, it goes on, and nothing finished is lost or done twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eber.datasets.hospitals import draw_hospitals
from eber.exceptions import ModelFileError
from tests.trust.effort import times
from tests.trust.models import NAMES, fitted_model, hospitals, predictions
from tests.trust.processes import eber_command, killed_command

Tally = Callable[[str, int], None]

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


class Killer:
    """Runs a command once in peace, to know how long it takes, and then as often as asked until it is killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.log, self.rng = folder / "log", np.random.default_rng(seed)
        self.attempts = self.killed = 0

    def in_peace(self, *arguments: Any) -> float:
        start = time.monotonic()
        status, said = eber_command(list(arguments), self.log)
        assert status == 0, said
        return time.monotonic() - start

    def kill(self, seconds: float, *arguments: Any, begun: Callable[[], bool] | None = None) -> None:
        """At a random moment of so many seconds; every other time, soon after what must not be lost has begun."""
        if begun is None or self.attempts % 2:
            begun, longest = (lambda: True), seconds
        else:
            longest = seconds / 20
        self.attempts += 1
        self.log.unlink(missing_ok=True)
        self.killed += killed_command(list(arguments), self.log, begun, self.rng.uniform(0, longest))


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


def test_a_killed_fit_leaves_the_old_model_or_the_new(tmp_path: Path, tally: Tally) -> None:
    """First where no model is, then over a model of another seed. The same command gives the same model.

    Seen to fail when the old model was removed before the fit.
    """
    table, killer = hospitals(tmp_path), Killer(tmp_path, 0)
    seconds, whole = 0.0, []
    for seed in (0, 1):
        arguments = ["fit", table, *NAMES, "--quick", "--no-scores", "--seed", seed, "--out"]
        seconds = killer.in_peace(*arguments, tmp_path / f"peace{seed}")
        whole.append(predictions(tmp_path / f"peace{seed}", tmp_path))
    model = tmp_path / "model"

    def fitting() -> bool:
        """The first that is said are notes about the table, when the folder has been prepared."""
        return killer.log.exists() and killer.log.stat().st_size > 0

    for attempt in range(times(3, 60)):
        there = (model / "table.json").exists()
        killer.kill(seconds, *arguments[:-2], attempt % 2, "--out", model, begun=fitting)
        try:
            found = predictions(model, tmp_path)
            assert any(np.array_equal(found, good) for good in whole)
        except ModelFileError as refused:
            assert "holds no model" in str(refused)  # noqa: PT017 (both ways are right)
            assert not there, "the old model is lost"
            killer.in_peace(*arguments[:-2], attempt % 2, "--out", model)  # the next one is over a model
    killer.in_peace(*arguments[:-2], 1, "--out", model)
    np.testing.assert_array_equal(predictions(model, tmp_path), whole[1])
    assert leftovers(model) == []
    tally("faults injected", killer.killed)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_killed_predictions_are_not_there_or_whole(suffix: str, tmp_path: Path, tally: Tally) -> None:
    model, new, killer = tmp_path / "model", tmp_path / "new.csv", Killer(tmp_path, 1)
    fitted_model(tmp_path).save(model)
    draw_hospitals(40_000, random_state=1).to_csv(new, index=False)
    out = tmp_path / "out" / f"p{suffix}"
    seconds = killer.in_peace("predict", model, new, "--out", out)
    whole = out.read_bytes()

    def writing() -> bool:
        return any(path.suffix != ".lock" for path in out.parent.iterdir())

    for _ in range(times(1, 30)):
        out.unlink(missing_ok=True)
        killer.kill(seconds, "predict", model, new, "--out", out, begun=writing)
        assert not out.exists() or out.read_bytes() == whole
    killer.in_peace("predict", model, new, "--out", out)
    assert out.read_bytes() == whole
    assert leftovers(out.parent) == []
    tally("faults injected", killer.killed)


def compare(folder: Path) -> list[Any]:
    table = hospitals(folder, 330)
    return ["compare", table, *NAMES, "--quick", "--methods", "logistic regression,erm", "--jobs", 1, "--out"]


def reproduce(folder: Path) -> list[Any]:
    small = ["--set", "repetitions=20", "--set", "draws=20000"]
    return ["reproduce", "motivating", "--seeds", 4, *small, "--jobs", 1, "--out"]


@pytest.mark.parametrize("command", [compare, reproduce])
def test_a_killed_run_goes_on_where_it_was(command: Callable[[Path], list[Any]], tmp_path: Path, tally: Tally) -> None:
    """The runner itself is killed twenty times in tests/runs/test_faults.py."""
    arguments, killer = command(tmp_path), Killer(tmp_path, 2)
    seconds = killer.in_peace(*arguments, tmp_path / "peace")
    whole = (tmp_path / "peace" / "cells.csv").read_bytes()
    out, finished = tmp_path / "out", dict[Path, int]()

    def cells() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (out / "cells").glob("*.json")}

    def one_more() -> bool:
        return len(cells()) > len(finished)

    for _ in range(times(1, 30)):
        killer.kill(seconds, *arguments, out, begun=one_more)
        assert finished.items() <= cells().items(), "a finished cell was lost or done again"
        finished = cells()
    assert finished, "there is something to lose"
    killer.in_peace(*arguments, out)
    assert finished.items() <= cells().items()
    assert (out / "cells.csv").read_bytes() == whole
    assert leftovers(out) == []
    tally("faults injected", killer.killed)
