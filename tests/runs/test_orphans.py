"""Workers end with the process that started them, however it ends and whatever they are doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# Loaded by the worker before its work can begin, as torch is: native code that keeps Python's lock for 30 seconds.
SLOW_LIBRARY = """
import ctypes, os, pathlib
pathlib.Path({note!r}).write_text(str(os.getpid()))
ctypes.PyDLL(None).sleep(30)
"""
PARENT = """
from eber.runs.backends.processes import WorkerPool

class Slow:
    def check_local(self): pass
    def __reduce__(self): return __import__, ("slow_library",)

with WorkerPool(Slow(), 1) as pool:
    pool.wait(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread waits for the parent, when it is let")
def test_a_worker_that_is_still_importing_ends_with_its_killed_parent(tmp_path: Path) -> None:
    """Seen to fail: such workers went on until their libraries were loaded."""
    note = tmp_path / "worker"
    (tmp_path / "slow_library.py").write_text(SLOW_LIBRARY.format(note=str(note)))
    path = os.pathsep.join([str(tmp_path), *sys.path])
    parent = subprocess.Popen([sys.executable, "-c", PARENT], env={**os.environ, "PYTHONPATH": path})
    try:
        wait_until(lambda: note.exists() and note.read_text() != "", 30)
        worker = int(note.read_text())
        assert is_running(worker)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_until(lambda: not is_running(worker), 5)
    finally:
        parent.kill()
        parent.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread waits for the parent, when it is let")
def test_a_worker_whose_parent_died_before_it_could_ask_ends_at_once() -> None:
    """The signal comes at the death of a parent, not after it."""
    program = (
        "import multiprocessing.process, types\n"
        "from eber.runs.backends import processes\n"
        "multiprocessing.process._parent_process = types.SimpleNamespace(pid=1 << 30)\n"
        "processes._serve(None, b'')\n"
    )
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], env=surroundings, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, b""), "it did not come to its work"


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it until its new parent has looked."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
