"""Runs of one test in a copy of the tree, with a mistake in it or none.

Each run is a process of its own, forked from one that has imported the large libraries and nothing of the tree: they
are the same for all, and take longer to import than most tests take.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shutil
import signal
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Literal

import pytest

from tests.sabotage.sabotage import Sabotage

ROOT = Path(__file__).parent.parent.parent
COPIED = ("src", "tests", "docs", "README.md", "pyproject.toml")
SECONDS = 300
"""A test that takes longer has seen nothing: a mistake that hangs is one that nobody is told of."""
LARGE_LIBRARIES = [
    "torch",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.ensemble",
    "plotly.io",
]
CLUMSY = ("SyntaxError", "NameError", "ImportError", "ModuleNotFoundError")
"""Errors of a sabotage that breaks the file and not the promise."""


@dataclass(frozen=True)
class Outcome:
    """What became of a test.

    Parameters
    ----------
    kind : str
        "failed" is a failure of the test itself, for one of its parameters at least; "neither" is everything that is
        no answer: an error before or after the test, a skip, no test, no end.
    reason : str
        One line, of what did not pass.
    seconds : float
    """

    kind: Literal["passed", "failed", "neither"]
    reason: str
    seconds: float


@contextmanager
def copied_tree(sabotage: Sabotage | None = None) -> Iterator[Path]:
    """A copy of what the tests need, with the mistake in it, for as long as the block runs."""
    # A process that a test has killed may have children that write for a moment longer.
    with TemporaryDirectory(prefix="sabotage-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("*.egg-info"))
            else:
                shutil.copy(ROOT / name, root / name)
        if sabotage is not None:
            sabotage.path(root).write_text(sabotage.content(root))
        yield root


def run_test(test: str, root: Path) -> Outcome:
    """Run a test in a tree, up to its first failure."""
    report = root / "report.xml"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LARGE_LIBRARIES)
    process = context.Process(target=_run_pytest, args=(test, root, report))
    start = time.monotonic()
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        _end(process)
        return Outcome("neither", f"no end after {SECONDS} seconds", time.monotonic() - start)
    kind, reason = _read_report(report) if report.exists() else ("neither", "pytest did not come to an end")
    return Outcome(kind, reason, time.monotonic() - start)


def _run_pytest(test: str, root: Path, report: Path) -> None:
    """In a process of its own: what ``python -m pytest`` does in the folder `root`, without a word."""
    os.setsid()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(root)
    # The copy comes first, here and for every process that a test starts, and tests run as they do by default.
    first = [str(root / "src"), str(root)]
    os.environ["PYTHONPATH"] = os.pathsep.join(first)
    os.environ.pop("EBER_TRUST", None)
    sys.path[:] = first + [path for path in sys.path if path and not Path(path).is_relative_to(ROOT / "src")]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "__mp_main__")]:
        del sys.modules[name]  # of the tree that is not tested
    sys.modules["__main__"] = ModuleType("__main__")
    found = importlib.util.find_spec("eber")
    if found is None or found.origin is None or not Path(found.origin).is_relative_to(root):
        raise RuntimeError(f"Tests in {root} would import {found}.")
    options = ["-x", "-p", "no:cacheprovider", f"--basetemp={root / 'tmp'}"]
    # The newer form of such a report has no place for what tests have counted.
    options += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
    sys.exit(pytest.main([test, *options]))


def _end(process: multiprocessing.process.BaseProcess) -> None:
    """Ask pytest to stop, so that fixtures clean up after themselves, and end what is left of it."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    process.join(20)
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
        process.join()


def _read_report(path: Path) -> tuple[Literal["passed", "failed", "neither"], str]:
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    if not cases:
        return "neither", "there is no such test"
    trouble = {found.tag: found for case in cases for found in case if found.tag in ("failure", "error", "skipped")}
    reasons = {kind: " ".join(found.get("message", "").split()) for kind, found in trouble.items()}
    if "failure" in reasons and not reasons["failure"].startswith(CLUMSY):
        return "failed", reasons["failure"]
    if reasons:
        return "neither", "; ".join(f"{kind}: {reason}" for kind, reason in reasons.items())
    return "passed", ""
