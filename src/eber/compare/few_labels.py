"""What labels of a new environment would have been worth, and whether rates lay where they were said to lie.

Both are found from predictions that a comparison has anyway: what a method said about each held-out environment. Slope
and intercepts of one environment are judged by their distribution over the other held-out ones
(`eber.tuning.calibration`), never by its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eber.evaluation.metrics import negative_log_likelihood
from eber.tuning.calibration import MIN_ENVIRONMENTS, Calibration, estimate_calibration

LABELS = (10, 30, 100)
DRAWS = 5
"""Random choices of the labelled rows in each environment."""
MIN_JUDGED = 30
"""Rows, at least, that are left to judge by."""
HARMFUL = 0.01
"""A rise of NLL that counts as harm."""
MAX_ROWS = 2000
"""Of an environment, that slopes and intercepts are estimated from."""

Held = Mapping[str, tuple[NDArray[np.int64], NDArray[np.float64]]]
"""Held-out environment to the column of each row's class (n,) and its probabilities (n, K)."""


@dataclass(frozen=True)
class LabelGain:
    """What so many labels would have changed.

    Parameters
    ----------
    n_labels : int
    n_environments : int
        Those with rows enough to be judged.
    before, after : float
        NLL of the rows without labels, the mean over environments.
    low, high : float
        95 % interval of the mean change over environments, by Student's t; NaN for one environment.
    better : int
        Environments in which it fell, on average over the draws.
    harmed : float
        Share of all draws in which it rose by more than `HARMFUL`.
    """

    n_labels: int
    n_environments: int
    before: float
    after: float
    low: float
    high: float
    better: int
    harmed: float


@dataclass(frozen=True)
class RateCheck:
    """The share of a class in a held-out environment, and where it was said to lie.

    Parameters
    ----------
    environment : str
    n_rows : int
    said : float
        Mean prediction.
    low, high : float
    observed : float
    """

    environment: str
    n_rows: int
    said: float
    low: float
    high: float
    observed: float

    @property
    def inside(self) -> bool:
        """Whether it did lie there."""
        return self.low <= self.observed <= self.high


def calibrations_of_others(held: Held) -> dict[str, Calibration]:
    """Of each environment how the others differ; nothing where there are too few of them."""
    if len(held) <= MIN_ENVIRONMENTS:
        return {}
    sampled = {name: _sample(labels, proba) for name, (labels, proba) in held.items()}
    return {name: calibration({k: v for k, v in sampled.items() if k != name}) for name in held}


def calibration(held: Held) -> Calibration:
    """How these environments differ."""
    names = np.repeat(np.arange(len(held)), [len(labels) for labels, _ in held.values()])
    labels, proba = (np.concatenate(parts) for parts in zip(*held.values(), strict=True))
    return estimate_calibration(proba, labels, names)


def label_gains(held: Held, priors: Mapping[str, Calibration]) -> list[LabelGain]:
    """NLL with 10, 30 and 100 labels, as far as environments are large enough."""
    gains = []
    for n_labels in LABELS:
        judged = {
            name: _changes(labels, proba, priors[name], n_labels)
            for name, (labels, proba) in held.items()
            if name in priors and len(labels) >= n_labels + MIN_JUDGED
        }
        if judged:
            gains.append(_summed_up(n_labels, np.array(list(judged.values()))))
    return gains


def rate_checks(held: Held, priors: Mapping[str, Calibration], k: int, level: float) -> list[RateCheck]:
    """Of each environment the share of class k, and the interval in which it was said to lie."""
    checks = []
    for name, prior in priors.items():
        labels, proba = held[name]
        low, high = prior.rate_interval(proba, level)
        said = float(proba[:, k].mean())
        bounds = min(float(low[k]), said), max(float(high[k]), said)
        checks.append(RateCheck(name, len(labels), said, *bounds, float((labels == k).mean())))
    return checks


def share_inside(checks: Sequence[RateCheck]) -> tuple[int, float, float]:
    """How many lay inside, and the 95 % interval (Clopper and Pearson's) of the share that does in the long run."""
    inside = sum(check.inside for check in checks)
    bounds = stats.binomtest(inside, len(checks)).proportion_ci(method="exact")
    return inside, float(bounds.low), float(bounds.high)


def _changes(
    labels: NDArray[np.int64], proba: NDArray[np.float64], prior: Calibration, n_labels: int
) -> NDArray[np.float64]:
    """NLL of the rows without labels before and after, (draws, 2)."""
    classes = np.arange(proba.shape[1])
    found = []
    for draw in range(DRAWS):
        order = np.random.default_rng([draw, len(labels)]).permutation(len(labels))
        seen, rest = order[:n_labels], order[n_labels:]
        after = prior.after(proba[seen], labels[seen]).apply(proba[rest])
        found.append([negative_log_likelihood(labels[rest], p, classes) for p in (proba[rest], after)])
    return np.array(found)


def _summed_up(n_labels: int, losses: NDArray[np.float64]) -> LabelGain:
    """From losses before and after, (environments, draws, 2)."""
    change = losses[:, :, 1] - losses[:, :, 0]
    by_environment = change.mean(1)
    n = len(by_environment)
    half = stats.t.ppf(0.975, n - 1) * by_environment.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
    before, after = losses.mean((0, 1)).tolist()
    mean = float(by_environment.mean())
    harmed = float((change > HARMFUL).mean())
    return LabelGain(n_labels, n, before, after, mean - half, mean + half, int((by_environment < 0).sum()), harmed)


def _sample(labels: NDArray[np.int64], proba: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rows = np.random.default_rng(0).permutation(len(labels))[:MAX_ROWS]
    return labels[rows], proba[rows]
