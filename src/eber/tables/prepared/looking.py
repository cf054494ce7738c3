"""The first pass: a sample of the rows, by which columns are judged, and all classes and environments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eber.io.files import replacing
from eber.tables.columns import as_texts
from eber.tables.files import TableFile
from eber.tables.readers.missing import MINUS, are_signs, columns_of_signs

SAMPLE_ROWS = 200_000
"""Rows by which the kinds of columns are decided; of a table that has no more, all."""


@dataclass(frozen=True)
class Look:
    """What the first pass saw.

    Parameters
    ----------
    sample : pyarrow Table
        Random rows that have a label and an environment, in their order, as they are stored.
    counts : mapping
        (class, environment), as text, to their rows.
    n_rows : int
        Rows that have both.
    all_rows : int
    missing : mapping
        The label's column and the environment's, to how many rows have none.
    signs : tuple of str
        Those of the two in which a minus is a value.
    """

    sample: Any
    counts: Counter[tuple[str, str]]
    n_rows: int
    all_rows: int
    missing: dict[str, int]
    signs: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all there is."""
        return int(self.sample.num_rows) == self.n_rows


def look(file: TableFile, label: str, environment: str, seed: int) -> Look:
    """Read all rows once, and keep a sample of them."""
    sample = _Sample(np.random.default_rng([seed, 0]))
    counts, all_rows, names = Counter[tuple[str, str]](), 0, (label, environment)
    missing = dict.fromkeys(names, 0)
    for table in file.stored_batches():
        settled = file.settled(table.select(names), names)  # what a minus means is known at the end
        for name in names:
            missing[name] += settled[name].null_count
        all_rows += table.num_rows
        known = pc.and_(pc.is_valid(settled[label]), pc.is_valid(settled[environment]))
        labels, environments = (coded(settled[name].filter(known)) for name in names)
        pairs, sizes = np.unique(labels.index * len(environments.texts) + environments.index, return_counts=True)
        for pair, size in zip(pairs.tolist(), sizes.tolist(), strict=True):
            j, k = divmod(pair, max(1, len(environments.texts)))
            counts[labels.texts[j], environments.texts[k]] += size
        sample.add(table.filter(known))
    rows, signs = sample.rows(file), list[str]()
    for place, name in enumerate(names):
        if are_signs({key[place] for key in counts}):
            signs.append(name)
            continue
        for key in [key for key in counts if key[place] == MINUS]:
            missing[name] += counts.pop(key)
    table = file.settled(rows, [*columns_of_signs(rows), *signs])
    table = table.filter(pc.and_(pc.is_valid(table[label]), pc.is_valid(table[environment])))
    return Look(table, counts, counts.total(), all_rows, missing, tuple(signs))


def write_sample(seen: Look, path: Path) -> None:
    """Keep the sample as a Parquet file."""
    with replacing(path) as temporary:
        pq.write_table(seen.sample, temporary)


@dataclass(frozen=True)
class Coded:
    """A column without missing values as different texts, and the index of each row's."""

    texts: list[str]
    index: NDArray[np.int64]


def coded(column: Any) -> Coded:
    """A column as texts; each different value is looked at once."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = as_texts(encoded.dictionary).to_pylist()
    return Coded(texts, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


class _Sample:
    """At most `SAMPLE_ROWS` rows, each row as likely as any other: those with the smallest marks."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._limit = rng, 1.0
        self._tables: list[Any] = []
        self._marks: list[NDArray[np.float64]] = []

    def add(self, table: Any) -> None:
        """Rows that come next."""
        marks = self._rng.random(table.num_rows)
        chosen = marks < self._limit
        self._tables.append(table if chosen.all() else table.filter(pa.array(chosen)))
        self._marks.append(marks[chosen])
        if sum(map(len, self._marks)) > 2 * SAMPLE_ROWS:
            self._shrink()

    def rows(self, file: TableFile) -> Any:
        """The sample as one table."""
        if sum(map(len, self._marks)) > SAMPLE_ROWS:
            self._shrink()
        if not self._tables:
            raise ValueError(f"{file.title} has columns but no rows.")
        return pa.concat_tables(self._tables, promote_options="permissive").combine_chunks()

    def _shrink(self) -> None:
        self._limit = float(np.partition(np.concatenate(self._marks), SAMPLE_ROWS)[SAMPLE_ROWS])
        kept = [marks < self._limit for marks in self._marks]
        # Copies: a filtered table is one, and lets go of the batch that it was read with.
        self._tables = [table.filter(pa.array(own)) for table, own in zip(self._tables, kept, strict=True)]
        self._marks = [marks[own] for marks, own in zip(self._marks, kept, strict=True)]
