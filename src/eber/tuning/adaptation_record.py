"""Whether adapting to unlabelled rows helps: tried in training environments that were left out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier
from eber.estimators.members import average_of
from eber.evaluation.metrics import negative_log_likelihood
from eber.exceptions import AdaptationWarning
from eber.method.adaptation import AdaptationRecord
from eber.tuning.left_out import LeftOut

STRENGTHS = (0.25, 0.5, 0.75, 1.0)
"""How far the mixture may be moved from the training one to the estimate."""


def record_adaptation(left_out: LeftOut, kept: NDArray[np.int64], table: MultiEnvironmentData) -> AdaptationRecord:
    """Adapt what was fitted without a fold's environments to the rows of each of them, and score it by their labels.

    Parameters
    ----------
    left_out : LeftOut
        Fits of `EBERClassifier`.
    kept : indices of the candidates whose average is asked
    """
    names, losses = [], []
    for fold, (_, rows) in enumerate(left_out.folds):
        average: Any = average_of([left_out.fits[c][fold] for c in kept])
        assert isinstance(average, EBERClassifier)
        of_rows = table.environments[rows]
        for name in np.unique(of_rows):
            held = table.select(rows[of_rows == name])
            plain = average.explain(held.X)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AdaptationWarning)  # whether it helped is about to be seen
                found = average.adapt(plain).member_adaptations()
            said = [plain, *(plain.adapted([a.shrunk(strength) for a in found]) for strength in STRENGTHS)]
            names.append(str(name))
            losses.append(
                [negative_log_likelihood(held.y, each.p_y_given_x, average.classes_, held.weights) for each in said]
            )
    before, after = np.array(losses)[:, 0], np.array(losses)[:, 1:]  # (k,), (k, S)
    # Each environment is judged with the strength that the others choose: its own choice would flatter it.
    others = after.sum(0) - after
    judged = after[np.arange(len(after)), others.argmin(1)]
    return AdaptationRecord(tuple(names), before, judged, STRENGTHS[int(after.sum(0).argmin())])
