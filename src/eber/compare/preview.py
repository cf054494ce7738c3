"""How long a comparison will take, by trying each method for a moment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable

import numpy as np

from eber.compare.grouping import group_environments
from eber.compare.methods import BATCH_SIZE, Effort, build
from eber.experiments.fitting import CLASSIFIERS, PENALISED
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable

TRIAL_STEPS = 40
TRIAL_ROWS = 2000
WORKER_START = 4.0
"""Seconds until a worker process has imported what it needs."""


def expected_seconds(
    table: TrainingTable, methods: Iterable[str], n_folds: int, n_seeds: int, effort: Effort, jobs: int
) -> float:
    """Rough wall time of all fits; predictions are not counted."""
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    rng = np.random.default_rng(0)
    # The first fit of a process pays for imports and caches that no other pays for.
    _trial(table, preprocessing, "ERM", TRIAL_STEPS, rng)
    total = 0.0
    for method in methods:
        network = method in CLASSIFIERS
        seconds, n_tried = _trial(
            table, preprocessing, method, TRIAL_STEPS * BATCH_SIZE if network else TRIAL_ROWS, rng
        )
        n = len(table) * (1 - 1 / max(n_folds, 2))
        if network:
            fits = 1 + (len(effort.penalty_weights) if method in PENALISED and len(effort.penalty_weights) > 1 else 0)
            steps = effort.epochs(round(n)) * np.ceil(n / BATCH_SIZE)
            seconds *= fits * steps / np.ceil(n_tried / BATCH_SIZE)
        else:
            seconds *= max(1.0, n / n_tried)
        total += seconds * n_folds * n_seeds
    return WORKER_START + total / jobs


def _trial(
    table: TrainingTable, preprocessing: Preprocessing, method: str, size: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Seconds of a short fit, and the rows it was made on."""
    rows = _trial_rows(table, size, rng)
    X, y = preprocessing.transform(table.columns.select(rows)), table.y[rows]
    e = group_environments(X, table.environments[rows], seed=0) if method == "EBER" else table.environments[rows]
    classifier = build(method, 0, epochs=1, penalty_weight=1.0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a moment's fit has every sign of a bad one
        classifier.fit(X, y, **({"environments": e} if method in CLASSIFIERS else {}))
    return time.perf_counter() - start, len(rows)


def _trial_rows(table: TrainingTable, size: int, rng: np.random.Generator) -> np.ndarray:
    """A random sample, with a row of every class in it."""
    order = rng.permutation(len(table))
    first = [order[np.argmax(table.y[order] == label)] for label in np.unique(table.y)]
    return np.unique(np.concatenate([order[:size], first]))
