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


def record_adaptation(left_out: LeftOut, kept: NDArray[np.int64], table: MultiEnvironmentData) -> AdaptationRecord:
    """Adapt what was fitted without a fold's environments to the rows of each of them, and score it by their labels.

    Parameters
    ----------
    left_out : LeftOut
        Fits of `EBERClassifier`.
    kept : indices of the candidates whose average is asked
    """
    found: list[tuple[str, float, float]] = []
    for fold, (_, rows) in enumerate(left_out.folds):
        average: Any = average_of([left_out.fits[c][fold] for c in kept])
        assert isinstance(average, EBERClassifier)
        names = table.environments[rows]
        for name in np.unique(names):
            own = rows[names == name]
            held = table.select(own)
            plain = average.explain(held.X)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AdaptationWarning)  # whether it helped is about to be seen
                adapted = plain.adapted(average.adapt(plain).member_adaptations())
            before, after = (
                negative_log_likelihood(held.y, said.p_y_given_x, average.classes_, held.weights)
                for said in (plain, adapted)
            )
            found.append((str(name), before, after))
    environments, before_all, after_all = zip(*found, strict=True)
    return AdaptationRecord(environments, np.array(before_all), np.array(after_all))
