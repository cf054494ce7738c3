"""Fit a method as the comparison does, with its choice of settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.methods import Effort, prepare
from eber.compare.shared_fits import refit
from eber.datasets.base import MultiEnvironmentData
from eber.estimators.base import EnvironmentClassifier
from eber.methods import find_method
from eber.runs.fitting import Steps, fit
from eber.tuning.grids import Candidate
from eber.tuning.left_out import LeftOut
from eber.tuning.pool import EnvironmentPool
from eber.tuning.search import EnvironmentSearch


@dataclass(frozen=True)
class Fitted:
    """A method, fitted.

    Parameters
    ----------
    classifier : classifier
        Of a search among the library's own kind the average that was kept, which can explain itself.
    seconds : float
        Time of the fit, the choice of settings included.
    settings : list of dict
        The settings that were kept; empty where none were chosen.
    left_out : (n, K) or None
        What they said about training rows while their environment was left out.
    weights : dict
        Of a pool: method to its weight.
    """

    classifier: Any
    seconds: float
    settings: Sequence[Candidate] = ()
    left_out: NDArray[np.float64] | None = None
    weights: dict[str, float] | None = None


def fit_method(
    method: str,
    X: NDArray[Any],
    y: NDArray[Any],
    environments: NDArray[Any],
    seed: int,
    effort: Effort,
    weights: NDArray[np.float64] | None = None,
    left_out: LeftOut | None = None,
) -> Steps[Fitted]:
    """Fit a method as the comparison does; a computation for `eber.runs.joint_fits`.

    Settings are chosen within these rows, and those that are kept are then fitted on all of them. With more than
    `MAX_COMPONENTS` environments, EBER's share so many pseudo-environments.

    Parameters
    ----------
    weights : array of shape (n,), optional
        How much each row counts.
    left_out : LeftOut, optional
        What all settings say about rows that were left out, where that is known already.
    """
    data = MultiEnvironmentData(X, y, environments, weights=weights)
    epochs, m = effort.epochs(len(y)), len(data.environment_names)
    prepared = prepare(find_method(method).name, seed, epochs, m, effort)
    fitted = yield from fit(prepared, data) if left_out is None else refit(prepared, data, left_out)
    classifier = fitted.classifier
    if isinstance(classifier, EnvironmentPool):
        of_methods = dict(zip(classifier.names_, classifier.weights_.tolist(), strict=True))
        return Fitted(classifier, fitted.seconds, weights=of_methods)
    if not isinstance(classifier, EnvironmentSearch):
        return Fitted(classifier, fitted.seconds)
    kept = classifier.estimators_
    answering = kept[0] if isinstance(kept[0], EnvironmentClassifier) else classifier
    return Fitted(answering, fitted.seconds, classifier.chosen_, classifier.left_out_proba_)
