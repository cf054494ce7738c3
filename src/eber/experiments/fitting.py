"""Fitting the methods of the paper by name, with penalty weights chosen on validation data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.estimators.base import EnvironmentClassifier
from eber.metrics import find_metric

CLASSIFIERS: dict[str, type[EnvironmentClassifier]] = {
    "EBER": EBERClassifier,
    "ERM": ERMClassifier,
    "IRM": IRMClassifier,
    "V-REx": VRExClassifier,
    "Fishr": FishrClassifier,
}
"""The methods that are compared, in the order of the tables."""

PENALISED = ("IRM", "V-REx", "Fishr")
"""Those with a penalty weight to be chosen."""

Validation = Callable[[EnvironmentClassifier], float]
"""What a weight is chosen by: a fitted classifier's loss on validation data, smaller is better."""


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier, the seconds its own fit took, and the penalty weight that was chosen for it."""

    classifier: EnvironmentClassifier
    seconds: float
    penalty_weight: float | None = None


def fit(classifier: EnvironmentClassifier, train: MultiEnvironmentData) -> Fitted:
    """Fit, with the time it takes."""
    start = time.perf_counter()
    classifier.fit(train.X, train.y, environments=train.environments)
    return Fitted(classifier, time.perf_counter() - start)


def fit_best_weight(
    method: str,
    train: MultiEnvironmentData,
    grid: Iterable[float],
    validation_loss: Validation,
    parameters: Mapping[str, Any],
) -> Fitted:
    """Fit a penalised method with every weight of the grid; keep the one with the least validation loss."""
    best: tuple[float, Fitted] | None = None
    for weight in grid:
        fitted = fit(CLASSIFIERS[method](**parameters, penalty_weight=weight), train)
        loss = validation_loss(fitted.classifier)
        if best is None or loss < best[0]:
            best = loss, Fitted(fitted.classifier, fitted.seconds, weight)
    if best is None:
        raise ValueError(f"The grid of penalty weights for {method} is empty.")
    return best[1]


def validation_nll(data: MultiEnvironmentData) -> Validation:
    """NLL on rows that no fit has seen."""
    nll = find_metric("nll")

    def loss(classifier: EnvironmentClassifier) -> float:
        return nll(data.y, classifier.predict_proba(data.X), classifier.classes_)

    return loss
