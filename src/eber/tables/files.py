"""Tables, whatever their format: a file or a folder that one of `eber.tables.readers` knows, or a frame in memory.

Columns of a CSV file come as text, exactly as they were written; what they mean is decided in `eber.tables.columns`,
by the same rules when a model is fitted and when it is used. Rows come in batches, so that a file of any size can be
worked through in bounded memory.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from eber.tables.frames import is_path
from eber.tables.readers import FORMATS
from eber.tables.readers.databases import open_query
from eber.tables.readers.folders import open_folder
from eber.tables.readers.missing import columns_of_signs, with_minus_as_null, without_values
from eber.tables.readers.protocol import BUFFER_BYTES, Format, Rows, memory_limit, naming_damage, require_room
from eber.tables.readers.whole import whole_rows
from eber.tables.reading import NOTHING_SAID, Reading

BATCH_ROWS = 32_768
STANDARD_INPUT = "-"
PARQUET_SUFFIXES = (".parquet", ".pq")
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/{1,2}(?=[^/])")
"""https://..., s3://..., also after a path has made one slash of two; not the single letter of a drive."""
_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive, or a spreadsheet without .xlsx in its name; export it as CSV or Parquet",
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel (.xls); save it as .xlsx",
    b"\x89HDF": "an HDF5 file; of these AnnData (.h5ad) can be read, so export others as CSV or Parquet",
}
"""What files begin with that cannot be read, or not under their name, and what to do."""


@dataclass(frozen=True)
class TableFile:
    """A table on disk, or a frame in memory as the Parquet file that it would be.

    Parameters
    ----------
    title : str
        What messages call it: the path of the file or folder, or the type of the frame.
    names : tuple of str
        Columns, each name once: the second column called "age" is "age.2".
    rows : Rows
        What gives its rows, in a way that depends on the format.
    source : Path, optional
        Where another process finds the same rows; None for rows that were taken into memory.
    reading : Reading
        How `source` is read.
    missing : tuple of str
        Values that count as missing because the user said so.
    signs : tuple of str
        Columns in which a minus is a finding, and no missing value.
    notes : tuple of str
        What a reader should know about how the file was read.
    origin : Path, optional
        The file or folder that was opened, and
    marks : tuple
        what told it from any other content when it was (`file_marks`).
    """

    title: str
    names: tuple[str, ...]
    rows: Rows
    source: Path | None = None
    reading: Reading = NOTHING_SAID
    missing: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: Path | None = None
    marks: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The title without the folders that lead to it."""
        return Path(self.title).name

    @property
    def parts(self) -> tuple[Any, ...]:
        """What holds the rows, in order: files, or the bytes of one."""
        return self.rows.parts

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written as 3,5."""
        return self.rows.decimal_comma

    @property
    def renamed(self) -> set[str]:
        """Columns that have another name here than in the file, where an earlier one is called so."""
        return set(self.names).difference(unnumbered(self.rows.header))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what holds the rows, one part after the other."""
        digest = hashlib.sha256()
        for name in self.rows.part_names:  # of which columns were made
            digest.update(name.encode() + b"\0")  # 1 and 12 are other names than 11 and 2
        for part in self.parts:
            with part.open("rb") if isinstance(part, Path) else pa.BufferReader(part) as file:
                while block := file.read(BUFFER_BYTES):
                    digest.update(block)
        return digest.hexdigest()

    def require_unchanged(self) -> None:
        """Refuse a source that somebody has written since it was opened: columns, rows and fingerprint may differ."""
        if self.origin is not None and file_marks(self.origin) != self.marks:
            raise ValueError(f"{self.title} was changed while it was read. Give the command again when it is whole.")

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[Any]:
        """The given columns (all when None) as pyarrow tables of at most `rows` rows."""
        for table in self.stored_batches(columns, rows):
            yield self.settled(table)

    def sections(self, rows: int) -> list[TableFile]:
        """The same rows in pieces that can be read apart, in their order; see `Rows.sections`."""
        return [replace(self, rows=section) for section in self.rows.sections(rows)]

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """The given columns (all when None) of all rows, as one pyarrow table.

        A table that takes more than a quarter of the machine's memory is refused as soon as that shows: what follows
        needs several copies of it, and a small compressed file may hold a table of any size.
        """
        parts, limit, size = [], memory_limit(), 0
        for part in self.stored_batches(columns):
            parts.append(part)
            size += part.nbytes
            require_room(self.title, size, limit)
        if not parts:
            raise ValueError(f"{self.title} has columns but no rows.")
        with naming_damage(self.title):  # the parts of a folder may have different types
            table = pa.concat_tables(parts, promote_options="permissive")
        return self.settled(table, columns_of_signs(table))

    def stored_batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[Any]:
        """Rows in which a minus, and what the user calls missing, still stand."""
        wanted = list(self.names if columns is None else columns)
        source = self.rows.batches(wanted if self.rows.header == self.names else None, rows)
        while True:
            with naming_damage(self.title):
                batch = next(source, None)
                if batch is None:
                    return
                table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
                table = table.rename_columns(self._read_names(table)).select(wanted)
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)

    def settled(self, table: Any, signs: Sequence[str] | None = None) -> Any:
        """Rows with what is missing as nulls; a minus is a value in columns of signs, those of this file when None."""
        table = with_minus_as_null(table, self.signs if signs is None else signs)
        return without_values(table, self.missing) if self.missing else table

    def _read_names(self, table: Any) -> list[str]:
        """Our names for the columns of a batch: its own, in whatever order, unless names had to be made unique."""
        if self.rows.header == self.names:
            return [str(name) for name in table.column_names]
        return list(self.names)


def open_table(table: Any, reading: Reading | None = None, missing: Sequence[str] = ()) -> TableFile:
    """Look at a table's format and columns, without reading its rows where these can be read one after the other.

    Parameters
    ----------
    table : str, Path or DataFrame
        A file or folder, "-" for standard input, a DataFrame of pandas or polars, a pyarrow table; or what this
        function gave for one.
    reading : Reading, optional
        What the source does not say by itself.
    missing : sequence of str
        Further values that count as missing.
    """
    reading = reading or NOTHING_SAID
    if isinstance(table, TableFile):
        return replace(table, missing=tuple(missing)) if missing else table
    if not is_path(table):
        if reading.given:
            raise ValueError(f"{_options(reading)} is about a file; {type(table).__name__} is a table in memory.")
        return _table_file(type(table).__name__, whole_rows(table), None, reading, missing)
    if found := _ADDRESS.match(str(table)):
        scheme = found[0].rstrip("/")
        raise ValueError(
            f"{scheme}//{str(table)[found.end() :]} is an address, and eber reads files alone: download it (with curl "
            "-O, say, or in a browser) and give the file."
        )
    if str(table) == STANDARD_INPUT:
        path, title = _keep_standard_input(), "standard input"
    else:
        path, title = Path(table), str(table)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if not (path.is_file() or path.is_dir()):  # a pipe may never begin
        raise ValueError(
            f"{title} is a pipe or a device, and tables are read more than once: write the rows to a file, or send "
            "them to standard input and give - as the table."
        )
    marks = file_marks(path)
    with naming_damage(title):
        rows, source = _open(path, reading)
    return replace(_table_file(title, rows, source, reading, missing), origin=path, marks=marks)


def file_marks(path: Path) -> tuple[Any, ...]:
    """Of every file: its inode, its size and when it was last written or renamed, which no program can set back."""
    return marks_of(sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path])


def marks_of(files: Sequence[Path]) -> tuple[Any, ...]:
    """The same of these files."""
    stats = [(file, file.stat()) for file in files]
    return tuple((str(file), s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for file, s in stats)


def _table_file(title: str, rows: Rows, source: Path | None, reading: Reading, missing: Sequence[str]) -> TableFile:
    names, notes = unique_names(rows.header)
    kept = reading if source is not None else NOTHING_SAID
    return TableFile(title, names, rows, source, kept, tuple(missing), notes=(*rows.notes, *notes))


def _open(path: Path, reading: Reading) -> tuple[Rows, Path | None]:
    """The rows, and the path where they can be read again as they are."""
    start = b""
    if not path.is_dir():
        with path.open("rb") as file:
            start = file.read(16)
        if not start:
            raise ValueError(f"{path} is empty.")
    format_ = None if path.is_dir() else _find_format(path, start)
    takes = ("encoding",) if format_ is None else format_.takes
    if reading.query is not None and "query" not in takes:
        if len(reading.given) > 1 or (format_ is not None and format_.name not in ("CSV", "Parquet")):
            raise ValueError(f"--query asks databases, CSV and Parquet, and with no further option; {path} is another.")
        return open_query(path, reading.query), None
    for option in reading.given:
        if option not in takes:
            is_what = "a folder" if format_ is None else format_.name
            raise ValueError(f"--{option} has no meaning for {path}, which is {is_what}.")
    if format_ is None:
        return open_folder(path, reading), path
    return format_.open(path, reading), path if format_.keeps else None


def _find_format(path: Path, start: bytes) -> Format:
    """By what a file begins with, then by its name, which may have changed; text remains."""
    by_content = next((format_ for format_ in FORMATS if format_.is_begun(start)), None)
    by_name = next((format_ for format_ in FORMATS if path.suffix.lower() in format_.suffixes), None)
    found = by_content or by_name or FORMATS[-1]
    if found is FORMATS[-1]:
        for begin, what in _OTHER_FORMATS.items():
            if start.startswith(begin):
                raise ValueError(f"{path} is {what}.")
    return found


def _options(reading: Reading) -> str:
    return ", ".join(f"--{name}" for name in reading.given)


@functools.cache
def _keep_standard_input() -> Path:
    """Standard input as a file, which goes when this process ends: rows are read more than once."""
    folder = Path(tempfile.mkdtemp(prefix="eber-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "standard-input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        raise ValueError("Standard input is empty; give a table there, or the path of a file.")
    return path


def unnumbered(header: Sequence[str]) -> list[str]:
    """Names without blanks around them, or by their place; a name may be there twice."""
    return [raw.strip().removeprefix("\ufeff") or f"column {place}" for place, raw in enumerate(header, start=1)]


def require_apart(out: Path, source: Any) -> None:
    """Refuse to write over what is read, or into a folder that is read as a table."""
    if not is_path(source):
        return
    written, read = out.resolve(), Path(source).resolve()
    if written == read:
        raise ValueError(f"{out} is what is read; give another name for what is written.")
    if read in written.parents:
        raise ValueError(f"{out} lies in the folder {source}, which is read; give another one for what is written.")


def unique_names(header: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Each name once, without blanks around it, and a note for each that had to be changed."""
    names: list[str] = []
    notes: list[str] = []
    for position, name in enumerate(unnumbered(header), start=1):
        if name in names:
            number = 2
            while f"{name}.{number}" in names or f"{name}.{number}" in header:
                number += 1
            notes.append(f"Column {position} is called {name!r} as an earlier one is; it is {name}.{number} here.")
            name = f"{name}.{number}"
        names.append(name)
    return tuple(names), tuple(notes)
