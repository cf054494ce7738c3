"""Tables, whatever their format: CSV (also compressed), Parquet, a folder of Parquet files, or a frame in memory.

Columns of a CSV file come as text, exactly as they were written; what they mean is decided in `eber.tables.columns`,
by the same rules when a model is fitted and when it is used. Rows come in batches, so that a file of any size can be
worked through in bounded memory.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from eber.tables.columns import kind_of_type
from eber.tables.frames import is_path, to_parquet

BATCH_ROWS = 32_768
DELIMITERS = (",", ";", "\t", "|")
MISSING_TEXTS = ("", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NAN", "null", "NULL", "None", ".", "?", "-")
"""What counts as a missing value in a CSV file, and in the columns of text of a Parquet file or a frame."""
BUFFER_BYTES = READ_BYTES = 1 << 20
PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class TableFile:
    """A table on disk, or a frame in memory as the Parquet file that it would be.

    Parameters
    ----------
    title : str
        What messages call it: the path of the file or folder, or the type of the frame.
    kind : str
        "csv" or "parquet".
    names : tuple of str
        Columns, each name once: the second column called "age" is "age.2".
    delimiter : str
        Of a CSV file.
    parts : tuple of Path or pyarrow Buffer
        What holds the rows, in order: files, or the bytes of one.
    notes : tuple of str
        What a reader should know about how the file was read.
    """

    title: str
    kind: Literal["csv", "parquet"]
    names: tuple[str, ...]
    delimiter: str
    parts: tuple[Any, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The title without the folders that lead to it."""
        return Path(self.title).name

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written as 3,5: in CSV files whose columns are separated by semicolons."""
        return self.delimiter == ";"

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[Any]:
        """The given columns (all when None) as pyarrow tables of at most `rows` rows."""
        wanted = list(self.names if columns is None else columns)
        source = self._csv_batches() if self.kind == "csv" else self._parquet_batches(wanted, rows)
        while True:
            with _naming_damage(self.title):
                batch = next(source, None)
                if batch is None:
                    return
                table = pa.Table.from_batches([batch]).rename_columns(self._read_names(batch)).select(wanted)
                if self.kind == "parquet":
                    table = _with_missing_as_null(table)
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """The given columns (all when None) of all rows, as one pyarrow table.

        A table that takes more than a quarter of the machine's memory is refused as soon as that shows: what follows
        needs several copies of it, and a small compressed file may hold a table of any size.
        """
        parts, limit, size = [], memory_limit(), 0
        for part in self.batches(columns):
            parts.append(part)
            size += part.nbytes
            if size > limit:
                raise ValueError(
                    f"{self.title} takes more than {limit / 2**30:.2g} GiB of memory, a quarter of what this machine "
                    "has. Draw a sample of its rows, leave out columns, or use a larger machine."
                )
        if not parts:
            raise ValueError(f"{self.title} has columns but no rows.")
        with _naming_damage(self.title):  # the parts of a folder may have different types
            return pa.concat_tables(parts, promote_options="permissive")

    def _read_names(self, batch: Any) -> list[str]:
        """Our names for the columns of a batch, which may be only some of the file's."""
        if batch.num_columns == len(self.names):
            return list(self.names)
        return [str(name) for name in batch.schema.names]

    def _csv_batches(self) -> Iterator[Any]:
        # Opened once for its header alone: column types are asked for by name.
        with _open_csv(self.parts[0], self.delimiter, {}) as reader:
            types = dict.fromkeys(reader.schema.names, pa.string())
        batch = None
        with _open_csv(self.parts[0], self.delimiter, types) as reader:
            for batch in reader:
                yield batch
        if batch is not None and batch.num_rows:
            self._check_last_quote(batch.column(batch.num_columns - 1)[-1].as_py() or "")

    def _check_last_quote(self, last_value: str) -> None:
        """Refuse a file whose last value is all that follows a quote that nobody closed."""
        if "\n" not in last_value:
            return
        end = b""
        with _open_stream(self.parts[0]) as stream:
            while block := stream.read(BUFFER_BYTES):
                end = (end + block)[-BUFFER_BYTES:].rstrip()
        if not end.endswith(b'"'):
            start = last_value.split("\n")[0]
            raise ValueError(f"{self.title} has a quote that is never closed, before {start!r}; close or remove it.")

    def _parquet_batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        for part in self.parts:
            # Pages as they are needed: buffered beforehand, the whole file would lie in memory.
            with pq.ParquetFile(_readable(part), pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
                renamed = tuple(file.schema_arrow.names) != self.names
                for batch in file.iter_batches(batch_size=rows, columns=None if renamed else columns):
                    batch.validate(full=True)  # a damaged file may hold text that is none
                    yield batch


def open_table(table: Any) -> TableFile:
    """Look at a table's format and columns, without reading its rows.

    Parameters
    ----------
    table : str, Path or DataFrame
        A file or folder, a DataFrame of pandas or polars, a pyarrow table; or what this function gave for one.
    """
    if isinstance(table, TableFile):
        return table
    if not is_path(table):
        return _open_parquet(type(table).__name__, (to_parquet(table),))
    path = Path(table)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    with _naming_damage(str(path)):
        return _open(path)


def memory_limit() -> int:
    """Bytes that a table may take when all of it is read."""
    if not hasattr(os, "sysconf"):  # Windows
        return 4 << 30
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


def _open(path: Path) -> TableFile:
    if path.is_dir():
        parts = tuple(sorted(p for p in path.rglob("*") if p.suffix in PARQUET_SUFFIXES and p.is_file()))
        if not parts:
            raise ValueError(f"The folder {path} holds no Parquet file (*{', *'.join(PARQUET_SUFFIXES)}).")
        return _open_parquet(str(path), parts)
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{path} is empty.")
    if start == b"PAR1" or path.suffix in PARQUET_SUFFIXES:
        return _open_parquet(str(path), (path,))
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path} is written in UTF-16; save it as UTF-8.")
    if start == b"PK\x03\x04":
        raise ValueError(f"{path} is a spreadsheet or a zip archive; export it as CSV or Parquet.")
    return _open_text(path)


def _open_text(path: Path) -> TableFile:
    delimiter = _find_delimiter(path)
    with _open_csv(path, delimiter, {}) as reader:
        names, notes = unique_names([str(name) for name in reader.schema.names])
    return TableFile(str(path), "csv", names, delimiter, (path,), notes)


def _open_parquet(title: str, parts: tuple[Any, ...]) -> TableFile:
    schemas = []
    for part in parts:
        try:
            schemas.append(pq.read_schema(_readable(part)))
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{part} is not a whole Parquet file ({_first_line(error)}).") from error
    for part, schema in zip(parts, schemas, strict=True):
        if schema.names != schemas[0].names:
            different = sorted(set(schema.names) ^ set(schemas[0].names)) or ["their order"]
            raise ValueError(f"{part} has other columns than {parts[0]}: {', '.join(different)} differ.")
        for field, first in zip(schema, schemas[0], strict=True):
            if not _alike(field.type, first.type):
                raise ValueError(
                    f"Column {field.name!r} is of another type in {part} ({field.type}) than in {parts[0]} "
                    f"({first.type}); write both alike."
                )
    names, notes = unique_names([str(name) for name in schemas[0].names])
    return TableFile(title, "parquet", names, "", parts, notes)


def _readable(part: Any) -> Any:
    """A file by its path, or the bytes of one, as pyarrow's readers take it."""
    return pa.BufferReader(part) if isinstance(part, pa.Buffer) else part


def _alike(a: Any, b: Any) -> bool:
    """Whether columns of these types can be one: numbers of any size, text of any kind, or one of them empty."""
    return a == b or pa.types.is_null(a) or pa.types.is_null(b) or kind_of_type(a) == kind_of_type(b) != "unusable"


def _with_missing_as_null(table: Any) -> Any:
    """The same with nulls where a column of text says that a value is missing, and where a number is none (NaN)."""
    missing = pa.array(MISSING_TEXTS)
    for j, column in enumerate(table.columns):
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            nothing = pa.scalar(None, column.type)
            table = table.set_column(j, table.field(j).name, pc.if_else(pc.is_nan(column), nothing, column))
        if kind_of_type(column.type) is not None or pa.types.is_null(column.type):
            continue
        texts = pc.cast(column, pa.string())
        found = pc.is_in(texts, missing)
        if pc.any(found).as_py():  # else the column stays as it is, a category with its order
            table = table.set_column(j, table.field(j).name, pc.if_else(found, pa.scalar(None, pa.string()), texts))
    return table


def unique_names(header: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Each name once, without blanks around it, and a note for each that had to be changed."""
    names: list[str] = []
    notes: list[str] = []
    for position, raw in enumerate(header, start=1):
        name = raw.strip().removeprefix("\ufeff") or f"column {position}"
        if name in names:
            number = 2
            while f"{name}.{number}" in names or f"{name}.{number}" in header:
                number += 1
            notes.append(f"Column {position} is called {name!r} as an earlier one is; it is {name}.{number} here.")
            name = f"{name}.{number}"
        names.append(name)
    return tuple(names), tuple(notes)


def _find_delimiter(path: Path) -> str:
    """The character that separates the columns of the header; a comma when there is one column."""
    with _naming_damage(str(path)), _open_stream(path) as stream:
        head = stream.read(BUFFER_BYTES)
    text = head.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise ValueError(f"{path} is empty.")
    if "\x00" in text:
        raise ValueError(f"{path} is no text: give a CSV file, a Parquet file or a folder of Parquet files.")
    counts = {}
    for delimiter in DELIMITERS:
        header = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
        counts[delimiter] = len(header)
    return max(DELIMITERS, key=lambda delimiter: counts[delimiter])


def _open_stream(path: Path) -> Any:
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(str(path), compression="gzip" if gzipped else "detect")


def _open_csv(path: Path, delimiter: str, types: dict[str, Any]) -> Any:
    return pacsv.open_csv(
        _open_stream(path),
        read_options=pacsv.ReadOptions(block_size=4 << 20, use_threads=False),
        parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types=types, null_values=list(MISSING_TEXTS), strings_can_be_null=True
        ),
    )


@contextlib.contextmanager
def _naming_damage(title: str) -> Iterator[None]:
    """Turn what parsers and decompressors raise into one sentence with the name of the file."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, csv.Error, OSError) as error:
        # Decompressors also raise OSError; the system's own, such as "permission denied", have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = _first_line(error)
        if isinstance(error, UnicodeDecodeError) or "UTF8" in reason or "UTF-8" in reason:
            raise ValueError(f"{title} is not written in UTF-8 ({reason}); save it as UTF-8.") from error
        raise ValueError(f"{title} cannot be read as a table: {reason}.") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")[:300]
