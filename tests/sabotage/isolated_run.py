"""Runs of one test in a copy of the tree, with a mistake in it or none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from tests.sabotage.sabotage import Sabotage

ROOT = Path(__file__).parent.parent.parent
COPIED = ("src", "tests", "docs", "pyproject.toml")
SECONDS = 300
"""A test that takes longer has seen nothing: a mistake that hangs is one that nobody is told of."""
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
    _check_import(root)
    report = root / "report.xml"
    options = ["-x", "-p", "no:cacheprovider", f"--basetemp={root / 'tmp'}"]
    # The newer form of such a report has no place for what tests have counted.
    options += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", test, *options],
        cwd=root,
        env=_environment(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        _end(process)
        return Outcome("neither", f"no end after {SECONDS} seconds", time.monotonic() - start)
    kind, reason = _read_report(report) if report.exists() else ("neither", "pytest did not come to an end")
    return Outcome(kind, reason, time.monotonic() - start)


def _environment(root: Path) -> dict[str, str]:
    """The copy comes first for every process that a test starts, and tests run as they do by default."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    environment.pop("EBER_TRUST", None)
    return environment


def _check_import(root: Path) -> None:
    """Make sure that it is the copy that is tested, and not a package that is installed."""
    code = "import importlib.util; print(importlib.util.find_spec('eber').origin)"
    found = subprocess.check_output([sys.executable, "-c", code], cwd=root, env=_environment(root), text=True)
    if not Path(found.strip()).is_relative_to(root):
        raise RuntimeError(f"Tests in {root} would import {found.strip()}.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask pytest to stop, so that fixtures clean up after themselves, and end what is left of it."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
