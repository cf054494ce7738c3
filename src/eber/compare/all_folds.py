"""The results of one method on every held-out fold as a comparison has them, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from eber.compare.blocks import Block, blocks_for, folds_judged
from eber.compare.evaluating import evaluate_fold, pool_of
from eber.compare.folds import FoldPlan
from eber.compare.methods import POOL_MEMBERS, Effort, is_tuned
from eber.compare.shared_fits import fit_without
from eber.methods import POOL
from eber.runs.cell import CellResult
from eber.runs.joint_fits import run_alone
from eber.tables.training import TrainingTable


def results_by_fold(
    table: TrainingTable, plan: FoldPlan, method: str, seed: int, effort: Effort, known: Mapping[str, CellResult]
) -> Iterator[tuple[str, CellResult]]:
    """Name and result of each fold, one after the other.

    Parameters
    ----------
    known : mapping
        Fold to a result that is there already.
    """
    folds = _Folds(table, plan, seed, effort)
    for fold in plan.folds:
        yield fold, known.get(fold) or folds.result(fold, method)


class _Folds:
    """Held-out folds of a table, with what fits without each block have said."""

    def __init__(self, table: TrainingTable, plan: FoldPlan, seed: int, effort: Effort) -> None:
        self._table, self._plan, self._seed, self._effort = table, plan, seed, effort
        self._said: dict[tuple[str, Block], CellResult] = {}

    def result(self, fold: str, method: str) -> CellResult:
        members = self._plan.folds[fold]
        held = np.isin(self._table.environments, members)
        if method == POOL and self._effort.searches:
            return pool_of(self._table, held, {member: self.result(fold, member) for member in POOL_MEMBERS})
        shared = self._effort.searches and is_tuned(method)
        blocks = blocks_for(members, self._plan.blocks) if shared else []
        said = {block: self._without(block, method) for block in blocks}
        return run_alone(evaluate_fold(self._table, held, method, self._seed, self._effort, said))

    def _without(self, block: Block, method: str) -> CellResult:
        if (method, block) not in self._said:
            folds = folds_judged(block, self._plan.folds, self._plan.blocks)
            fits = fit_without(self._table, block, folds, method, self._seed, self._effort)
            self._said[method, block] = run_alone(fits)
        return self._said[method, block]
