"""What a few labels of a new environment change: slope and intercepts, and whose prediction is listened to.

Every classifier has p(y|x), and labels give the posterior of slope and intercepts (`eber.tuning.calibration`). EBER
also has p(y|x,e), what it would say if the row came from training environment e. Weights on them are as many further
numbers as there are environments, and on most tables they find nothing: they are used only where cross-validation over
the labelled rows gains more than one standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.estimators import EBERClassifier
from eber.estimators.explanation import Explanation
from eber.tuning.calibration import Calibration
from eber.tuning.left_out import SMALLEST

FOLDS = 5
MIN_LABELS = 10
"""Labels from which on the environments' own predictions are tried."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EnvironmentGain:
    """What weights on the environments' own predictions gained on labelled rows that they had not seen.

    Attributes
    ----------
    mean : float
        Fall of NLL, in nats a row; NaN where there were too few labels to try.
    standard_error : float
    """

    mean: float
    standard_error: float

    @property
    def is_clear(self) -> bool:
        """Whether it is more than one standard error."""
        return self.mean > self.standard_error


def deviations_of(explanation: Explanation) -> Array:
    """log p(y|x,e) - log p(y|x) of each component, (n, K, m)."""
    by_environment = np.log(np.clip(explanation.p_y_given_xe, SMALLEST, None))  # (n, m, K)
    together = np.log(np.clip(explanation.p_y_given_x, SMALLEST, None))
    deviations: Array = (by_environment - together[:, None]).transpose(0, 2, 1)
    return deviations


def said(classifier: Any, X: Any) -> tuple[Array, Array | None]:
    """p(y|x), (n, K), and of EBER the deviations of its environments, (n, K, m); from one pass."""
    if not isinstance(classifier, EBERClassifier):
        return classifier.predict_proba(X), None
    explanation = classifier.explain(X)
    return explanation.p_y_given_x, deviations_of(explanation)


def learn_labels(
    prior: Calibration, proba: Array, y_index: NDArray[np.int64], deviations: Array | None = None
) -> tuple[Calibration, EnvironmentGain | None]:
    """The posterior after labels, with weights on the environments' own predictions only where these clearly help.

    Parameters
    ----------
    prior : Calibration
        One that has such weights from earlier labels keeps them.
    proba : (n, K)
    y_index : (n,)
    deviations : (n, K, m) or None
        None for a classifier that has no p(y|x,e).

    Returns
    -------
    Calibration, and what cross-validation found; None where it was not asked
    """
    K = proba.shape[1]
    if deviations is None:
        return prior.after(proba, y_index), None
    if len(prior.mean) > 1 + K:
        return prior.after(proba, y_index, deviations), None
    gain = cross_validated_gain(prior, proba, y_index, deviations)
    if gain.is_clear:
        return prior.with_environments(deviations.shape[2]).after(proba, y_index, deviations), gain
    return prior.after(proba, y_index), gain


def cross_validated_gain(
    prior: Calibration, proba: Array, y_index: NDArray[np.int64], deviations: Array
) -> EnvironmentGain:
    """What the weights gain in labelled rows that are left out, a fifth at a time."""
    n = len(y_index)
    if n < MIN_LABELS:
        return EnvironmentGain(math.nan, math.nan)
    fold = np.random.default_rng(0).permutation(n) % FOLDS
    wider = prior.with_environments(deviations.shape[2])
    gains = np.empty(n)
    for j in range(FOLDS):
        seen, left_out = np.flatnonzero(fold != j), np.flatnonzero(fold == j)
        plain = prior.after(proba[seen], y_index[seen]).apply(proba[left_out])
        with_weights = wider.after(proba[seen], y_index[seen], deviations[seen])
        pooled = with_weights.apply(proba[left_out], deviations[left_out])
        p_plain, p_pooled = (p[np.arange(len(left_out)), y_index[left_out]] for p in (plain, pooled))
        gains[left_out] = np.log(np.clip(p_pooled, SMALLEST, None)) - np.log(np.clip(p_plain, SMALLEST, None))
    return EnvironmentGain(float(gains.mean()), float(gains.std(ddof=1) / math.sqrt(n)))
