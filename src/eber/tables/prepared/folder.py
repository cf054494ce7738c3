"""A prepared table: rows in random order as the networks see them, with all that was decided about them.

``table.json`` has schema, preprocessing, classes and environments, with a checksum; it is written last, so that a
folder that has it is whole. ``features.float32``, ``labels.uint8`` and ``environments.int32`` are the rows, without a
head, and can be mapped into memory. ``sample.parquet`` has some of the rows as they were read: what settings are chosen
by, and methods compared on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.estimators.stored_rows import StoredRows
from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import digest_of, write_atomically
from eber.tables.choices import ColumnChoices
from eber.tables.classes import ordered_classes
from eber.tables.files import marks_of
from eber.tables.prepared.gathering import digest
from eber.tables.prepared.layout import ENVIRONMENTS, FEATURES, LABELS, Rows
from eber.tables.preprocessing import Preprocessing
from eber.tables.readers.missing import MINUS
from eber.tables.schema import Schema
from eber.tables.training import say_contents

TABLE_FILE = "table.json"
SAMPLE = "sample.parquet"
"""Of the rows as they were read."""
FORMAT, VERSION = "eber-prepared-table", 2
AGAIN = "Prepare the table again."


@dataclass(frozen=True)
class PreparedTable:
    """What `eber prepare` leaves.

    Parameters
    ----------
    folder : Path
    name : str
        Of the source.
    fingerprint : str
        SHA-256 of what the rows were read from.
    asked : mapping
        What the rows depend on beside the source: columns, choices, how it is read, the seed of the order.
    schema : Schema
    preprocessing : Preprocessing
    classes, environments : arrays
        Sorted; what the stored indices are of.
    class_texts : tuple of str
        How the source writes each class.
    class_counts : mapping
        Environment to the rows of each class that it has.
    notes : tuple of str
    why_positive : str
    sample : str
        SHA-256 of the file with the rows by which columns were judged.
    ends, digests : tuples
        Where each stretch of rows ends, and its SHA-256.
    marks : tuple
        What told the files from any others when this was read (`file_marks`).
    """

    folder: Path
    name: str
    fingerprint: str
    asked: Mapping[str, Any]
    schema: Schema
    preprocessing: Preprocessing
    classes: NDArray[Any]
    environments: NDArray[Any]
    class_texts: tuple[str, ...]
    class_counts: dict[str, dict[str, int]]
    notes: tuple[str, ...]
    why_positive: str
    sample: str
    ends: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()
    marks: tuple[Any, ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        return sum(sum(counts.values()) for counts in self.class_counts.values())

    @property
    def weight(self) -> str:
        """Rows on disk all count alike."""
        return ""

    @property
    def signs(self) -> tuple[str, ...]:
        """Columns of the source in which a minus is a value."""
        own = {self.schema.label: self.class_texts, self.schema.environment: self.environments.tolist()}
        return (*self.schema.signs, *(name for name, values in own.items() if MINUS in values))

    @property
    def contents(self) -> list[str]:
        """Classes, environments and columns, in a sentence each."""
        classes = ordered_classes(self.classes, self.schema.positive)
        return say_contents(self.schema, classes, self.class_counts, self.why_positive)

    def rows(self) -> StoredRows:
        """The rows, mapped; memory holds what is being looked at.

        Raises
        ------
        ValueError
            Where a file has not the size that it should have.
        """
        n, d = len(self), len(self.preprocessing.names_out)
        files = ((FEATURES, np.float32, (n, d)), (LABELS, np.uint8, (n,)), (ENVIRONMENTS, np.int32, (n,)))
        maps = []
        for name, type_, shape in files:
            path = self.folder / name
            expected = int(np.prod(shape)) * np.dtype(type_).itemsize
            if not path.is_file() or path.stat().st_size != expected:
                raise ValueError(f"{path} has not the {expected} bytes that it should have. {AGAIN}")
            # A map that is private to this process: nothing that is done to it reaches the file.
            maps.append(np.memmap(path, type_, mode="c", shape=shape).view(np.ndarray))
        X, y, e = maps
        return StoredRows(X, y, e, self.classes, self.environments)

    @property
    def choices(self) -> ColumnChoices:
        """What the user said about columns and classes."""
        return ColumnChoices.from_json(self.asked["choices"])

    def checked_sample(self) -> Path:
        """The file with the rows by which columns were judged, a random sample of all."""
        path = self.folder / SAMPLE
        if not path.is_file() or digest_of(path) != self.sample:
            raise ValueError(f"{path} was changed since it was written. {AGAIN}")
        return path

    def check(self) -> None:
        """Refuse rows that are not those that were written."""
        stored = self.rows()
        for first, end, expected in zip((0, *self.ends), self.ends, self.digests, strict=False):
            part = slice(first, end)
            if digest(Rows(stored.X[part], stored.y[part], stored.e[part])) != expected:
                raise ValueError(f"{self.folder}: rows {first} to {end} were changed since they were written. {AGAIN}")

    def require_unchanged(self) -> None:
        """Refuse a folder in which somebody has written since it was read."""
        if _marks(self.folder) != self.marks:
            raise ValueError(f"{self.folder} was changed while it was fitted from. {AGAIN}")

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "asked": dict(self.asked),
            "schema": self.schema.to_json(),
            "preprocessing": self.preprocessing.to_json(),
            "classes": self.classes.tolist(),
            "environments": self.environments.tolist(),
            "class_texts": list(self.class_texts),
            "class_counts": self.class_counts,
            "notes": list(self.notes),
            "why_positive": self.why_positive,
            "sample": self.sample,
            "ends": list(self.ends),
            "digests": list(self.digests),
        }

    @classmethod
    def from_json(cls, folder: Path, content: Mapping[str, Any]) -> PreparedTable:
        """From plain data."""
        return cls(
            folder,
            content["name"],
            content["fingerprint"],
            content["asked"],
            Schema.from_json(content["schema"]),
            Preprocessing.from_json(content["preprocessing"]),
            np.array(content["classes"]),
            np.array(content["environments"]),
            tuple(content["class_texts"]),
            {name: dict(counts) for name, counts in content["class_counts"].items()},
            tuple(content["notes"]),
            content["why_positive"],
            content["sample"],
            tuple(content["ends"]),
            tuple(content["digests"]),
        )

    def save(self, path: Path) -> None:
        """Write what was decided."""
        write_atomically(path, encode_checksummed(self.to_json(), FORMAT, VERSION))

    @classmethod
    def read(cls, folder: Path, path: Path | None = None) -> PreparedTable:
        """Read what was decided, from the folder or from where it lies before the folder is whole."""
        marks = _marks(folder)
        content = read_checksummed(path or folder / TABLE_FILE, FORMAT, VERSION, AGAIN)
        return replace(cls.from_json(folder, content), marks=marks)


def _marks(folder: Path) -> tuple[Any, ...]:
    files = (folder / name for name in (TABLE_FILE, SAMPLE, FEATURES, LABELS, ENVIRONMENTS))
    return marks_of([path for path in files if path.is_file()])


def is_prepared(table: Any) -> bool:
    """Whether a path is that of a prepared table, or of one that is being made."""
    if not isinstance(table, str | Path):
        return False
    folder = Path(table)
    return folder.is_dir() and (folder / FEATURES).is_file() and (folder / TABLE_FILE).is_file()
