"""Runs in this process: what a worker process would do, without the seconds that it takes to start."""

from __future__ import annotations

from pathlib import Path

import pytest

from eber.runs import runner
from eber.runs.cell import Cell
from eber.runs.ledger import Ledger
from eber.runs.spec import Experiment
from eber.runs.workers import CellOutcome, _compute


class OneProcess:
    """Stands in for the pool of workers."""

    has_idle_worker = True

    def __init__(self, experiment: Experiment, folder: Path, size: int) -> None:
        self._experiment, self._ledger = experiment, Ledger(folder)
        self.running: list[Cell] = []

    def __enter__(self) -> OneProcess:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def submit(self, cells: list[Cell]) -> None:
        """Keep cells until they are waited for."""
        self.running = cells
        self.has_idle_worker = False

    def wait(self, timeout: float) -> list[tuple[Cell, CellOutcome]]:
        """Compute them now."""
        done = list(zip(self.running, _compute(self.running, self._experiment, self._ledger), strict=True))
        self.running, self.has_idle_worker = [], True
        return done


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker processes in this test."""
    monkeypatch.setattr(runner, "WorkerPool", OneProcess)
