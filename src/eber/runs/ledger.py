"""One file for each finished cell, in a folder that any number of runs may share.

A finished cell is ``cells/NAME.json``, written whole or not at all, with a checksum over its content
(:mod:`eber.io.checksummed_json`); its arrays are in ``cells/NAME.npz``, whose checksum stands in the JSON file. The
JSON file is written last: where it is, the cell is finished. A run claims a cell by a lock before computing it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import lock, sweep_temporaries, write_atomically
from eber.leaks.findings import LeakFinding
from eber.runs.cell import Cell, CellResult

CELLS_FOLDER = "cells"
"""Where an output folder keeps its finished cells."""
CELL_FORMAT, CELL_VERSION = "eber-cell", 1
COMPUTED_AGAIN = "It is computed again."


class DamagedCellError(ValueError):
    """A cell file is truncated, was altered, is of another cell, or was written by another version."""


@dataclass(frozen=True)
class Record:
    """A finished cell as it was read back.

    Parameters
    ----------
    identity : mapping
        Everything that determined it (:attr:`Cell.identity`).
    scores : mapping
        Variant to metric to value.
    seconds : mapping
        Variant to wall time.
    cell_seconds : float
        Wall time of the whole cell.
    warnings : sequence of str
        What Python warned of meanwhile.
    findings : sequence of LeakFinding
        What the leak audit found.
    """

    identity: Mapping[str, Any]
    scores: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float]
    cell_seconds: float
    warnings: Sequence[str]
    findings: Sequence[LeakFinding]


class Ledger:
    """The finished cells in a folder.

    Parameters
    ----------
    folder : Path
        The output folder; it is made when missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / CELLS_FOLDER
        self._cells.mkdir(parents=True, exist_ok=True)

    def path(self, cell: Cell) -> Path:
        """The file that says that the cell is finished."""
        return self._cells / f"{cell.file_stem}.json"

    def read(self, cell: Cell) -> Record | None:
        """The finished cell, or None.

        Raises
        ------
        DamagedCellError
            If there is a file that cannot be trusted.
        """
        path = self.path(cell)
        try:
            record = _read_record(path)
        except FileNotFoundError:
            return None
        if record.identity != cell.identity:
            raise DamagedCellError(f"{path} holds another cell than its name says. {COMPUTED_AGAIN}")
        return record

    def read_arrays(self, cell: Cell) -> dict[str, NDArray[Any]]:
        """The arrays of a finished cell; none where it is not finished or gave none."""
        path = self.path(cell).with_suffix(".npz")
        if self.read(cell) is None or not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def write(self, cell: Cell, result: CellResult, cell_seconds: float, warnings: Sequence[str] = ()) -> None:
        """Keep a finished cell; only the holder of its claim may call this."""
        path = self.path(cell)
        arrays_digest = ""
        arrays_path = path.with_suffix(".npz")
        if result.arrays:
            packed = _pack(result.arrays)
            arrays_digest = hashlib.sha256(packed).hexdigest()
            write_atomically(arrays_path, packed)
        else:
            arrays_path.unlink(missing_ok=True)
        content = {
            "cell": cell.identity,
            "scores": {
                variant: {metric: float(value) for metric, value in scores.items()}
                for variant, scores in result.scores.items()
            },
            "seconds": {variant: float(value) for variant, value in result.seconds.items()},
            "cell_seconds": cell_seconds,
            "warnings": list(warnings),
            "findings": [asdict(finding) for finding in result.findings],
            "arrays": arrays_digest,
        }
        write_atomically(path, encode_checksummed(content, CELL_FORMAT, CELL_VERSION))

    @contextmanager
    def claim(self, cell: Cell) -> Iterator[bool]:
        """Try to be the only one who computes the cell while the block runs; says whether that succeeded."""
        path = self.path(cell)
        with lock(path.with_name(f".{path.stem}.lock"), wait=False) as held:
            if held:
                sweep_temporaries(path)
                sweep_temporaries(path.with_suffix(".npz"))
            yield held

    def sweep(self) -> None:
        """Remove the locks of killed runs whose cells are finished, so that nobody claims them again."""
        for leftover in self._cells.glob(".*.lock"):
            with lock(leftover, wait=False):
                pass

    def records(self) -> list[Record]:
        """Every finished cell in the folder that can be trusted, whatever run it came from."""
        found = []
        for path in sorted(self._cells.glob("*.json")):
            try:
                found.append(_read_record(path))
            except DamagedCellError:  # whoever needs this cell reads it by name and is told
                continue
        return found


def _read_record(path: Path) -> Record:
    content = read_checksummed(path, CELL_FORMAT, CELL_VERSION, COMPUTED_AGAIN, DamagedCellError)
    arrays, digest = path.with_suffix(".npz"), content["arrays"]
    if digest and (not arrays.exists() or hashlib.sha256(arrays.read_bytes()).hexdigest() != digest):
        raise DamagedCellError(f"{arrays} is missing, truncated or altered. {COMPUTED_AGAIN}")
    return Record(
        content["cell"],
        content["scores"],
        content["seconds"],
        content["cell_seconds"],
        content["warnings"],
        tuple(LeakFinding(**finding) for finding in content["findings"]),
    )


def _pack(arrays: Mapping[str, Any]) -> bytes:
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise ValueError(f"Array {name!r} holds Python objects, which cannot be kept safely; use numbers or texts.")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
