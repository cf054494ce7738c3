"""Folders: Parquet files as one table, with partitions (site=A/) as columns; or CSV files, with their name as one."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from eber.tables.readers import parquet
from eber.tables.readers.csv import CSVRows, open_csv
from eber.tables.readers.parquet import open_parquet
from eber.tables.readers.protocol import Rows
from eber.tables.reading import Reading

FILE_COLUMN = "file"
CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""The partition of rows without a value."""
UNFINISHED = "_temporary"
LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Apache Hudi", "metadata/*.metadata.json": "Apache Iceberg"}
"""What lies in folders that programs keep tables with a history in."""


@dataclass(frozen=True)
class CSVFolderRows:
    """The rows of several CSV files with the same columns, and the file that each is from.

    Parameters
    ----------
    files : tuple of CSVRows
    part_names : tuple of str
        What the column `file` has for each: its path in the folder without suffix.
    """

    files: tuple[CSVRows, ...]
    part_names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def header(self) -> tuple[str, ...]:
        """The columns of the files, then the file."""
        return (*self.files[0].header, FILE_COLUMN)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The files."""
        return tuple(file.part for file in self.files)

    @property
    def decimal_comma(self) -> bool:
        """As in each of them."""
        return self.files[0].decimal_comma

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        """File after file."""
        for file, name in zip(self.files, self.part_names, strict=True):
            for batch in file.batches(columns, rows):
                named = pa.array([name] * batch.num_rows, pa.string())
                yield pa.RecordBatch.from_arrays([*batch.columns, named], [*batch.schema.names, FILE_COLUMN])

    def sections(self, rows: int) -> list[CSVFolderRows]:
        """The files."""
        return [replace(self, files=(f,), part_names=(n,)) for f, n in zip(self.files, self.part_names, strict=True)]


def open_folder(folder: Path, reading: Reading) -> Rows:
    """Open the Parquet files of a folder and those in it, or else its CSV files."""
    _require_plain_files(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_passed_over(path, folder))
    found = [path for path in files if path.suffix in parquet.FORMAT.suffixes]
    if found:
        partitions = [_partition(path, folder) for path in found]
        if len({tuple(entry) for entry in partitions}) > 1:
            raise ValueError(
                f"{folder}: some files lie in folders such as site=A and others do not, or in other ones; "
                "a table is partitioned in one way."
            )
        names = [str(path.parent.relative_to(folder).as_posix()) for path in found]
        return open_parquet(found, *((partitions, names) if partitions[0] else ()))
    tables = [path for path in files if path.name.endswith(CSV_SUFFIXES)]
    if not tables:
        raise ValueError(
            f"The folder {folder} holds no Parquet file (*{', *'.join(parquet.FORMAT.suffixes)}) and no CSV file."
        )
    return _csv_files(folder, [open_csv(path, reading) for path in tables])


def _is_passed_over(path: Path, folder: Path) -> bool:
    """Whether a file is hidden, or lies in a hidden folder: copies that editors keep, what Spark has not finished."""
    return any(step.startswith(".") or step == UNFINISHED for step in path.relative_to(folder).parts)


def _require_plain_files(folder: Path) -> None:
    """Refuse folders in which files of rows lie that have been deleted or replaced since."""
    for sign, what in LOGS.items():
        if any(folder.glob(sign)):
            raise ValueError(
                f"The folder {folder} is a table of {what}, whose log says which of its files still count: export its "
                "rows to a Parquet file, and give that."
            )


def _csv_files(folder: Path, files: Sequence[CSVRows]) -> CSVFolderRows:
    first = files[0]
    for file in files:
        if file.header != first.header:
            different = sorted(set(file.header) ^ set(first.header)) or ["their order"]
            raise ValueError(f"{file.part} has other columns than {first.part}: {', '.join(different)} differ.")
        if file.decimal_comma != first.decimal_comma:
            raise ValueError(f"{file.part} and {first.part} differ in what separates columns; write both alike.")
    names = []
    for file in files:
        path = file.part.relative_to(folder).as_posix()
        names.append(next(path.removesuffix(suffix) for suffix in CSV_SUFFIXES[::-1] if path.endswith(suffix)))
    note = f"Column {FILE_COLUMN!r} is the name of the file that a row is from, one of {len(files)}."
    return CSVFolderRows(tuple(files), tuple(names), (note,))


def _partition(path: Path, folder: Path) -> dict[str, str | None]:
    """What the folders that lead to a file say about all its rows, as Hive writes it."""
    found: dict[str, str | None] = {}
    for step in path.parent.relative_to(folder).parts:
        key, equals, value = step.partition("=")
        if equals and key:
            if urllib.parse.unquote(key) in found:
                raise ValueError(f"{path} lies in two folders that say what {key} is; rename one.")
            found[urllib.parse.unquote(key)] = None if value == NOTHING else urllib.parse.unquote(value)
    return found
