"""Files that once failed go through the parsers that are fuzzed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trust.fuzzing.targets import CORPUS, TARGETS, kept

# Short fits are no good ones, and are not meant to be; what is adapted here rests on a few rows.
pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning"),
]


@pytest.mark.parametrize("target", TARGETS)
def test_what_once_failed_is_read_or_refused(target: str, tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    """And what fuzzing begins from is read, not only refused: a parser that refuses everything would pass."""
    parsers = TARGETS[target](tmp_path)
    for name, parser in parsers.items():
        assert all(parser.attempt(good) for good in parser.good), f"{name} is not read"
    count = 0
    for name, path in kept(target):
        try:
            parsers[name].attempt(path.read_bytes())
        except BaseException as error:
            raise AssertionError(f"{path.relative_to(CORPUS)} is neither read nor refused") from error
        count += 1
    assert count > 0
    tally("inputs fuzzed", count)


def test_kept_files_are_small() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) < 12_000
