"""Which cell next, and how long the rest will take."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from eber.runs.cell import Cell
from eber.runs.ledger import Record

Key = tuple[str, str, int]
"""Of a cell: its setting, method and seed."""


class Schedule:
    """Cells still to be computed, longest first, so that no long one is left alone at the end.

    A cell is expected to take as long as the finished ones of the same method and setting did; before there are any, as
    those of the method in other settings, groundwork and results apart. Methods that have not been seen yet come first,
    to learn about them.

    Parameters
    ----------
    cells : iterable of Cell
        In the order in which cells of equal length are run.
    finished : iterable of Record
        Cells of earlier runs, for their times.
    parts : mapping
        Key of a cell to the keys of those that have to be finished first.
    groundwork : collection of str
        Settings whose cells others are built on.
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        finished: Iterable[Record],
        parts: Mapping[Key, Iterable[Key]] = MappingProxyType({}),
        groundwork: Collection[str] = (),
    ) -> None:
        self._pending = list(cells)
        self._parts, self._groundwork = parts, groundwork
        self._times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in finished:
            self._times[record.identity["setting"], record.identity["method"]].append(record.cell_seconds)

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, cell: Cell) -> None:
        """Put a cell back."""
        self._pending.append(cell)

    def next(self, seeds_together: int = 1, running: Iterable[Cell] = ()) -> list[Cell]:
        """Take the cell that should run now, with the other seeds of its block: 0 to n-1, n to 2n-1, and so on.

        None where all that are left wait for cells that are running, here or elsewhere.
        """
        unfinished = {cell.key for cell in (*self._pending, *running)}

        def is_ready(cell: Cell) -> bool:
            return unfinished.isdisjoint(self._parts.get(cell.key, ()))

        ready = [cell for cell in self._pending if is_ready(cell)]
        if not ready:
            return []
        longest = max(ready, key=lambda cell: self._expected(cell, unknown=math.inf))

        def block(cell: Cell) -> tuple[str, str, int]:
            return cell.setting, cell.method, cell.seed // seeds_together

        taken = [cell for cell in ready if block(cell) == block(longest)]
        self._pending = [cell for cell in self._pending if cell not in taken]
        return taken

    def learn(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        self._times[cell.setting, cell.method].append(seconds)

    def seconds_left(self, running: Iterable[Cell], jobs: int) -> float | None:
        """Expected time until all is done, or None while nothing is known."""
        known = [seconds for times in self._times.values() for seconds in times]
        if not known:
            return None
        typical = sum(known) / len(known)
        # What runs has, on average, half of its time before it; a worker has the seeds of one method and setting.
        at_work: dict[tuple[str, str], float] = defaultdict(float)
        for cell in running:
            at_work[cell.setting, cell.method] += self._expected(cell, unknown=typical) / 2
        work = sum(self._expected(cell, unknown=typical) for cell in self._pending) + sum(at_work.values())
        return max(work / jobs, max(at_work.values(), default=0.0))

    def _expected(self, cell: Cell, unknown: float) -> float:
        times = self._times.get((cell.setting, cell.method))
        if not times:
            times = [seconds for key, seen in self._times.items() if self._is_alike(*key, cell) for seconds in seen]
        # Not the mean: the first fit of a worker pays for imports that no other pays for.
        return statistics.median(times) if times else unknown

    def _is_alike(self, setting: str, method: str, cell: Cell) -> bool:
        return method == cell.method and (setting in self._groundwork) == (cell.setting in self._groundwork)
