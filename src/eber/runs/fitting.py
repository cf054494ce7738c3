"""Fits as steps of a computation, with penalty weights chosen on validation data."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from eber.datasets.base import MultiEnvironmentData
from eber.model_selection import Choice, SelectionRule, WeightTrial, choose_by_trials, subsample, weight_trials

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

    classifier: Any
    seconds: float
    penalty_weight: float | None = None


@dataclass(frozen=True)
class FitRequest:
    """A fit that a computation waits for.

    Parameters
    ----------
    classifier : classifier
        Of any kind, not fitted.
    train : MultiEnvironmentData
    quiet : bool
        Whether what it warns of about environments and its training is passed over, since the fit that is kept will
        say it.
    """

    classifier: Any
    train: MultiEnvironmentData
    quiet: bool = False


T = TypeVar("T")
FitOutcome = FittedMethod | Exception
Steps = Generator[list[FitRequest], list[FitOutcome], T]
"""A computation that hands its fits to whoever drives it, so that those of several computations are done together."""


def fit(classifier: Any, train: MultiEnvironmentData) -> Steps[FittedMethod]:
    """One fit, as a step of a computation."""
    (outcome,) = yield [FitRequest(classifier, train)]
    if isinstance(outcome, Exception):
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

    def run(self, make: Callable[[float], Any], train: MultiEnvironmentData, seed: int) -> Steps[Choice]:
        """Choose the weight with the least mean NLL on the folds' validation rows; `train` is not yet prepared."""
        rows = subsample(train, self.rows_per_environment, seed)
        folds = [self.prepare(rows.select(first), rows.select(second)) for first, second in self.rule(rows, seed)]
        trials = weight_trials(make, folds, self.grid)
        outcomes = yield [FitRequest(trial.classifier, trial.train, quiet=True) for trial in trials]
        return _choose(trials, outcomes)


def fit_best_weight(
    make: Callable[[float], Any], train: MultiEnvironmentData, validation: MultiEnvironmentData, grid: Sequence[float]
) -> Steps[FittedMethod]:
    """Fit with every weight of the grid; keep the fit with the least NLL on validation rows that no fit has seen."""
    trials = weight_trials(make, [(train, validation)], grid)
    outcomes = yield [FitRequest(trial.classifier, train) for trial in trials]
    choice = _choose(trials, outcomes)
    fitted = outcomes[[trial.weight for trial in trials].index(choice.weight)]
    assert isinstance(fitted, FittedMethod)
    return replace(fitted, penalty_weight=choice.weight)


def _choose(trials: Sequence[WeightTrial], outcomes: Sequence[FitOutcome]) -> Choice:
    errors = [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]
    return choose_by_trials(trials, errors, sum(o.seconds for o in outcomes if isinstance(o, FittedMethod)))
