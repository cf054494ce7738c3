"""Which cell next, and how long the rest will take."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from eber.runs.cell import Cell
from eber.runs.ledger import Record

Key = tuple[str, str, int]
"""Of a cell: its setting, method and seed."""


Kind = tuple[str, bool]
"""A method, and whether it is groundwork that it does."""


@dataclass(frozen=True)
class Known:
    """What finished cells say of others.

    Parameters
    ----------
    seconds : mapping
        Setting and method to the seconds of a cell.
    typical : mapping
        Method to the seconds of a cell in a setting like any other.
    slowness : mapping
        Setting to how many times as long its cells take.
    """

    seconds: Mapping[tuple[str, str], float]
    typical: Mapping[Kind, float]
    slowness: Mapping[str, float]


class Schedule:
    """Cells still to be computed, longest first, so that no long one is left alone at the end.

    A cell is expected to take as long as the finished ones of the same method and setting did; before there are any, as
    those of the method in other settings, groundwork and results apart, times how long its setting takes other methods.
    Methods that have not been seen yet come first, to learn about them.

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
    guess : callable
        Cell -> how long it should take, or None. It stands in for the time of a method until its cells are finished,
        times how far off it was for those that are.
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        finished: Iterable[Record],
        parts: Mapping[Key, Iterable[Key]] = MappingProxyType({}),
        groundwork: Collection[str] = (),
        guess: Callable[[Cell], float | None] = lambda cell: None,
    ) -> None:
        self._pending = list(cells)
        self._parts, self._groundwork, self._guess = parts, groundwork, guess
        # Guesses count as right for a tenth of the work: of a cell that takes no time next to nothing can be learned.
        self._taken = self._guessed = sum(self._guess(cell) or 0.0 for cell in self._pending) / 10
        self._times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in finished:
            self._times[record.identity["setting"], record.identity["method"]].append(record.cell_seconds)
        self._known = self._what_is_known()

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
        longest = max(ready, key=lambda cell: self._expected(cell, lambda _: math.inf))

        def block(cell: Cell) -> tuple[str, str, int]:
            return cell.setting, cell.method, cell.seed // seeds_together

        taken = [cell for cell in ready if block(cell) == block(longest)]
        self._pending = [cell for cell in self._pending if cell not in taken]
        return taken

    def learn(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        self._times[cell.setting, cell.method].append(seconds)
        self._known = self._what_is_known()
        if guessed := self._guess(cell):
            self._taken += seconds
            self._guessed += guessed

    def seconds_left(self, running: Iterable[Cell], jobs: int) -> float | None:
        """Expected time until all is done, or None while nothing is known."""
        known = [seconds for times in self._times.values() for seconds in times]
        typical = sum(known) / len(known) if known else None

        def expected(cell: Cell) -> float:
            guess = self._guessed_seconds(cell)
            return self._expected(cell, lambda _: (typical or 0.0) if guess is None else guess)

        work_left = [*self._pending, *(running := list(running))]
        if typical is None and any(self._guess(cell) is None for cell in work_left):
            return None
        # What runs has, on average, half of its time before it; a worker has the seeds of one method and setting.
        at_work: dict[tuple[str, str], float] = defaultdict(float)
        for cell in running:
            at_work[cell.setting, cell.method] += expected(cell) / 2
        work = sum(expected(cell) for cell in self._pending) + sum(at_work.values())
        return max(work / jobs, max(at_work.values(), default=0.0))

    def _expected(self, cell: Cell, unknown: Callable[[Cell], float]) -> float:
        known = self._known
        if (cell.setting, cell.method) in known.seconds:
            return known.seconds[cell.setting, cell.method]
        typical = known.typical.get(self._kind(cell.setting, cell.method))
        return unknown(cell) if typical is None else typical * known.slowness.get(cell.setting, 1.0)

    def _guessed_seconds(self, cell: Cell) -> float | None:
        guess = self._guess(cell)
        return guess if guess is None or not self._guessed else guess * self._taken / self._guessed

    def _what_is_known(self) -> Known:
        # Not means: the first fit of a worker pays for imports that no other pays for.
        seconds = {key: statistics.median(seen) for key, seen in self._times.items()}
        by_kind: dict[Kind, dict[str, float]] = defaultdict(dict)
        for (setting, method), median in seconds.items():
            by_kind[self._kind(setting, method)][setting] = median
        ratios: dict[str, list[float]] = defaultdict(list)
        for settings in by_kind.values():
            typical = statistics.median(settings.values())
            if len(settings) > 1 and typical:  # what was seen in one setting says nothing about others
                for setting, median in settings.items():
                    ratios[setting].append(median / typical)
        slowness = {setting: statistics.median(seen) or 1.0 for setting, seen in ratios.items()}
        return Known(
            seconds,
            {
                kind: statistics.median(median / slowness.get(setting, 1.0) for setting, median in settings.items())
                for kind, settings in by_kind.items()
            },
            slowness,
        )

    def _kind(self, setting: str, method: str) -> Kind:
        return method, setting in self._groundwork
