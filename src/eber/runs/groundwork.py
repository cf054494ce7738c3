"""Cells that results are built on: what has to be finished before a cell can be computed, and is handed to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eber.runs.cell import Cell, Part
from eber.runs.parameters import Value

if TYPE_CHECKING:
    from eber.runs.spec import Experiment


@dataclass(frozen=True)
class Groundwork:
    """A setting whose cells are no rows of any table: results are built on what they leave.

    Parameters
    ----------
    changes : mapping
        The parameters that it changes.
    circumstances : str
        What progress and errors call it.
    seed : int, optional
        The one under which it is done for results of all seeds; their own when not given.
    """

    changes: Mapping[str, Value]
    circumstances: str
    seed: int | None = None


def on_nothing(setting: str, method: str) -> Sequence[Part]:
    """The parts of an experiment's cells where each stands by itself."""
    return ()


@dataclass(frozen=True)
class WorkPlan:
    """What has to be finished so that some cells can be.

    Parameters
    ----------
    cells : tuple of Cell
        Those that were asked for, then those that they are built on.
    finished : frozenset of keys
        Those of them that are finished already.
    parts : mapping
        Key of an unfinished cell to the cells that it is built on.
    """

    cells: tuple[Cell, ...]
    finished: frozenset[tuple[str, str, int]]
    parts: Mapping[tuple[str, str, int], Mapping[Part, Cell]]

    @property
    def missing(self) -> list[Cell]:
        """Those that are still to be computed."""
        return [cell for cell in self.cells if cell.key not in self.finished]


def plan_work(
    experiment: Experiment, cells: Iterable[Cell], overrides: Mapping[str, Any], is_finished: Callable[[Cell], bool]
) -> WorkPlan:
    """The cells that were asked for with all that they are built on; what is finished needs nothing more.

    Parameters
    ----------
    overrides : mapping
        The user's, with which the cells were planned.
    """
    queue = list(cells)
    planned: dict[tuple[str, str, int], Cell] = {}
    finished, parts = set(), {}
    for cell in queue:  # which grows
        if cell.key in planned:
            continue
        planned[cell.key] = cell
        if is_finished(cell):
            finished.add(cell.key)
            continue
        parts[cell.key] = {
            (setting, method): replace(
                experiment.cell(setting, method, _seed(experiment, setting, cell), overrides, cell.data),
                data_dir=cell.data_dir,
            )
            for setting, method in experiment.built_on(cell.setting, cell.method)
        }
        queue.extend(parts[cell.key].values())
    return WorkPlan(tuple(planned.values()), frozenset(finished), parts)


def _seed(experiment: Experiment, setting: str, cell: Cell) -> int:
    """The seed of what a cell is built on."""
    below = experiment.groundwork.get(setting)
    return cell.seed if below is None or below.seed is None else below.seed
