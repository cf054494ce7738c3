"""How long a comparison will take, by trying each method for a moment."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from eber.compare.folds import FoldPlan
from eber.compare.methods import BATCH_SIZE, POOL_MEMBERS, QUICK_POOL_FOLDS, Effort, build, candidates_of
from eber.datasets.base import MultiEnvironmentData
from eber.estimators.batches import batch_rows
from eber.estimators.many_fits import fit_many
from eber.io.machine import cores
from eber.methods import POOL, find_method
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable
from eber.tuning.left_out import choose_folds

TIMED_STEPS = 40
TIMED_ROWS = 2000
TIMED_TREES = 10
TREES = {HistGradientBoostingClassifier: "max_iter", RandomForestClassifier: "n_estimators"}
"""Number of trees, by kind of classifier."""
KEPT = 0.5
"""Of the candidates of a search, about so many are kept and fitted on all rows."""
WORKER_START = 4.0
"""Seconds until a worker process has imported what it needs."""


def expected_seconds(
    table: TrainingTable, cells: Mapping[str, int], plan: FoldPlan, effort: Effort, jobs: int
) -> float:
    """Rough wall time of all fits: that of short ones, times how much more whole ones have to do.

    Parameters
    ----------
    cells : mapping
        Method to how many of its results are still to be computed.
    jobs : int
        Worker processes; more than there are fits or free processors do not help.
    """
    work = {method: float(number) for method, number in cells.items() if number}
    pools = work.pop(POOL, 0.0)
    if pools and not effort.searches:  # its members are fitted for it, without each fold and on all rows
        work |= {member: work.get(member, 0.0) + pools * QUICK_POOL_FOLDS for member in POOL_MEMBERS}
    elif pools:  # it is made of what its members say; they are fitted for it where they have no results of their own
        work |= {member: pools for member in POOL_MEMBERS if member not in cells}
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    n_train = len(table) * (1 - 1 / max(len(plan.folds), 2))
    total = 0.0
    for method, number in work.items():
        # Twice: the first fit of a method pays for imports and caches that no other pays for.
        seconds = min(_seconds_of_all_settings(table, preprocessing, method, n_train, effort) for _ in range(2))
        total += number * seconds * passes_of(method, table, plan, effort)
    workers = min(jobs, max(sum(cells.values()), 1))
    return WORKER_START + total / workers * _crowding(workers)


def search_of(method: str, table: TrainingTable, plan: FoldPlan, effort: Effort) -> tuple[int, int]:
    """How many settings a method's search tries in a cell, and in how many folds; one and none without a search."""
    candidates = len(candidates_of(method)) if effort.searches and method != POOL else 1
    if candidates < 2:
        return 1, 0
    first = next(iter(plan.folds.values()))
    train = ~np.isin(table.environments, first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by the fits
        _, folds = choose_folds(table.y[train], table.environments[train], effort.search_folds)
    return candidates, len(folds)


def passes_of(method: str, table: TrainingTable, plan: FoldPlan, effort: Effort) -> float:
    """How often a cell fits all settings of a method, in units of all training rows."""
    candidates, folds = search_of(method, table, plan, effort)
    # Each of F folds leaves (F - 1) / F of the rows.
    return 1.0 if candidates == 1 else max(folds - 1, 0) + KEPT


def _crowding(workers: int) -> float:
    """How much slower so many processes run with what else the machine is doing."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1.0, (load + workers) / cores())


def _seconds_of_all_settings(
    table: TrainingTable, preprocessing: Preprocessing, method: str, n_train: float, effort: Effort
) -> float:
    """Expected seconds of a fit of every setting on all training rows, networks side by side, from a short one."""
    network = find_method(method).is_network
    batch = batch_rows(BATCH_SIZE, round(n_train))
    size = TIMED_STEPS * batch if network else TIMED_ROWS
    rows = _sample_rows(table, size, np.random.default_rng(0))
    X, y = preprocessing.transform(table.columns.select(rows)), table.y[rows]
    data = MultiEnvironmentData(X, y, table.environments[rows])
    classifier = build(method, 0, epochs=1, n_environments=len(data.environment_names))
    if network and "batch_size" in classifier.get_params():
        classifier.set_params(batch_size=batch)  # of all training rows, not of those that are timed
    candidates = candidates_of(method) if effort.searches else [{}]
    fits = [clone(classifier).set_params(**candidate) for candidate in candidates]
    if network:
        seconds, n_timed = _time_fits(fits, data)
        steps = effort.epochs(round(n_train)) * np.ceil(n_train / batch)
        return float(seconds * steps / np.ceil(n_timed / batch))
    shares = [_shorten(fit) for fit in fits]
    timed = [_time_fits([fit], data) for fit in fits]
    return sum(seconds / share * max(1.0, n_train / n) for (seconds, n), share in zip(timed, shares, strict=True))


def _shorten(classifier: Any) -> float:
    """Fewer trees, where there are trees, one after the other of the same cost; the share of the fit that is left."""
    for kind, name in TREES.items():
        if isinstance(classifier, kind):
            whole = getattr(classifier, name)
            classifier.set_params(**{name: min(TIMED_TREES, whole)})
            return float(min(TIMED_TREES, whole) / whole)
    return 1.0


def _time_fits(classifiers: list[Any], data: MultiEnvironmentData) -> tuple[float, int]:
    """Seconds of one processor that these fits take together, and the rows that they were timed on."""
    # Of the processor, not of the clock: what else the machine is doing is looked at apart.
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # a moment's fit has every sign of a bad one
        try:
            fit_many(classifiers, data, raise_errors=False)
        except Exception:  # what is wrong with a method is said by its cells, which fail alone
            return 0.0, len(data.y)
    return time.process_time() - start, len(data.y)


def _sample_rows(table: TrainingTable, size: int, rng: np.random.Generator) -> np.ndarray:
    """A random sample, with a row of every class in it."""
    order = rng.permutation(len(table))
    first = [order[np.argmax(table.y[order] == label)] for label in np.unique(table.y)]
    return np.unique(np.concatenate([order[:size], first]))
