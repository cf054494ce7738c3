"""What is done where cells are computed: the cells, and nothing else. What they give goes back as plain data."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from eber.methods import Method, add_method
from eber.runs.backends.protocol import Failure
from eber.runs.cell import Cell, CellResult
from eber.runs.joint_fits import run_jointly
from eber.runs.spec import Experiment
from eber.runs.travelling import Luggage, pack


@dataclass(frozen=True)
class Computed:
    """What a cell gave.

    Parameters
    ----------
    result : CellResult
    seconds : float
        Wall time; of cells that were computed together, their share of it.
    warnings : tuple of str
        What Python warned of meanwhile, each once.
    """

    result: CellResult
    seconds: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class CellWork:
    """The cells of an experiment, to be computed.

    Parameters
    ----------
    experiment : Experiment
    data_dir : Path, optional
        Where its data files are.
    luggage : Luggage, optional
        What other machines are sent, and what they must have.
    """

    experiment: Experiment
    data_dir: Path | None = None
    luggage: Luggage | None = None

    def check_local(self) -> None:
        """Refuse a method that only this process has."""
        for method in self.experiment.added_methods:
            _check_importable(method)

    def travelling(self, *, with_files: bool) -> CellWork:
        """For other machines, with the table where it is meant to travel."""
        sent = self.data_dir if with_files and self.experiment.data_travels else None
        return replace(self, luggage=pack(self.experiment.added_methods, sent))

    def begin(self) -> None:
        """Make the methods known that were added to the experiment; elsewhere, unpack what was sent."""
        if self.luggage is not None:
            self.luggage.unpack()
        for method in self.experiment.added_methods:
            add_method(method)

    def compute(self, cells: list[Cell]) -> list[Computed | Failure]:
        """Compute cells together."""
        try:
            cells = self._with_data(cells)
        except Exception as error:  # a sentence for the run: the data are not here, or are others
            return [Failure.of(error)] * len(cells)
        messages: list[dict[str, None]] = [{} for _ in cells]
        start = time.perf_counter()
        results = run_jointly(self.experiment.run_cell, cells, lambda k: _caught_warnings(messages[k]))
        seconds = (time.perf_counter() - start) / len(cells)
        return [
            Failure.of(result) if isinstance(result, Exception) else Computed(result, seconds, tuple(warned))
            for result, warned in zip(results, messages, strict=True)
        ]

    def _with_data(self, cells: list[Cell]) -> list[Cell]:
        """The cells as they are here, on another machine with the data that lie there, which must be the same."""
        fingerprint = self.experiment.fingerprint
        if self.luggage is None or fingerprint is None or self.data_dir is None:
            return cells
        place = self.luggage.place_of_data(self.data_dir, fingerprint, cells[0].data)
        return [replace(cell, data_dir=place) for cell in cells]


def _check_importable(method: Method) -> None:
    main = sys.modules["__main__"]
    has_file = getattr(main, "__file__", None) or getattr(main, "__spec__", None)
    if method.source.startswith("__main__:") and not has_file:
        raise ValueError(
            f"Worker processes cannot import the method {method.name}, which was typed into a notebook or a Python "
            f"prompt: write its class into a file, mymethod.py, and import it from there."
        )


@contextlib.contextmanager
def _caught_warnings(messages: dict[str, None]) -> Iterator[None]:
    """Collect warnings for the report, each once, where printing them would tear the progress bar."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for of_no_use_here in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", of_no_use_here)
        try:
            yield
        finally:
            messages |= dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught)
