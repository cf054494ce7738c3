"""The third pass: rows as the networks see them, each into a bucket drawn at random.

A section of the source is read at a time and written in blocks that memory holds; the rows of a block are sorted by
their buckets, so that each bucket's are one stretch of it. A section that is done says so in a file with a checksum,
and is not done again. Sections may be done in any order, by any process that sees both source and folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import replacing, write_atomically
from eber.tables.files import TableFile
from eber.tables.prepared.layout import Rows, joined, row_bytes
from eber.tables.prepared.looking import coded
from eber.tables.preprocessing import Preprocessing
from eber.tables.schema import Schema
from eber.tables.training import decode

BLOCK_BYTES = 64 << 20
"""Rows that are sorted by buckets together."""
SECTION_FORMAT, VERSION = "eber-prepared-section", 1


@dataclass(frozen=True)
class Encoder:
    """How rows of the source become rows of the prepared table; it can be pickled.

    Parameters
    ----------
    schema : Schema
    preprocessing : Preprocessing
    classes, environments : mapping
        Text to index.
    """

    schema: Schema
    preprocessing: Preprocessing
    classes: Mapping[str, int]
    environments: Mapping[str, int]

    def rows(self, file: TableFile) -> Iterator[Rows]:
        """All rows that have a label and an environment, batch after batch."""
        label, environment = self.schema.label, self.schema.environment
        names = list(dict.fromkeys([*(feature.name for feature in self.schema.features), label, environment]))
        for table in file.batches(names):
            table = table.filter(pc.and_(pc.is_valid(table[label]), pc.is_valid(table[environment])))
            X = self.preprocessing.transform(decode(table, file, self.schema)).astype(np.float32)
            y, e = _index(table[label], self.classes), _index(table[environment], self.environments)
            yield Rows(X, y.astype(np.uint8), e.astype(np.int32))


def _index(column: Any, known: Mapping[str, int]) -> np.ndarray:
    found = coded(column)
    for text in found.texts:
        if text not in known:
            raise ValueError(f"{text!r} is there now and was not when all rows were looked at: the table was changed")
    of_text = np.array([known[text] for text in found.texts], dtype=np.int64)
    return of_text[found.index]


@dataclass(frozen=True)
class Scattering:
    """What is done with each section; it can be pickled.

    Parameters
    ----------
    encoder : Encoder
    sections : sequence of TableFile
    folder : Path
        Where blocks go.
    n_buckets, seed : int
    """

    encoder: Encoder
    sections: Sequence[TableFile]
    folder: Path
    n_buckets: int
    seed: int

    def scatter(self, number: int) -> list[list[int]]:
        """Scatter one section, unless that is done; of each of its blocks, the rows of each bucket."""
        done = self.folder / f"section-{number:06d}.json"
        if (known := _read_done(done)) is not None:
            return known
        sizes = []
        for block, rows in enumerate(self._blocks(self.sections[number])):
            rng = np.random.default_rng([self.seed, 1, number, block])
            bucket = rng.integers(self.n_buckets, size=len(rows))
            order = np.argsort(bucket, kind="stable")
            with replacing(block_path(self.folder, number, block)) as temporary, temporary.open("wb") as file:
                for values in (rows.X, rows.y, rows.e):
                    file.write(np.ascontiguousarray(values[order]).data)
            sizes.append(np.bincount(bucket, minlength=self.n_buckets).tolist())
        self.sections[number].require_unchanged()
        write_atomically(done, encode_checksummed({"blocks": sizes}, SECTION_FORMAT, VERSION))
        return sizes

    def _blocks(self, section: TableFile) -> Iterator[Rows]:
        n_columns = len(self.encoder.preprocessing.names_out)
        limit, waiting, size = max(1, BLOCK_BYTES // row_bytes(n_columns)), list[Rows](), 0
        for rows in self.encoder.rows(section):
            waiting.append(rows)
            size += len(rows)
            if size >= limit:
                yield joined(waiting, n_columns)
                waiting, size = [], 0
        if size:
            yield joined(waiting, n_columns)


def block_path(folder: Path, section: int, block: int) -> Path:
    """Where a block lies."""
    return folder / f"section-{section:06d}-{block:06d}.rows"


def _read_done(path: Path) -> list[list[int]] | None:
    try:
        blocks: list[list[int]] = read_checksummed(path, SECTION_FORMAT, VERSION, "")["blocks"]
    except (FileNotFoundError, ValueError):
        return None
    return blocks
