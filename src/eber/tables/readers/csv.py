"""CSV, also compressed: text as it was written, whatever separates its columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from eber.tables.readers.missing import with_missing_as_null
from eber.tables.readers.protocol import BUFFER_BYTES, Format, naming_damage, never
from eber.tables.reading import Reading

DELIMITERS = (",", ";", "\t", "|")
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
"""What Excel writes and reads on top of a file: the separator, and nothing else."""


@dataclass(frozen=True)
class CSVRows:
    """The rows of one file.

    Parameters
    ----------
    part : Path or pyarrow Buffer
    delimiter : str
    skipped : int
        Lines above the header.
    encoding : str
    header : tuple of str
    """

    part: Any
    delimiter: str
    skipped: int
    encoding: str
    header: tuple[str, ...] = ()
    part_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Any, ...]:
        """The file."""
        return (self.part,)

    @property
    def decimal_comma(self) -> bool:
        """In files whose columns are separated by semicolons."""
        return self.delimiter == ";"

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        """All columns, as text; blocks of the file, whatever number of rows was asked for."""
        # Opened once for its header alone: column types are asked for by name.
        with self.open({}) as reader:
            types = dict.fromkeys(reader.schema.names, pa.string())
        batch = None
        with self.open(types) as reader:
            for batch in reader:
                yield with_missing_as_null(batch)
        if batch is not None and batch.num_rows:
            self._check_last_quote(batch.column(batch.num_columns - 1)[-1].as_py() or "")

    def sections(self, rows: int) -> list[CSVRows]:
        """The file: where a row begins is known only to who has read what is before."""
        return [self]

    def open(self, types: dict[str, Any]) -> Any:
        """A reader of pyarrow's."""
        return pacsv.open_csv(
            _open_stream(self.part),
            read_options=pacsv.ReadOptions(
                block_size=4 << 20, use_threads=False, encoding=self.encoding, skip_rows=self.skipped
            ),
            parse_options=pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(column_types=types),
        )

    def _check_last_quote(self, last_value: str) -> None:
        """Refuse a file whose last value is all that follows a quote that nobody closed."""
        if "\n" not in last_value:
            return
        end = b""
        with _open_stream(self.part) as stream:
            while block := stream.read(BUFFER_BYTES):
                end = (end + block)[-BUFFER_BYTES:]
        if not end.decode(self.encoding, errors="replace").rstrip().endswith('"'):
            start = last_value.split("\n")[0]
            raise ValueError(f"{_title(self.part)} has a quote that is never closed, before {start!r}; close it.")


def open_csv(part: Any, reading: Reading) -> CSVRows:
    """Find out what separates the columns, and read the header."""
    encoding = reading.encoding or "utf-8"
    title = _title(part)
    with naming_damage(title), _open_stream(part) as stream:
        head = stream.read(BUFFER_BYTES)
    if head[:2] in BYTE_ORDER_MARKS and reading.encoding is None:
        raise ValueError(f"{title} is written in UTF-16; name that with --encoding utf-16, or save it as UTF-8.")
    text = head.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
    if not text.strip():
        raise ValueError(f"{title} is empty.")
    if "\x00" in text:
        raise ValueError(f"{title} is no text: give a CSV file, a Parquet file or a folder of Parquet files.")
    separator = _SEPARATOR_LINE.match(text)
    delimiter = separator[1] if separator else _find_delimiter(text)
    rows = CSVRows(part, delimiter, 1 if separator else 0, encoding)
    with naming_damage(title), rows.open({}) as reader:
        header = tuple(str(name) for name in reader.schema.names)
    return CSVRows(part, delimiter, rows.skipped, encoding, header)


def _find_delimiter(text: str) -> str:
    """The character that separates the columns of the header; a comma when there is one column."""
    counts = {}
    for delimiter in DELIMITERS:
        header = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
        counts[delimiter] = len(header)
    return max(DELIMITERS, key=lambda delimiter: counts[delimiter])


def _open_stream(part: Any) -> Any:
    if isinstance(part, pa.Buffer):
        gzipped = part.slice(0, 2).to_pybytes() == b"\x1f\x8b"
        return pa.input_stream(pa.BufferReader(part), compression="gzip" if gzipped else None)
    with part.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(str(part), compression="gzip" if gzipped else "detect")


def _title(part: Any) -> str:
    return "The table" if isinstance(part, pa.Buffer) else str(part)


FORMAT = Format("CSV", (".csv", ".tsv", ".txt"), never, open_csv, takes=("encoding",))
