"""What a method costs here, by trying all its settings for a moment: seconds of one processor.

A fit has a part that is there however short it is (preparing rows, looking at what came out) and a part for each pass
or tree. Both are found from two short fits, one three times as long as the other: to scale a single one would multiply
the first part as well. Seconds are those of the processor, not of the clock: what else the machine is doing is looked
at apart.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from eber.compare.methods import BATCH_SIZE, Effort, build, candidates_of
from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier
from eber.estimators.batches import batch_rows
from eber.estimators.many_fits import fit_many
from eber.methods import find_method
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable
from eber.tuning.left_out import said_about

TIMED_STEPS = 20
"""Steps of the shorter fit of networks, at least."""
TIMED_TREES = 10
TIMED_ROWS = 2000
ASKED_ROWS = 500
LONGER = 3
"""How many times as long the longer of two fits is."""
TREES = {HistGradientBoostingClassifier: "max_iter", RandomForestClassifier: "n_estimators"}
"""Number of trees, by kind of classifier."""


@dataclass(frozen=True)
class Cost:
    """Seconds of all settings of a method together.

    Attributes
    ----------
    fit : callable
        Number of training rows -> seconds.
    judge : float
        To say about a row what a search asks of it while it is left out.
    answer : callable
        Number of rows -> seconds of a call that predicts them.
    """

    fit: Callable[[float], float]
    judge: float
    answer: Callable[[float], float]


FREE = Cost(lambda rows: 0.0, 0.0, lambda rows: 0.0)


def time_method(
    table: TrainingTable, preprocessing: Preprocessing, method: str, n_train: float, effort: Effort
) -> Cost:
    """Try all settings of a method, networks side by side, for fits of about so many training rows.

    What is wrong with a method is said by its cells, which fail alone: here it costs nothing.
    """
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # a moment's fit has every sign of a bad one
            timed = _time_network if find_method(method).is_network else _time_other
            return timed(_Sample(table, preprocessing, n_train), method, effort)
    except Exception:
        return FREE


@dataclass(frozen=True)
class _Sample:
    """Rows of a table, as many as a short fit takes."""

    table: TrainingTable
    preprocessing: Preprocessing
    n_train: float

    def __call__(self, size: int) -> MultiEnvironmentData:
        """A random sample, with a row of every class in it."""
        y = self.table.y
        order = np.random.default_rng(0).permutation(len(y))
        first = [order[np.argmax(y[order] == label)] for label in np.unique(y)]
        rows: NDArray[np.int64] = np.unique(np.concatenate([order[:size], first]))
        X = self.preprocessing.transform(self.table.columns.select(rows))
        return MultiEnvironmentData(X, y[rows], self.table.environments[rows])


def _fits(method: str, epochs: int, data: MultiEnvironmentData, effort: Effort, **settings: Any) -> list[Any]:
    classifier = build(method, 0, epochs, len(data.environment_names))
    accepted = {name: value for name, value in settings.items() if name in classifier.get_params()}
    candidates = candidates_of(method) if effort.searches else [{}]
    return [clone(classifier).set_params(**accepted, **candidate) for candidate in candidates]


def _time_network(sample: _Sample, method: str, effort: Effort) -> Cost:
    n_train = sample.n_train
    batch = batch_rows(BATCH_SIZE, round(n_train))
    data = sample(min(round(n_train), LONGER * TIMED_STEPS * batch))
    steps_a_pass = math.ceil(len(data) / batch)
    passes = math.ceil(TIMED_STEPS / steps_a_pass)
    # The batch is that of all training rows, not of those that are timed.
    long, short, warm = (_fits(method, p, data, effort, batch_size=batch) for p in (LONGER * passes, passes, passes))
    _seconds(_fit, warm[:1], data)  # the first pays for what no other pays for
    brief, whole = (_seconds(_fit, fits, data) for fits in (short, long))
    of_a_step = max(whole - brief, 0.0) / ((LONGER - 1) * passes * steps_a_pass)
    fixed = max(brief - of_a_step * passes * steps_a_pass, 0.0) / len(data)  # looking at what came out: by rows
    epochs = effort.epochs(round(n_train))
    asked = sample(ASKED_ROWS)
    adapting = effort.searches and isinstance(long[0], EBERClassifier) and long[0].prediction_weights == "learned"
    judged = _seconds(said_about, long, asked, len(np.unique(data.y)), adapting) / len(asked)
    return Cost(
        lambda rows: fixed * rows + of_a_step * epochs * math.ceil(rows / batch), judged, _answering(long, asked, 1.0)
    )


def _time_other(sample: _Sample, method: str, effort: Effort) -> Cost:
    data, asked = sample(TIMED_ROWS), sample(ASKED_ROWS)
    half = sample(len(data) // 2)
    fits = _fits(method, 1, data, effort)
    _seconds(_fit, [_shortened(fits[0], 1)[0]], half)  # the first pays for what no other pays for
    costs = [_cost_of_one(fit, data, half, asked) for fit in fits]
    return Cost(
        lambda rows: sum(cost.fit(rows) for cost in costs),
        sum(cost.judge for cost in costs),
        lambda rows: sum(cost.answer(rows) for cost in costs),
    )


def _cost_of_one(fit: Any, data: MultiEnvironmentData, half: MultiEnvironmentData, asked: MultiEnvironmentData) -> Cost:
    """Of one setting of a classifier that is fitted alone."""
    (short, few), (long, more), (again, _) = (_shortened(fit, times) for times in (1, LONGER, LONGER))
    on_half, brief, whole = _seconds(_fit, [again], half), _seconds(_fit, [short], data), _seconds(_fit, [long], data)
    seconds = whole + (max(whole - brief, 0.0) * (1 - more) / (more - few) if more > few else 0.0)
    # By rows a straight line, through half of them and all.
    steepness = float(np.clip((1 - on_half / whole) / (1 - len(half) / len(data)), 0.0, 1.0)) if whole else 0.0
    answer = _answering([long], asked, 1 / more)
    return Cost(
        lambda rows: seconds * max(1 + steepness * (rows / len(data) - 1), 0.0), answer(len(asked)) / len(asked), answer
    )


def _answering(fits: Sequence[Any], asked: MultiEnvironmentData, times: float) -> Callable[[float], float]:
    """Number of rows -> seconds of a call that predicts them, of which a part is there for a single row as well."""
    few = asked.select(np.arange(max(len(asked) // 10, 1)))
    for_many, for_few = (times * _seconds(_ask, fits, rows) for rows in (asked, few))
    of_a_row = max(for_many - for_few, 0.0) / max(len(asked) - len(few), 1)
    of_a_call = max(for_few - of_a_row * len(few), 0.0)
    return lambda rows: of_a_call + of_a_row * rows


def _shortened(classifier: Any, times: int) -> tuple[Any, float]:
    """A copy with few trees, where there are trees, one after the other of the same cost; the share that is left."""
    short = clone(classifier)
    for kind, name in TREES.items():
        if isinstance(classifier, kind):
            whole = getattr(classifier, name)
            left = min(TIMED_TREES * times, whole)
            return short.set_params(**{name: left}), left / whole
    return short, 1.0


def _fit(fits: Sequence[Any], data: MultiEnvironmentData) -> None:
    fit_many(fits, data, raise_errors=False)


def _ask(fits: Sequence[Any], rows: MultiEnvironmentData) -> None:
    for fitted in fits:
        fitted.predict_proba(rows.X)


def _seconds(work: Callable[..., Any], *arguments: Any) -> float:
    """Seconds of the processor that it takes."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start
