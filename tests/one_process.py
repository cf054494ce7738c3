"""Runs in this process: what a worker process would do, without the seconds that it takes to start."""

from __future__ import annotations

from typing import Any

import pytest

from eber.runs.backends import Work, choice


class OneProcess:
    """Stands in for the pool of workers."""

    has_idle, size = True, 1

    def __init__(self, work: Work, size: int) -> None:
        self._work = work
        self.running: list[Any] = []

    def __enter__(self) -> OneProcess:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def submit(self, tasks: list[Any]) -> None:
        """Keep tasks until they are waited for."""
        self.running = tasks
        self.has_idle = False

    def wait(self, timeout: float) -> list[tuple[Any, Any]]:
        """Compute them now."""
        done = list(zip(self.running, self._work.compute(self.running), strict=True)) if self.running else []
        self.running, self.has_idle = [], True
        return done


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker processes in this test."""
    monkeypatch.setattr(choice, "WorkerPool", OneProcess)
