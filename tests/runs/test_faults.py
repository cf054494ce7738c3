"""A run that is killed, interrupted or joined by another gives the same scores as one left in peace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from eber.runs.cell import Cell
from eber.runs.progress import Progress
from eber.runs.runner import run
from tests.toy_experiment import TOY

SEEDS, PAUSE, CELLS = 13, "0.03", 104
KILLS = 20


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Scores of a run left in peace."""
    out = tmp_path_factory.mktemp("undisturbed")
    run(TOY, out=out, seeds=SEEDS, overrides={"pause": PAUSE}, progress=Progress())
    return (out / "cells.csv").read_bytes()


def start(out: Path, log: Path, pause: str = PAUSE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from tests.toy_experiment import *; run_from_command_line()",
            str(out),
            str(SEEDS),
            pause,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "EBER_TOY_LOG": str(log)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background is deaf to ctrl-C, and so are its children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end; what it said."""
    _, said = process.communicate(timeout=60)
    return said


def wait_for_cells(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and len(list((out / "cells").glob("*.json"))) < count:
        time.sleep(0.002)


def test_killed_twenty_times_and_resumed_it_gives_the_same_scores(tmp_path: Path, undisturbed: bytes) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    rng = np.random.default_rng(0)
    killed = 0
    (out / "cells").mkdir(parents=True)
    for _ in range(KILLS):
        finished = len(list((out / "cells").glob("*.json")))
        process = start(out, log)
        if wanted := int(rng.integers(0, 6)):  # amid the work; with none wanted, amid the start
            wait_for_cells(out, finished + wanted, process)
        time.sleep(rng.uniform(0, 0.04 if wanted else 0.4))
        killed += process.poll() is None
        process.kill()
        finish(process)
    assert killed == KILLS
    unfinished = CELLS - len(list((out / "cells").glob("*.json")))
    assert unfinished > 0, "every kill hit a run that had work left"
    last = start(out, log)
    finish(last)
    assert last.returncode == 0
    assert (out / "cells.csv").read_bytes() == undisturbed
    # Two workers: a kill may cost the two cells at hand, never a finished one.
    assert len(log.read_text().splitlines()) <= CELLS + 2 * KILLS
    assert not list(out.rglob("*.tmp"))


def test_two_runs_on_one_folder_share_the_work(tmp_path: Path, undisturbed: bytes) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    runs = [start(out, log), start(out, log)]
    for process in runs:
        finish(process)
    assert [process.returncode for process in runs] == [0, 0]
    assert (out / "cells.csv").read_bytes() == undisturbed
    computed = Counter(log.read_text().splitlines())
    assert len(computed) == CELLS
    assert set(computed.values()) == {1}, "no cell was computed twice"


def test_a_run_outlives_its_rival(tmp_path: Path, undisturbed: bytes) -> None:
    """The cells that a killed run had claimed are taken over by the other."""
    out, log = tmp_path / "out", tmp_path / "log"
    runs = [start(out, log), start(out, log)]
    wait_for_cells(out, 10, runs[0])
    runs[0].kill()
    for process in runs:
        finish(process)
    assert runs[1].returncode == 0
    assert (out / "cells.csv").read_bytes() == undisturbed


def test_ctrl_c_ends_the_workers_and_says_how_to_go_on(tmp_path: Path, undisturbed: bytes) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    pause = "0.15"  # long enough for the signal to arrive before the end, on a busy machine too
    process = start(out, log, pause)
    wait_for_cells(out, 5, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    said = finish(process)
    assert process.returncode == 130
    assert "the same command goes on from here" in said
    assert "Traceback" not in said
    computed = log.read_text()
    time.sleep(0.2)
    assert log.read_text() == computed, "no worker is left"
    finish(start(out, log, pause))
    assert (out / "cells.csv").read_bytes() == undisturbed


class Breaks(Progress):
    """Ends a run in an error while others of its cells are claimed."""

    def finished(self, cell: Cell, seconds_left: float | None) -> None:
        """Break."""
        raise ArithmeticError("it cannot be counted")


def test_a_run_that_ends_in_an_error_holds_no_claim(tmp_path: Path) -> None:
    """Another run may go on at once, while somebody looks at the error, which keeps all that it was raised in."""
    with pytest.raises(ArithmeticError, match="cannot be counted") as raised:
        run(TOY, out=tmp_path, seeds=SEEDS, progress=Breaks())
    assert raised.tb is not None
    assert list(tmp_path.rglob(".*.lock")) == []


def test_workers_end_when_their_run_is_killed_however_long_their_cells(tmp_path: Path) -> None:
    process = start(tmp_path / "out", tmp_path / "log", pause="60")
    while not (tmp_path / "log").exists():
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=10)  # ends only when the last holder of its standard error has
