"""Tables, whatever their format: CSV (also compressed), Parquet, a folder of Parquet files, or a frame in memory.

Columns of a CSV file come as text, exactly as they were written; what they mean is decided in `eber.tables.columns`,
by the same rules when a model is fitted and when it is used. Rows come in batches, so that a file of any size can be
worked through in bounded memory.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from eber.io.machine import memory_bytes
from eber.tables.columns import kind_of_type
from eber.tables.frames import is_path, to_parquet

BATCH_ROWS = 32_768
DELIMITERS = (",", ";", "\t", "|")
MISSING_TEXTS = ("", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NAN", "null", "NULL", "None", ".", "?", "-")
"""What counts as a missing value in a CSV file, and in the columns of text of a Parquet file or a frame."""
BUFFER_BYTES = 1 << 20
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True)
class Part:
    """A file that holds rows, or what a frame would be as one.

    Parameters
    ----------
    path : Path
    content : bytes, optional
        Where it was read whole: all that is asked of it comes from these bytes then, whatever becomes of the file.
    """

    path: Path
    content: bytes | None = None

    def open(self) -> Any:
        """Its bytes, as a file of pyarrow's."""
        return pa.OSFile(str(self.path)) if self.content is None else pa.BufferReader(self.content)


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
    parts : tuple of Part
        What holds the rows, in order.
    notes : tuple of str
        What a reader should know about how the file was read.
    """

    title: str
    kind: Literal["csv", "parquet"]
    names: tuple[str, ...]
    delimiter: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The title without the folders that lead to it."""
        return Path(self.title).name

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written as 3,5: in CSV files whose columns are separated by semicolons."""
        return self.delimiter == ";"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content of its files, one after the other."""
        digest = hashlib.sha256()
        for part in self.parts:
            with part.open() as file:
                while block := file.read(BUFFER_BYTES):
                    digest.update(block)
        return digest.hexdigest()

    def without_content(self) -> TableFile:
        """The same without the bytes that were kept of it."""
        return replace(self, parts=tuple(Part(part.path) for part in self.parts))

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
                raise _too_large(self.title, limit)
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
        (part,) = self.parts
        with _open_csv(part, self.delimiter, {}) as reader:
            types = dict.fromkeys(reader.schema.names, pa.string())
        batch = None
        with _open_csv(part, self.delimiter, types) as reader:
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
            with pq.ParquetFile(part.open(), pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
                renamed = tuple(file.schema_arrow.names) != self.names
                for batch in file.iter_batches(batch_size=rows, columns=None if renamed else columns):
                    batch.validate(full=True)  # a damaged file may hold text that is none
                    yield batch


def open_table(table: Any, *, whole: bool = False) -> TableFile:
    """Look at a table's format and columns, without reading its rows.

    Parameters
    ----------
    table : str, Path or DataFrame
        A file or folder, a DataFrame of pandas or polars, a pyarrow table; or what this function gave for one.
    whole : bool
        Read the bytes of its files now, once. Columns, rows and fingerprint are then of the same content, also where
        somebody changes the files meanwhile.
    """
    if isinstance(table, TableFile):
        seen_whole = all(part.content is not None for part in table.parts)
        return table if seen_whole or not whole else open_table(table.title, whole=True)
    if not is_path(table):
        title = type(table).__name__
        return _open_parquet(title, (Part(Path(title), to_parquet(table).to_pybytes()),))
    path = Path(table)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    with _naming_damage(str(path)):
        return _open(path, _find_parts(path, whole))


def memory_limit() -> int:
    """Bytes that a table may take when all of it is read."""
    return memory_bytes() // 4


def _too_large(title: str, limit: int) -> ValueError:
    return ValueError(
        f"{title} takes more than {limit / 2**30:.2g} GiB of memory, a quarter of what there is here. Draw a sample "
        "of its rows, leave out columns, or use a larger machine."
    )


def _find_parts(path: Path, whole: bool) -> tuple[Part, ...]:
    paths = [path]
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.suffix in PARQUET_SUFFIXES and p.is_file())
        if not paths:
            raise ValueError(f"The folder {path} holds no Parquet file (*{', *'.join(PARQUET_SUFFIXES)}).")
    if not whole:
        return tuple(Part(p) for p in paths)
    parts, room = [], memory_limit()
    for p in paths:
        with p.open("rb") as file:
            content = file.read(room + 1)  # a file may be larger by now than it said
        room -= len(content)
        if room < 0:
            raise _too_large(str(path), memory_limit())
        parts.append(Part(p, content))
    return tuple(parts)


def _open(path: Path, parts: tuple[Part, ...]) -> TableFile:
    if path.is_dir():
        return _open_parquet(str(path), parts)
    with parts[0].open() as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{path} is empty.")
    if start == b"PAR1" or path.suffix in PARQUET_SUFFIXES:
        return _open_parquet(str(path), parts)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path} is written in UTF-16; save it as UTF-8.")
    if start == b"PK\x03\x04":
        raise ValueError(f"{path} is a spreadsheet or a zip archive; export it as CSV or Parquet.")
    return _open_text(parts[0])


def _open_text(part: Part) -> TableFile:
    delimiter = _find_delimiter(part)
    with _open_csv(part, delimiter, {}) as reader:
        names, notes = unique_names([str(name) for name in reader.schema.names])
    return TableFile(str(part.path), "csv", names, delimiter, (part,), notes)


def _open_parquet(title: str, parts: tuple[Part, ...]) -> TableFile:
    schemas = []
    for part in parts:
        try:
            with part.open() as file:
                schemas.append(pq.read_schema(file))
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{part.path} is not a whole Parquet file ({_first_line(error)}).") from error
    first_path = parts[0].path
    for part, schema in zip(parts, schemas, strict=True):
        if schema.names != schemas[0].names:
            different = sorted(set(schema.names) ^ set(schemas[0].names)) or ["their order"]
            raise ValueError(f"{part.path} has other columns than {first_path}: {', '.join(different)} differ.")
        for field, first in zip(schema, schemas[0], strict=True):
            if not _alike(field.type, first.type):
                raise ValueError(
                    f"Column {field.name!r} is of another type in {part.path} ({field.type}) than in {first_path} "
                    f"({first.type}); write both alike."
                )
    names, notes = unique_names([str(name) for name in schemas[0].names])
    return TableFile(title, "parquet", names, "", parts, notes)


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


def _find_delimiter(part: Part) -> str:
    """The character that separates the columns of the header; a comma when there is one column."""
    path = part.path
    with _naming_damage(str(path)), _open_stream(part) as stream:
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


def _open_stream(part: Part) -> Any:
    with part.open() as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(part.open(), compression="gzip" if gzipped else COMPRESSIONS.get(part.path.suffix))


def _open_csv(part: Part, delimiter: str, types: dict[str, Any]) -> Any:
    return pacsv.open_csv(
        _open_stream(part),
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
