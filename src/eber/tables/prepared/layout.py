"""How rows lie in files: as the networks see them, features, then classes, then environments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FEATURES, LABELS, ENVIRONMENTS = "features.float32", "labels.uint8", "environments.int32"
"""Files of a prepared table, one entry or row of entries for each row of the table."""


@dataclass(frozen=True)
class Rows:
    """Rows as they are stored.

    Parameters
    ----------
    X : array of shape (n, d), float32
    y : array of shape (n,), uint8
        Index of the class.
    e : array of shape (n,), int32
        Index of the environment.
    """

    X: NDArray[np.float32]
    y: NDArray[np.uint8]
    e: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.y)

    def select(self, order: NDArray[np.int64]) -> Rows:
        """These rows, in this order."""
        return Rows(self.X[order], self.y[order], self.e[order])

    def write(self, folder: Path, first: int) -> None:
        """Into the files of a folder, from row `first` on; the files have their full size."""
        for name, values in ((FEATURES, self.X), (LABELS, self.y), (ENVIRONMENTS, self.e)):
            with (folder / name).open("r+b") as file:
                file.seek(first * values[:1].nbytes if len(values) else 0)
                file.write(np.ascontiguousarray(values).data)
                file.flush()
                os.fsync(file.fileno())  # on the disk before anything says that it is done


def row_bytes(n_columns: int) -> int:
    """Bytes of a row in all files."""
    return 4 * n_columns + 1 + 4


def joined(parts: list[Rows], n_columns: int) -> Rows:
    """Rows one behind the other."""
    empty = Rows(np.empty((0, n_columns), np.float32), np.empty(0, np.uint8), np.empty(0, np.int32))
    parts = parts or [empty]
    return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "e")))


def create_files(folder: Path, n_rows: int, n_columns: int) -> bool:
    """Files for so many rows; whether they were there already, with what had been written to them."""
    were_there = True
    for name, size in ((FEATURES, 4 * n_columns), (LABELS, 1), (ENVIRONMENTS, 4)):
        path = folder / name
        if not path.is_file() or path.stat().st_size != n_rows * size:
            were_there = False
            with path.open("wb") as file:
                file.truncate(n_rows * size)  # room on the disk is taken when rows are written
    return were_there
