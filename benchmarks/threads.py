"""What a second thread is worth: the clock's time of a fit with two, in units of the same fit with one.

Only on an idle machine with two cores do these ratios mean anything.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, clone

from benchmarks.large_tables import COLUMNS, ENVIRONMENTS
from eber import EBERClassifier, ERMClassifier
from eber.datasets.base import MultiEnvironmentData
from eber.datasets.parametric import ParametricParameters, draw

THREADS = (1, 2)
TURNS = 3
IMAGES = 3_000


def second_thread(n_rows: int = 400_000) -> dict[str, dict[str, float]]:
    """Ratios for tables with batches of several sizes and for images; the least of three turns each."""
    table = draw(
        ParametricParameters(m_train=ENVIRONMENTS, n=n_rows // ENVIRONMENTS, d=COLUMNS, m_validation=1, m_test=1),
        random_state=0,
    ).train
    table = MultiEnvironmentData(table.X.astype(np.float32), table.y, table.environments)
    found = {
        f"EBER, table, batches of {size:,}": _ratio(EBERClassifier(epochs=1, batch_size=size, random_state=0), table)
        for size in (64, 256, 1024, 4096)
    }
    for name, make in (("ERM", ERMClassifier), ("EBER", EBERClassifier)):
        images = make(featurizer="cnn", representation_dim=32, epochs=1, batch_size=128, random_state=0)
        found[f"{name}, images, batches of 128"] = _ratio(images, _images())
    return {"two threads / one, by the clock": found}


def _ratio(classifier: BaseEstimator, data: MultiEnvironmentData) -> float:
    best = dict.fromkeys(THREADS, float("inf"))
    for _ in range(TURNS):
        for threads in THREADS:
            fit = clone(classifier).set_params(n_threads=threads).fit
            call = partial(fit, data.X, data.y, environments=data.environments)
            best[threads] = min(best[threads], _seconds(call))
    return best[2] / best[1]


def _seconds(call: Callable[[], object]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


def _images() -> MultiEnvironmentData:
    """Images of the size of Colored MNIST's; what they show makes no difference to the time."""
    rng = np.random.default_rng(0)
    X = rng.random((IMAGES, 2, 28, 28), dtype=np.float32)
    return MultiEnvironmentData(X, rng.integers(0, 2, IMAGES), rng.choice(list("abcdef"), IMAGES))
