"""What is fuzzed: everything that reads a file which somebody else made, in three targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.trust.mutations import refused_or_read
from tests.trust.test_fuzzed_datasets import PARSERS as DATASETS


@dataclass(frozen=True)
class Parser:
    """Something that reads a file, or a part of one.

    Parameters
    ----------
    good : tuple of bytes
        Inputs that are read, from which the fuzzer begins.
    attempt : callable
        From an input to whether it was read; raises whatever is no clear refusal.
    is_json : bool
        Whether inputs are JSON, of which the fuzzer may change a value at a time.
    """

    good: tuple[bytes, ...]
    attempt: Callable[[bytes], bool]
    is_json: bool = False


Target = Callable[[Path], dict[str, Parser]]
"""From a scratch folder to parsers by name; names are those of folders in the kept corpus."""


def dataset_parsers(scratch: Path) -> dict[str, Parser]:
    """Files of the data experiments, each beside the good files that it needs."""
    return {_slug(name): _dataset_parser(scratch / _slug(name), *entry) for name, entry in DATASETS.items()}


def _dataset_parser(
    folder: Path, name: str, good: bytes, beside: dict[str, bytes], read: Callable[[Path], object]
) -> Parser:
    folder.mkdir()
    for other, content in beside.items():
        (folder / other).write_bytes(content)

    def attempt(content: bytes) -> bool:
        (folder / name).write_bytes(content)
        with refused_or_read(str(folder)):
            read(folder / name)
            return True
        return False

    return Parser((good,), attempt)


def _slug(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")
