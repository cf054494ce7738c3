"""What all tests share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_TALLY = "tally: "


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Count something that a test did, for the line at the end of the run; the counts of all tests are added up."""
    return lambda what, count: record_property(_TALLY + what, count)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the tests have tried, in figures."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", ()):
            if report.when == "call" and name.startswith(_TALLY):
                counts[name.removeprefix(_TALLY)] += value
    if counts:
        terminalreporter.section("tried and withstood")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>9,} {what}")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data, or a skip."""
    folder = os.environ.get("EBER_DATA")
    if not folder:
        pytest.skip("EBER_DATA does not name the folder with the real data")
    return Path(folder)
