"""How long a comparison will take: what each method costs here, times how often that is done."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from eber.compare.blocks import blocks_for
from eber.compare.folds import FoldPlan
from eber.compare.importance import asked_rows
from eber.compare.methods import POOL_MEMBERS, QUICK_POOL_FOLDS, Effort, candidates_of, is_tuned
from eber.compare.timing import Cost, time_method
from eber.io.machine import cores
from eber.methods import POOL
from eber.runs.cell import Cell
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable
from eber.tuning.left_out import choose_folds

KEPT = 0.6
"""Of the candidates of a search, about so many are kept and fitted on all rows."""
WORKER_START = 4.0
"""Seconds until a worker process has imported what it needs."""


@dataclass(frozen=True)
class Left:
    """What is not finished yet of a method.

    Parameters
    ----------
    results : int
    blocks : int
        Fits of all settings without a block of environments, which results are built on.
    """

    results: int
    blocks: int = 0


@dataclass(frozen=True)
class Expectation:
    """How long what is left of a comparison will take.

    Parameters
    ----------
    seconds : float
        Of the clock.
    of_results, of_blocks : mapping
        Method to seconds of a processor for each of its results, and for each block.
    """

    seconds: float
    of_results: Mapping[str, float]
    of_blocks: Mapping[str, float]

    def of_cell(self, groundwork: Collection[str], cell: Cell) -> float | None:
        """Seconds of a processor for a cell of a run; None of a method that was not tried."""
        return (self.of_blocks if cell.setting in groundwork else self.of_results).get(cell.method)


def expect(table: TrainingTable, left: Mapping[str, Left], plan: FoldPlan, effort: Effort, jobs: int) -> Expectation:
    """Roughly, from short fits of each method that has something left.

    Parameters
    ----------
    left : mapping
        Method to what is not finished.
    jobs : int
        Worker processes; more than there are results or free processors do not help.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # before what is tried here adds to it
    work = {method: of for method, of in left.items() if of.results or of.blocks}
    of_results: dict[str, float] = {}
    of_blocks: dict[str, float] = {}
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    n_train = len(table) * (1 - 1 / max(len(plan.folds), 2))
    tried: dict[str, Cost] = {}

    def cost(method: str) -> Cost:
        if method not in tried:
            tried[method] = time_method(table, preprocessing, method, n_train, effort)
        return tried[method]

    for method in work:
        if method != POOL:
            of_results[method] = _result(table, plan, effort, method, cost(method))
            of_blocks[method] = _block(table, plan, cost(method)) if plan.blocks else 0.0
        elif effort.searches:  # made of what its members say
            of_results[method] = of_blocks[method] = 0.0
        else:  # they are fitted for it, without each fold and on all rows
            left_over = n_train * (1 - 1 / QUICK_POOL_FOLDS)
            of_results[method] = sum(
                cost(member).fit(n_train)
                + QUICK_POOL_FOLDS * cost(member).fit(left_over)
                + _answers(table, plan, cost(member))
                for member in POOL_MEMBERS
            )
            of_blocks[method] = 0.0
    total = sum(of.results * of_results[method] + of.blocks * of_blocks[method] for method, of in work.items())
    workers = min(jobs, max(sum(of.results + of.blocks for of in left.values()), 1))
    crowding = max(1.0, (load + workers) / cores())  # how much slower with what else the machine is doing
    return Expectation(WORKER_START + total / workers * crowding, of_results, of_blocks)


def search_of(method: str, table: TrainingTable, plan: FoldPlan, effort: Effort) -> tuple[int, int]:
    """How many settings a method tries, and in how many folds for each result; one and none without a search.

    Folds without a block of environments are shared between results.
    """
    if not effort.searches or not is_tuned(method):
        return 1, 0
    first = next(iter(plan.folds.values()))
    if shared := blocks_for(first, plan.blocks):
        return len(candidates_of(method)), len(shared)
    train = ~np.isin(table.environments, first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by the fits
        _, folds = choose_folds(table.y[train], table.environments[train], effort.search_folds)
    return len(candidates_of(method)), len(folds)


def _result(table: TrainingTable, plan: FoldPlan, effort: Effort, method: str, cost: Cost) -> float:
    """Of a result: the settings that are kept on all training rows, and what they are asked about the held-out ones."""
    n_train = len(table) * (1 - 1 / max(len(plan.folds), 2))
    answers = _answers(table, plan, cost)
    if not effort.searches or not is_tuned(method):
        return cost.fit(n_train) + answers
    seconds = KEPT * (cost.fit(n_train) + answers)
    alone = [members for members in plan.folds.values() if not blocks_for(members, plan.blocks)]
    if alone:  # a search of its own, whose fits leave out one of F folds each
        _, folds = search_of(method, table, FoldPlan(plan.folds, ()), effort)
        own = folds * cost.fit(n_train * (1 - 1 / max(folds, 2))) + n_train * cost.judge
        seconds += own * len(alone) / len(plan.folds)
    return seconds


def _block(table: TrainingTable, plan: FoldPlan, cost: Cost) -> float:
    """Of a block: all settings without it, and what they say about its rows."""
    rows = float(np.mean([np.isin(table.environments, block).sum() for block in plan.blocks]))
    return cost.fit(len(table) - rows) + rows * cost.judge


def _answers(table: TrainingTable, plan: FoldPlan, cost: Cost) -> float:
    """Of what is asked about held-out rows, most of it for the importance of columns."""
    n_held = np.mean([np.isin(table.environments, members).sum() for members in plan.folds.values()])
    calls, rows = asked_rows(round(n_held), len(table.schema.features))
    return cost.answer(float(n_held)) + calls * cost.answer(rows)
