"""Fitting the methods of the paper by name, with penalty weights chosen on validation data."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.estimators.base import EnvironmentClassifier
from eber.evaluation.metrics import find_metric
from eber.exceptions import NonFiniteLossError
from eber.model_selection import Choice, SelectionRule, choose_weight, subsample

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

Preparation = Callable[[MultiEnvironmentData, MultiEnvironmentData], tuple[MultiEnvironmentData, MultiEnvironmentData]]
"""Training rows and other rows, both transformed by what was learned from the training rows alone."""


def unchanged(
    train: MultiEnvironmentData, other: MultiEnvironmentData
) -> tuple[MultiEnvironmentData, MultiEnvironmentData]:
    """No preparation."""
    return train, other


@dataclass(frozen=True)
class FittedMethod:
    """A fitted classifier, the seconds its fit took, and the penalty weight that was chosen for it.

    The time of fits that were trained side by side is shared out evenly among them.
    """

    classifier: EnvironmentClassifier
    seconds: float
    penalty_weight: float | None = None


@dataclass(frozen=True)
class FitRequest:
    """A fit that a computation waits for."""

    classifier: EnvironmentClassifier
    train: MultiEnvironmentData


T = TypeVar("T")
FitOutcome = FittedMethod | NonFiniteLossError
Validation = Callable[[FitOutcome], float]
"""What a weight is chosen by: a fitted classifier's loss on validation data, smaller is better; infinite for none."""
Steps = Generator[list[FitRequest], list[FitOutcome], T]
"""A computation that hands its fits to whoever drives it, so that those of several computations are done together."""


def fit(classifier: EnvironmentClassifier, train: MultiEnvironmentData) -> Steps[FittedMethod]:
    """One fit, as a step of a computation."""
    (outcome,) = yield [FitRequest(classifier, train)]
    if isinstance(outcome, NonFiniteLossError):
        raise outcome
    return outcome


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

    def run(self, method: str, train: MultiEnvironmentData, parameters: Mapping[str, Any], seed: int) -> Steps[Choice]:
        """Choose the weight with the least mean NLL on the folds' validation rows; `train` is not yet prepared."""
        rows = subsample(train, self.rows_per_environment, seed)
        folds = [self.prepare(rows.select(first), rows.select(second)) for first, second in self.rule(rows, seed)]
        trials = list(product(self.grid, folds))
        outcomes = yield [
            FitRequest(CLASSIFIERS[method](**parameters, penalty_weight=weight), fitted_on)
            for weight, (fitted_on, _) in trials
        ]
        losses: dict[float, list[float]] = defaultdict(list)
        for (weight, (_, validated_on)), outcome in zip(trials, outcomes, strict=True):
            losses[weight].append(validation_nll(validated_on)(outcome))
        return choose_weight(losses)


def fit_best_weight(
    method: str,
    train: MultiEnvironmentData,
    grid: Iterable[float],
    validation_loss: Validation,
    parameters: Mapping[str, Any],
) -> Steps[FittedMethod]:
    """Fit a penalised method with every weight of the grid; keep the one with the least validation loss."""
    weights = list(grid)
    outcomes = yield [FitRequest(CLASSIFIERS[method](**parameters, penalty_weight=w), train) for w in weights]
    choice = choose_weight({w: [validation_loss(outcome)] for w, outcome in zip(weights, outcomes, strict=True)})
    fitted = outcomes[weights.index(choice.weight)]
    assert isinstance(fitted, FittedMethod)
    return replace(fitted, penalty_weight=choice.weight)


def validation_nll(data: MultiEnvironmentData) -> Validation:
    """NLL on rows that no fit has seen."""
    nll = find_metric("nll")

    def loss(outcome: FitOutcome) -> float:
        if isinstance(outcome, NonFiniteLossError):
            return math.inf
        return nll(data.y, outcome.classifier.predict_proba(data.X), outcome.classifier.classes_)

    return loss
