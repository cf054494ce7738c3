"""Rows whose settings are chosen by leaving training environments out, beside those with the paper's fixed settings.

The search is that of `eber.tuning.search.EnvironmentSearch`, with the same candidates, folds and rule. It is written as
steps of a computation for two reasons: what is learned before a fit, such as scales, is learned anew in each fold, and
fits of several seeds are trained side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.estimators.members import average_of
from eber.exceptions import NonFiniteLossError
from eber.methods import find_method, paper_methods
from eber.model_selection import subsample
from eber.runs.fitting import FitOutcome, FitRequest, FittedMethod, Preparation, Steps
from eber.runs.tuning_words import RULE, SETTINGS
from eber.tuning.grids import Candidate, default_candidates
from eber.tuning.left_out import choose_folds, judged_units, kept_candidates, losses
from eber.tuning.search import MAX_FOLDS

TUNED = {name: f"{name} tuned" for name in paper_methods()}
"""Method to the row in which its settings are chosen."""

Make = Callable[[Candidate], Any]
"""Settings -> a classifier with them, all others as in the method's own row."""


@dataclass(frozen=True)
class TunedFit:
    """The average of the candidates that were kept, fitted.

    Parameters
    ----------
    fitted : FittedMethod
        Its seconds are those of all fits of the search and of those that were kept.
    settings : list of Candidate
        What was kept.
    rule : str
        What was left out, as `eber.tuning.left_out.choose_folds` names it.
    left_out_nll : (C, U)
        NLL of each candidate in each environment, or fold of rows, that was left out.
    """

    fitted: FittedMethod
    settings: list[Candidate]
    rule: str
    left_out_nll: NDArray[np.float64]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a cell keeps of the search."""
        settings = np.array([json.dumps(own) for own in self.settings])
        return {SETTINGS: settings, RULE: np.array(self.rule), "left_out_nll": self.left_out_nll}


def tuned_candidates(method: str, estimator: Any, weights: Sequence[float]) -> list[Candidate]:
    """The settings that are tried: the default ones for the estimator's network, each with every penalty weight.

    So no method has a decay or a width that another has not; what its own row has is always among them.
    """
    candidates, parameter = default_candidates(estimator), find_method(method).penalty_parameter
    if not parameter:
        return candidates
    return [{parameter: weight, **candidate} for weight in weights for candidate in candidates]


def fit_tuned(
    make: Make,
    candidates: Sequence[Candidate],
    train: MultiEnvironmentData,
    prepared: MultiEnvironmentData,
    prepare: Preparation,
    rows_per_environment: int,
    seed: int,
) -> Steps[TunedFit]:
    """Fit every candidate without some training environments, then those that predict them best on all rows.

    Parameters
    ----------
    make : callable
    candidates : sequence of Candidate
    train, prepared : MultiEnvironmentData
        The training rows as they are read, and as what is kept is fitted on them.
    prepare : Preparation
        Learned anew in each fold.
    rows_per_environment : int
        Rows of each environment that the search uses; zero for all. What is kept is fitted on all.
    seed : int
        Of the draw of these rows.
    """
    rows = subsample(train, rows_per_environment, seed)
    rule, folds = choose_folds(rows.y, rows.environments, MAX_FOLDS)
    tables = [prepare(rows.select(fitted_on), rows.select(left_out)) for fitted_on, left_out in folds]
    outcomes = yield [
        FitRequest(make(candidate), fitted_on, quiet=True) for candidate in candidates for fitted_on, _ in tables
    ]
    seconds = _seconds(outcomes)
    classes, y_index = np.unique(rows.y, return_inverse=True)
    proba = np.full((len(candidates), len(rows), len(classes)), np.nan)
    answers = iter(outcomes)
    for c in range(len(candidates)):
        for (_, positions), (_, left_out) in zip(folds, tables, strict=True):
            if (outcome := _sound(next(answers))) is not None:
                proba[c, positions] = outcome.classifier.predict_proba(left_out.X)
    units, _ = judged_units(folds, rows.environments, rule)
    left_out_nll = losses(proba, y_index, units)
    kept = [candidates[c] for c in np.sort(kept_candidates(proba, y_index, units))]
    outcomes = yield [FitRequest(make(candidate), prepared) for candidate in kept]
    pairs = [
        (candidate, fitted.classifier)
        for candidate, outcome in zip(kept, outcomes, strict=True)
        if (fitted := _sound(outcome))
    ]
    if not pairs:
        raise next(outcome for outcome in outcomes if isinstance(outcome, Exception))
    average = average_of([classifier for _, classifier in pairs])
    return TunedFit(
        FittedMethod(average, seconds + _seconds(outcomes)), [candidate for candidate, _ in pairs], rule, left_out_nll
    )


def _sound(outcome: FitOutcome) -> FittedMethod | None:
    """A fit, or None where training diverged; any other error is raised."""
    if isinstance(outcome, FittedMethod):
        return outcome
    if isinstance(outcome, NonFiniteLossError):
        return None
    raise outcome


def _seconds(outcomes: Sequence[FitOutcome]) -> float:
    return sum(outcome.seconds for outcome in outcomes if isinstance(outcome, FittedMethod))
