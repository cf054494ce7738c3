"""How sure the score of one held-out fold is, as far as its rows say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Labels = NDArray[np.int64]
Probabilities = NDArray[np.float64]


def half_width(metric: str, labels: Labels, proba: Probabilities) -> float:
    """Half of the 95 % interval of a score over rows drawn anew from the same environment.

    A score that is a mean over rows (NLL, accuracy, Brier) has that mean's standard error; the AUROC of two classes has
    DeLong's (DeLong, DeLong and Clarke-Pearson 1988). NaN for the others and for too few rows.

    Parameters
    ----------
    metric : str
        Its name.
    labels : array of shape (n,)
        Column of each row's class.
    proba : array of shape (n, K)
    """
    if metric == "auroc":
        return _area(labels, proba)
    if metric not in _LOSSES or len(labels) < 2:
        return math.nan
    losses = _LOSSES[metric](labels, proba)
    return float(stats.t.ppf(0.975, len(losses) - 1) * losses.std(ddof=1) / math.sqrt(len(losses)))


def within_range(metric: str, value: float) -> float:
    """The nearest value that the metric can have: none is below zero, and only NLL and the Brier score exceed one."""
    return min(max(value, 0.0), {"nll": math.inf, "brier": 2.0}.get(metric, 1.0))


def _nll(labels: Labels, proba: Probabilities) -> NDArray[np.float64]:
    losses: NDArray[np.float64] = -np.log(np.maximum(proba[np.arange(len(labels)), labels], np.finfo(np.float64).eps))
    return losses


def _accuracy(labels: Labels, proba: Probabilities) -> NDArray[np.float64]:
    return (proba.argmax(axis=1) == labels).astype(np.float64)


def _brier(labels: Labels, proba: Probabilities) -> NDArray[np.float64]:
    losses: NDArray[np.float64] = ((proba - np.eye(proba.shape[1])[labels]) ** 2).sum(axis=1)
    return losses / (2 if proba.shape[1] == 2 else 1)


_LOSSES: Mapping[str, Callable[[Labels, Probabilities], NDArray[np.float64]]] = {
    "nll": _nll,
    "accuracy": _accuracy,
    "brier": _brier,
}


def _area(labels: Labels, proba: Probabilities) -> float:
    positive = labels == 1
    m, n = int(positive.sum()), int((~positive).sum())
    if proba.shape[1] != 2 or m < 2 or n < 2:
        return math.nan
    score = proba[:, 1]
    ranks = stats.rankdata(score)
    # Share of the other class that each row is on the right side of, ties by half.
    above = (ranks[positive] - stats.rankdata(score[positive])) / n
    below = 1 - (ranks[~positive] - stats.rankdata(score[~positive])) / m
    return float(stats.norm.ppf(0.975) * math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))
