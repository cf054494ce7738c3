"""The three targets by name, and the kept files of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.trust.fuzzing.model_parsers import model_parsers
from tests.trust.fuzzing.parsers import Target, dataset_parsers
from tests.trust.fuzzing.table_parsers import table_parsers

TARGETS: dict[str, Target] = {"tables": table_parsers, "models": model_parsers, "datasets": dataset_parsers}
CORPUS = Path(__file__).parents[1] / "corpus"
"""Small files that once failed, as TARGET/PARSER/WHAT-IT-IS."""


def kept(target: str) -> Iterator[tuple[str, Path]]:
    """The kept files of a target, each with the name of its parser."""
    for path in sorted(path for path in (CORPUS / target).rglob("*") if path.is_file()):
        yield path.parent.name, path
