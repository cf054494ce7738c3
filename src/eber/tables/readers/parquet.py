"""Parquet: one file, several with the same columns, or the bytes of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eber.tables.columns import kind_of_type
from eber.tables.frames import storable
from eber.tables.readers.missing import with_missing_as_null
from eber.tables.readers.protocol import BUFFER_BYTES, Format, begins, first_line, readable
from eber.tables.reading import Reading


@dataclass(frozen=True)
class ParquetRows:
    """The rows of Parquet files, one after the other.

    Parameters
    ----------
    parts : tuple of Path or pyarrow Buffer
    stored : tuple of str
        Columns of the files.
    partitions : tuple of mappings
        Of each file, the columns that its folders give it (site=A), with their value; all have the same columns.
    part_names : tuple of str
        Of each file, the folders that say this.
    categories : tuple of str
        Columns of numbers that were categories of pandas, which Parquet cannot keep as such.
    groups : pair of int, optional
        Of a single file, the first row group that is read and the one where reading ends; all when None.
    """

    parts: tuple[Any, ...]
    stored: tuple[str, ...]
    partitions: tuple[Mapping[str, str | None], ...] = ()
    part_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    groups: tuple[int, int] | None = None
    decimal_comma: bool = False
    notes: tuple[str, ...] = ()

    @property
    def header(self) -> tuple[str, ...]:
        """Columns of the files, then those of the folders."""
        return (*self.stored, *(self.partitions[0] if self.partitions else ()))

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        """The columns asked for."""
        for j, part in enumerate(self.parts):
            given = self.partitions[j] if self.partitions else {}
            wanted = None if columns is None else [name for name in columns if name not in given]
            # Pages as they are needed: buffered beforehand, the whole file would lie in memory.
            with pq.ParquetFile(readable(part), pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
                groups = None if self.groups is None else list(range(*self.groups))
                for batch in file.iter_batches(batch_size=rows, columns=wanted, row_groups=groups):
                    batch.validate(full=True)  # a damaged file may hold text that is none
                    table = pa.Table.from_batches([batch])
                    for name in set(self.categories) & set(table.column_names):
                        category = storable(table[name].combine_chunks().dictionary_encode())
                        table = table.set_column(table.column_names.index(name), name, category)
                    for name, value in given.items():
                        table = table.append_column(name, pa.array([value] * batch.num_rows, pa.string()))
                    yield with_missing_as_null(table)

    def sections(self, rows: int) -> list[ParquetRows]:
        """Ranges of row groups; what is such a range already stays one."""
        if self.groups is not None:
            return [self]
        found = []
        for j, part in enumerate(self.parts):
            own = replace(
                self,
                parts=(part,),
                partitions=self.partitions[j : j + 1],
                part_names=self.part_names[j : j + 1],
            )
            found += [replace(own, groups=groups) for groups in row_group_ranges(part, rows)]
        return found


def row_group_ranges(part: Any, rows: int) -> list[tuple[int, int]]:
    """Ranges of row groups of about so many rows, more where a group has more; one for a file without any group."""
    metadata = pq.read_metadata(readable(part))
    ranges, first, size = [], 0, 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).num_rows
        if size >= rows or group + 1 == metadata.num_row_groups:
            ranges.append((first, group + 1))
            first, size = group + 1, 0
    return ranges or [(0, 0)]


def open_parquet(
    parts: Sequence[Any], partitions: Sequence[Mapping[str, str | None]] = (), part_names: Sequence[str] = ()
) -> ParquetRows:
    """Read the schemas, which must be of one table."""
    schemas = []
    for part in parts:
        try:
            schemas.append(pq.read_schema(readable(part)))
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{part} is not a whole Parquet file ({first_line(error)}).") from error
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
    stored = tuple(str(name) for name in schemas[0].names)
    # A column that the files have as well is read from them.
    given = [{key: value for key, value in entry.items() if key not in stored} for entry in partitions]
    categories = _numeric_categories(schemas[0]) if len(set(stored)) == len(stored) else ()
    return ParquetRows(tuple(parts), stored, tuple(given), tuple(part_names), categories)


def _numeric_categories(schema: Any) -> tuple[str, ...]:
    """Columns that pandas calls categorical in what it has written beside the schema, and that are whole numbers."""
    try:
        columns = json.loads((schema.metadata or {})[b"pandas"])["columns"]
        names = [column["name"] for column in columns if column["pandas_type"] == "categorical"]
        return tuple(name for name in names if name in schema.names and pa.types.is_integer(schema.field(name).type))
    except (LookupError, TypeError, ValueError):  # another program's, or damaged
        return ()


def _alike(a: Any, b: Any) -> bool:
    """Whether columns of these types can be one: numbers of any size, text of any kind, or one of them empty."""
    return a == b or pa.types.is_null(a) or pa.types.is_null(b) or kind_of_type(a) == kind_of_type(b) != "unusable"


def _open(part: Any, reading: Reading) -> ParquetRows:
    return open_parquet([part])


FORMAT = Format("Parquet", (".parquet", ".pq"), begins(b"PAR1"), _open)
