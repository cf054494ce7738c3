"""Measuring on a machine that others use too."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

Step = Callable[[], object]


def least_seconds(contestants: dict[str, Step], blocks: int) -> dict[str, float]:
    """Processor seconds of a call, the least over blocks in which the contestants take turns.

    Processor time and not wall time: what others do to the machine meanwhile counts less.
    """
    best = dict.fromkeys(contestants, float("inf"))
    for call in contestants.values():
        call()
    for _ in range(blocks):
        for name, call in contestants.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - start)
    return best


def peak_mebibytes(call: Step) -> float:
    """Most memory that the process held at once during the call, beyond what it held before (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    call()
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    """A line of the process's status, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])
