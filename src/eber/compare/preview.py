"""How long a comparison will take, by trying each method for a moment."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from eber.compare.folds import FoldPlan
from eber.compare.methods import BATCH_SIZE, Effort, build
from eber.estimators.many_fits import fit_alone
from eber.methods import find_method
from eber.model_selection import MAX_FOLDS, selection_folds
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable

TIMED_STEPS, TIMED_PASSES = 40, 2
TIMED_ROWS = 2000
TIMED_TREES = 10
WORKER_START = 4.0
"""Seconds until a worker process has imported what it needs."""


def expected_seconds(
    table: TrainingTable,
    methods: Iterable[str],
    plan: FoldPlan,
    n_seeds: int,
    effort: Effort,
    jobs: int,
    finished: Mapping[str, int] | None = None,
) -> float:
    """Rough wall time of all fits: that of a short one, times how much more a whole one has to do.

    Parameters
    ----------
    jobs : int
        Worker processes; more than there are fits or free processors do not help.
    finished : mapping, optional
        Method to the number of its results that are there already.
    """
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    rng = np.random.default_rng(0)
    n_folds = len(plan.folds)
    n_train = len(table) * (1 - 1 / max(n_folds, 2))
    total, n_fits = 0.0, 0
    for method in methods:
        missing = n_folds * n_seeds - (finished or {}).get(method, 0)
        if not missing:
            continue
        network = find_method(method).is_network
        size = TIMED_STEPS * BATCH_SIZE if network else TIMED_ROWS
        # Twice: the first fit of a method pays for imports and caches that no other pays for.
        seconds, n_timed = min(_time_short_fit(table, preprocessing, method, size, rng) for _ in range(2))
        if network:
            steps = effort.epochs(round(n_train)) * np.ceil(n_train / BATCH_SIZE)
            seconds *= fits_of(method, table, effort) * steps / np.ceil(n_timed / BATCH_SIZE)
        else:
            seconds *= max(1.0, n_train / n_timed)
        total += seconds * missing
        n_fits += missing
    if not n_fits:
        return 0.0
    workers = min(jobs, n_fits)
    return WORKER_START + total / workers * _crowding(workers)


def _crowding(workers: int) -> float:
    """How much slower so many processes run with what else the machine is doing; a short fit runs at full speed."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1.0, (load + workers) / (os.cpu_count() or 1))


def fits_of(method: str, table: TrainingTable, effort: Effort) -> int:
    """How often a method is fitted for each fold and seed: once, and for each weight and fold of the selection."""
    declared = find_method(method)
    if not declared.penalty_parameter or not effort.searches:
        return 1
    try:
        folds = len(selection_folds(effort.selection, table.y, table.environments))
    except ValueError:
        return 1
    # One of the environments is held out, and is not among those that the rule leaves out in turn.
    folds -= effort.selection == "leave_one_environment_out" and folds < MAX_FOLDS
    return 1 + len(declared.grid(effort.penalty_weights)) * folds


def _time_short_fit(
    table: TrainingTable, preprocessing: Preprocessing, method: str, size: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Seconds that a pass over some rows takes, or that trees and the like take to fit them; and how many rows.

    Of the processor, not of the clock: what else the machine does is reckoned with once, by `_crowding`.
    """
    rows = _sample_rows(table, size, rng)
    X, y = preprocessing.transform(table.columns.select(rows)), table.y[rows]
    e = table.environments[rows]
    share = 1.0
    if find_method(method).is_network:  # more passes, less what a fit costs before and after them
        seconds = [_time_fit(_short(method, passes, e), X, y, e) for passes in (1, 1 + TIMED_PASSES)]
        return max(seconds[1] - seconds[0], 0.0) / TIMED_PASSES, len(rows)
    classifier = _short(method, 1, e)
    if isinstance(classifier, HistGradientBoostingClassifier):  # tree after tree of the same cost
        share = TIMED_TREES / classifier.max_iter
        classifier.set_params(max_iter=TIMED_TREES)
    return _time_fit(classifier, X, y, e) / share, len(rows)


def _short(method: str, passes: int, environments: np.ndarray) -> Any:
    return build(method, 0, epochs=passes, n_environments=len(np.unique(environments)), penalty_weight=1.0)


def _time_fit(classifier: Any, X: np.ndarray, y: np.ndarray, environments: np.ndarray) -> float:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a moment's fit has every sign of a bad one
        try:
            fit_alone(classifier, X, y, environments)
        except Exception:  # what is wrong with a method is said by its cells, which fail alone
            return 0.0
    return time.process_time() - start


def _sample_rows(table: TrainingTable, size: int, rng: np.random.Generator) -> np.ndarray:
    """A random sample, with a row of every class in it."""
    order = rng.permutation(len(table))
    first = [order[np.argmax(table.y[order] == label)] for label in np.unique(table.y)]
    return np.unique(np.concatenate([order[:size], first]))
