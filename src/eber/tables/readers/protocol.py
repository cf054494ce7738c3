"""What every format of tables gives, and what formats share.

A format is one file in this folder: a `Format` that says how its files are known and how they are opened. What it opens
is `Rows`: the header, what holds the rows, and the rows batch after batch. A format whose rows come at once, such as a
workbook or the answer of a query, gives them as `whole_rows`: they are read as the Parquet file is that they would be
written to, so that what is read is what the fingerprint is of.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pyarrow as pa

from eber.io.machine import memory_bytes
from eber.tables.reading import Reading

BUFFER_BYTES = 1 << 20


class Rows(Protocol):
    """A table that was opened.

    Attributes
    ----------
    header : tuple of str
        Columns as they are stored; a name may be there twice, or empty.
    parts : tuple of Path or pyarrow Buffer
        What holds the rows, in order: files, or the bytes of one.
    part_names : tuple of str
        Of each part, what is read from its name: partitions, or the name itself as a column. Empty where nothing is.
    decimal_comma : bool
        Whether numbers are written as 3,5.
    notes : tuple of str
        What a reader of the table should know about how it was read.
    """

    @property
    def header(self) -> tuple[str, ...]: ...

    @property
    def parts(self) -> tuple[Any, ...]: ...

    @property
    def part_names(self) -> tuple[str, ...]: ...

    @property
    def decimal_comma(self) -> bool: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        """Record batches with missing values as nulls: all columns in the header's order, or those asked for."""

    def sections(self, rows: int) -> Sequence[Rows]:
        """The same rows in pieces that can be read apart, in their order, of about so many rows where that is possible.

        Files of a folder are pieces at least, and row groups of Parquet.
        """


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Parameters
    ----------
    name : str
        As messages call it.
    suffixes : tuple of str
        How names of its files end.
    is_begun : callable
        Whether a file is of this format by its first 16 bytes, whatever its name.
    open : callable
        From a path, or the bytes of a file, and the `Reading`, to its `Rows`.
    takes : tuple of str
        The options of `Reading` that mean something here.
    keeps : bool
        Whether rows are read from the file itself; otherwise they were taken from it when it was opened.
    """

    name: str
    suffixes: tuple[str, ...]
    is_begun: Callable[[bytes], bool]
    open: Callable[[Any, Reading], Rows]
    takes: tuple[str, ...] = ()
    keeps: bool = True


def begins(*starts: bytes) -> Callable[[bytes], bool]:
    """Known by its first bytes."""
    return lambda start: start.startswith(starts)


def never(start: bytes) -> bool:
    """Not known by its first bytes."""
    return False


def readable(part: Any) -> Any:
    """A file by its path, or the bytes of one, as pyarrow's readers take it."""
    return pa.BufferReader(part) if isinstance(part, pa.Buffer) else part


def require_extra(module: str, extra: str, what: str) -> ModuleType:
    """The module of an optional dependency, or how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed to read {what}: pip install 'eber[{extra}]', or export the table as CSV or Parquet."
        ) from error


def memory_limit() -> int:
    """Bytes that a table may take when all of it is read."""
    return memory_bytes() // 4


class TooLargeError(ValueError):
    """The table does not fit into the memory of this machine."""


def require_room(title: object, size: float, limit: int) -> None:
    """Refuse a table that takes more than a quarter of the machine's memory."""
    if size > limit:
        raise TooLargeError(
            f"{title} takes more than {limit / 2**30:.2g} GiB of memory, a quarter of what there is here. "
            "Give it to eber prepare, which makes a folder of it that eber fit learns from with little memory; "
            "or draw a sample of its rows, leave out columns, or use a larger machine."
        )


@contextlib.contextmanager
def naming_damage(title: str) -> Iterator[None]:
    """Turn what parsers and decompressors raise into one sentence with the name of the file."""
    try:
        yield
    except (pa.ArrowException, UnicodeError, csv.Error, OSError) as error:
        # Decompressors also raise OSError; the system's own, such as "permission denied", have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = first_line(error)
        if isinstance(error, UnicodeError) or "UTF8" in reason or "UTF-8" in reason:
            raise ValueError(
                f"{title} is not written in UTF-8, or not in the encoding that was named ({reason}); save it as UTF-8, "
                "or name its own with --encoding, such as latin-1."
            ) from error
        raise ValueError(f"{title} cannot be read as a table: {reason}.") from error


@contextlib.contextmanager
def naming_reader(title: object, what: str) -> Iterator[None]:
    """The same for a library of its own, which may raise anything on a damaged file and warns of much."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"{title} cannot be read as {what}: {first_line(error)}.") from error


def first_line(error: BaseException) -> str:
    """What an error says, in a line."""
    return str(error).strip().split("\n")[0].rstrip(".!")[:300] or type(error).__name__


def require_path(part: Any, what: str) -> Path:
    """The path of a part; libraries of some formats read no bytes from memory."""
    if not isinstance(part, Path):
        raise ValueError(f"{what} can be read from a file only; save it, and give its path.")
    return part
