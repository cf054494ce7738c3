"""The first pass: a sample of the rows, by which columns are judged, and all classes and environments.

Each section is looked at by itself, wherever that is; what was seen is added up in the order of the sections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from eber.tables.tasks import Each, in_order, one_after_the_other

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
    section_rows : tuple of int
        All rows of each section.
    missing : mapping
        The label's column and the environment's, to how many rows have none.
    signs : tuple of str
        Those of the two in which a minus is a value.
    """

    sample: Any
    counts: Counter[tuple[str, str]]
    n_rows: int
    section_rows: tuple[int, ...]
    missing: dict[str, int]
    signs: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all there is."""
        return int(self.sample.num_rows) == self.n_rows


@dataclass(frozen=True)
class Looking:
    """How a section is looked at; it can be pickled.

    Parameters
    ----------
    sections : sequence of TableFile
    label, environment : str
    seed : int
    """

    sections: Sequence[TableFile]
    label: str
    environment: str
    seed: int

    def look(self, number: int) -> Glance:
        """Read one section; its number, and not who reads it when, decides which of its rows are drawn."""
        file, names = self.sections[number], (self.label, self.environment)
        rng = np.random.default_rng([self.seed, 0, number])
        seen = Glance(Sample(), Counter(), 0, dict.fromkeys(names, 0))
        for table in file.stored_batches():
            settled = file.settled(table.select(names), names)  # what a minus means is known at the end
            for name in names:
                seen.missing[name] += settled[name].null_count
            seen.n_rows += table.num_rows
            known = pc.and_(*(pc.is_valid(settled[name]) for name in names))
            labels, environments = (coded(settled[name].filter(known)) for name in names)
            pairs, sizes = np.unique(labels.index * len(environments.texts) + environments.index, return_counts=True)
            for pair, size in zip(pairs.tolist(), sizes.tolist(), strict=True):
                j, k = divmod(pair, max(1, len(environments.texts)))
                seen.counts[labels.texts[j], environments.texts[k]] += size
            rows = table.filter(known)
            seen.sample.add(rows, rng.random(rows.num_rows))
        seen.sample.settle()
        return seen


@dataclass
class Glance:
    """What was seen of a section, a minus as a value in label and environment."""

    sample: Sample
    counts: Counter[tuple[str, str]]
    n_rows: int
    missing: dict[str, int]


def look(
    file: TableFile,
    sections: Sequence[TableFile],
    label: str,
    environment: str,
    seed: int,
    each: Each = one_after_the_other,
) -> Look:
    """Read all rows once, and keep a sample of them; `each` looks at the sections."""
    names = (label, environment)
    sample, counts, missing = Sample(), Counter[tuple[str, str]](), dict.fromkeys(names, 0)
    looking, section_rows = Looking(sections, label, environment, seed), list[int]()
    for seen in in_order(looking.look, range(len(sections)), each):
        sample.join(seen.sample)
        counts.update(seen.counts)
        section_rows.append(seen.n_rows)
        for name in names:
            missing[name] += seen.missing[name]
    rows, signs = sample.rows(file), list[str]()
    for place, name in enumerate(names):
        if are_signs({key[place] for key in counts}):
            signs.append(name)
            continue
        for key in [key for key in counts if key[place] == MINUS]:
            missing[name] += counts.pop(key)
    table = file.settled(rows, [*columns_of_signs(rows), *signs])
    table = table.filter(pc.and_(pc.is_valid(table[label]), pc.is_valid(table[environment])))
    return Look(table, counts, counts.total(), tuple(section_rows), missing, tuple(signs))


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


class Sample:
    """At most `SAMPLE_ROWS` rows, each row as likely as any other: those with the smallest marks."""

    def __init__(self) -> None:
        self._limit = 1.0
        self._tables: list[Any] = []
        self._marks: list[NDArray[np.float64]] = []

    def add(self, table: Any, marks: NDArray[np.float64]) -> None:
        """Rows that come next, with a random number in [0, 1) for each, (n,)."""
        chosen = marks < self._limit
        self._tables.append(table if chosen.all() else table.filter(pa.array(chosen)))
        self._marks.append(marks[chosen])
        if sum(map(len, self._marks)) > 2 * SAMPLE_ROWS:
            self._shrink()

    def join(self, other: Sample) -> None:
        """Take the rows into account that another has drawn from, which come after these."""
        self._limit = min(self._limit, other._limit)
        for table, marks in zip(other._tables, other._marks, strict=True):
            self.add(table, marks)

    def settle(self) -> None:
        """Keep no more rows than are asked for, in one table."""
        if sum(map(len, self._marks)) > SAMPLE_ROWS:
            self._shrink()
        if self._tables:
            self._tables = [pa.concat_tables(self._tables, promote_options="permissive").combine_chunks()]
            self._marks = [np.concatenate(self._marks)]

    def rows(self, file: TableFile) -> Any:
        """The sample as one table."""
        self.settle()
        if not self._tables:
            raise ValueError(f"{file.title} has columns but no rows.")
        return self._tables[0]

    def _shrink(self) -> None:
        self._limit = float(np.partition(np.concatenate(self._marks), SAMPLE_ROWS)[SAMPLE_ROWS])
        kept = [marks < self._limit for marks in self._marks]
        # Copies: a filtered table is one, and lets go of the batch that it was read with.
        self._tables = [table.filter(pa.array(own)) for table, own in zip(self._tables, kept, strict=True)]
        self._marks = [marks[own] for marks, own in zip(self._marks, kept, strict=True)]
