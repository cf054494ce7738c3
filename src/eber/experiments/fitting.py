"""Fitting the methods of the paper by name, with penalty weights chosen on validation data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.estimators.base import EnvironmentClassifier
from eber.metrics import find_metric
from eber.model_selection import Choice, Fold, SelectionRule, choose_weight, subsample

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

Preparation = Callable[[MultiEnvironmentData, MultiEnvironmentData], tuple[MultiEnvironmentData, MultiEnvironmentData]]
"""Training rows and other rows, both transformed by what was learned from the training rows alone."""


def unchanged(
    train: MultiEnvironmentData, other: MultiEnvironmentData
) -> tuple[MultiEnvironmentData, MultiEnvironmentData]:
    """No preparation."""
    return train, other


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier, the seconds its own fit took, and the penalty weight that was chosen for it."""

    classifier: EnvironmentClassifier
    seconds: float
    penalty_weight: float | None = None


@dataclass(frozen=True)
class WeightSearch:
    """How a penalty weight is chosen within the training environments.

    Parameters
    ----------
    grid : sequence of float
    rule : SelectionRule
        What is fitted on and what is validated on.
    rows_per_environment : int
        Rows of each environment that the search uses; zero for all. The final fit always uses all.
    prepare : Preparation, optional
        Fitted anew on each fold, so that no validation row has a part in it.
    """

    grid: Sequence[float]
    rule: SelectionRule
    rows_per_environment: int = 0
    prepare: Preparation = unchanged

    def run(self, method: str, train: MultiEnvironmentData, parameters: Mapping[str, Any], seed: int) -> Choice:
        """Choose the weight with the least mean NLL on the folds' validation rows; `train` is not yet prepared."""
        rows = subsample(train, self.rows_per_environment, seed)

        def loss(weight: float, fold: Fold) -> float:
            fitted_on, validated_on = self.prepare(rows.select(fold[0]), rows.select(fold[1]))
            fitted = fit(CLASSIFIERS[method](**parameters, penalty_weight=weight), fitted_on)
            return validation_nll(validated_on)(fitted.classifier)

        return choose_weight(self.grid, self.rule(rows, seed), loss)


def fit(classifier: EnvironmentClassifier, train: MultiEnvironmentData) -> Fitted:
    """Fit, with the time it takes."""
    _warm_up()
    start = time.perf_counter()
    classifier.fit(train.X, train.y, environments=train.environments)
    return Fitted(classifier, time.perf_counter() - start)


@cache
def _warm_up() -> None:
    """Have torch import what it imports at the first fit of a process, so that no method's time includes it."""
    ERMClassifier(epochs=1, random_state=0).fit(np.array([[0.0], [1.0]]), np.array([0, 1]))


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
