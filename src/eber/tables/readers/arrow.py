"""Feather and Arrow files: record batches, as they were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eber.tables.frames import storable
from eber.tables.readers.missing import with_missing_as_null
from eber.tables.readers.protocol import Format, begins, first_line
from eber.tables.reading import Reading


@dataclass(frozen=True)
class ArrowRows:
    """The rows of a file in Arrow's own format.

    Parameters
    ----------
    parts : tuple of Path or pyarrow Buffer
        One of them.
    header : tuple of str
    """

    parts: tuple[Any, ...]
    header: tuple[str, ...]
    part_names: tuple[str, ...] = ()
    decimal_comma: bool = False
    notes: tuple[str, ...] = ()

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        """All columns, as the same table in Parquet has them."""
        with _source(self.parts[0]) as source, pa.ipc.open_file(source) as file:
            for j in range(file.num_record_batches):
                batch = file.get_batch(j)
                batch.validate(full=True)  # a damaged file may hold text that is none
                table = pa.table([storable(column) for column in batch.columns], names=batch.schema.names)
                yield with_missing_as_null(table)

    def sections(self, rows: int) -> list[ArrowRows]:
        """The file."""
        return [self]


def _open(part: Any, reading: Reading) -> ArrowRows:
    try:
        with _source(part) as source, pa.ipc.open_file(source) as file:
            return ArrowRows((part,), tuple(str(name) for name in file.schema.names))
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{part} is not a whole Feather or Arrow file ({first_line(error)}).") from error


def _source(part: Any) -> Any:
    return pa.BufferReader(part) if isinstance(part, pa.Buffer) else pa.OSFile(str(part))


FORMAT = Format("Feather or Arrow", (".feather", ".arrow", ".ipc"), begins(b"ARROW1"), _open)
