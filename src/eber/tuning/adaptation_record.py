"""Whether adapting to unlabelled rows helps: tried in training environments that were left out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier
from eber.exceptions import AdaptationWarning
from eber.method.adaptation import AdaptationRecord

STRENGTHS = (0.25, 0.5, 0.75, 1.0)
"""How far the mixture may be moved from the training one to the estimate."""


def adapted_to_each(fitted: EBERClassifier, rows: MultiEnvironmentData) -> NDArray[np.float64]:
    """p(y_i|x_i) of each row's label once the fit has adapted to the rows of its environment, by strength; (S, n).

    Each member of an average adapts by itself, so that what candidates say after adapting can be averaged as what they
    say before.
    """
    p = np.empty((len(STRENGTHS), len(rows)))
    y_index = np.searchsorted(fitted.classes_, rows.y)
    for name in np.unique(rows.environments):
        own = np.flatnonzero(rows.environments == name)
        plain = fitted.explain(rows.select(own).X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)  # whether it helped is about to be seen
            found = fitted.adapt(plain).member_adaptations()
        for s, strength in enumerate(STRENGTHS):
            said = plain.adapted([adaptation.shrunk(strength) for adaptation in found]).p_y_given_x
            p[s, own] = said[np.arange(len(own)), y_index[own]]
    return p


def record_adaptation(
    names: Sequence[str], before: NDArray[np.float64], after: NDArray[np.float64]
) -> AdaptationRecord:
    """What adapting did, from the mean loss in each environment before, (U,), and after with each strength, (S, U).

    Each environment is judged with the strength that the others choose: its own choice would flatter it.
    """
    others = after.sum(1, keepdims=True) - after
    judged = after[others.argmin(0), np.arange(len(before))]
    return AdaptationRecord(tuple(names), before, judged, STRENGTHS[int(after.sum(1).argmin())])
