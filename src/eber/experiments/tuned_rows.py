"""Rows whose settings are chosen by leaving training environments out, beside those with the paper's fixed settings.

The search is that of `eber.tuning.search.EnvironmentSearch`, with the same candidates, folds and rule, and with fits of
several seeds where few settings are kept. It is written as steps of a computation for two reasons: what is learned
before a fit, such as scales, is learned anew in each fold, and fits of several candidates and seeds are trained side by
side.

Each method searches once in a setting, under the first seed, and is fitted with what was chosen under all of them: a
search costs as much as dozens of fits, and other seeds choose among the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.estimators.members import average_of
from eber.exceptions import NonFiniteLossError
from eber.methods import find_method, paper_methods
from eber.model_selection import subsample
from eber.runs.cell import Part
from eber.runs.fitting import FitOutcome, FitRequest, FittedMethod, Preparation, Steps
from eber.runs.groundwork import Groundwork
from eber.runs.parameters import Value
from eber.runs.tuning_words import LEFT_OUT_NLL, RULE, SETTINGS
from eber.tuning.grids import Candidate, default_candidates
from eber.tuning.left_out import choose_folds, judged_units, kept_candidates, losses
from eber.tuning.search import MAX_FOLDS, with_enough_seeds

TUNED = {name: f"{name} tuned" for name in paper_methods()}
"""Method to the row in which its settings are chosen."""

Make = Callable[[Candidate], Any]
"""Settings -> a classifier with them, all others as in the method's own row."""

_SEARCH = "settings tried for "
SEED = 0
"""Of the searches."""


def is_search(setting: str) -> bool:
    """Whether cells of a setting are searches, which results of tuned rows are built on."""
    return setting.startswith(_SEARCH)


def searches(settings: Mapping[str, Mapping[str, Value]]) -> dict[str, Groundwork]:
    """The searches in each setting of an experiment."""
    return {_SEARCH + name: Groundwork(changes, _SEARCH + name, SEED) for name, changes in settings.items()}


def its_search(setting: str, method: str) -> list[Part]:
    """What a cell of a data experiment is built on: that of a tuned row on its search."""
    return [(_SEARCH + setting, method)] if method in TUNED.values() and not is_search(setting) else []


@dataclass(frozen=True)
class Chosen:
    """What a search decided.

    Parameters
    ----------
    settings : list of Candidate
        What was kept.
    rule : str
        What was left out, as `eber.tuning.left_out.choose_folds` names it.
    left_out_nll : (C, U)
        NLL of each candidate in each environment, or fold of rows, that was left out.
    """

    settings: list[Candidate]
    rule: str
    left_out_nll: NDArray[np.float64]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a cell keeps it."""
        settings = np.array([json.dumps(own) for own in self.settings])
        return {SETTINGS: settings, RULE: np.array(self.rule), LEFT_OUT_NLL: self.left_out_nll}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What a cell kept."""
        settings = [json.loads(text) for text in arrays[SETTINGS].tolist()]
        return cls(settings, str(arrays[RULE]), arrays[LEFT_OUT_NLL])


def tuned_candidates(method: str, estimator: Any, weights: Sequence[float]) -> list[Candidate]:
    """The settings that are tried: the default ones for the estimator's network, each with every penalty weight.

    So no method has a decay or a width that another has not; what its own row has is always among them.
    """
    candidates, parameter = default_candidates(estimator), find_method(method).penalty_parameter
    if not parameter:
        return candidates
    return [{parameter: weight, **candidate} for weight in weights for candidate in candidates]


def choose_settings(
    make: Make,
    candidates: Sequence[Candidate],
    train: MultiEnvironmentData,
    prepare: Preparation,
    rows_per_environment: int,
    seed: int,
) -> Steps[Chosen]:
    """Fit every candidate without some training environments, and keep those that predict them best.

    Parameters
    ----------
    make : callable
    candidates : sequence of Candidate
    train : MultiEnvironmentData
        The training rows as they are read.
    prepare : Preparation
        Learned anew in each fold.
    rows_per_environment : int
        Rows of each environment that are used; zero for all.
    seed : int
        Of the draw of these rows.
    """
    rows = subsample(train, rows_per_environment, seed)
    rule, folds = choose_folds(rows.y, rows.environments, MAX_FOLDS)
    tables = [prepare(rows.select(fitted_on), rows.select(left_out)) for fitted_on, left_out in folds]
    outcomes = yield [
        FitRequest(make(candidate), fitted_on, quiet=True) for candidate in candidates for fitted_on, _ in tables
    ]
    classes, y_index = np.unique(rows.y, return_inverse=True)
    proba = np.full((len(candidates), len(rows), len(classes)), np.nan)
    answers = iter(outcomes)
    for c in range(len(candidates)):
        for (_, positions), (_, left_out) in zip(folds, tables, strict=True):
            if (outcome := _sound(next(answers))) is not None:
                proba[c, positions] = outcome.classifier.predict_proba(left_out.X)
    units, _ = judged_units(folds, rows.environments, rule)
    kept = np.sort(kept_candidates(proba, y_index, units))
    return Chosen([candidates[c] for c in kept], rule, losses(proba, y_index, units))


def fit_chosen(make: Make, settings: Sequence[Candidate], prepared: MultiEnvironmentData) -> Steps[FittedMethod]:
    """The average of fits with the settings that were kept, to all training rows; of few, with several seeds each."""
    outcomes = yield [FitRequest(fit, prepared) for fit in with_enough_seeds([make(own) for own in settings])]
    fits = [fitted for outcome in outcomes if (fitted := _sound(outcome))]
    if not fits:
        raise next(outcome for outcome in outcomes if isinstance(outcome, Exception))
    return FittedMethod(average_of([fitted.classifier for fitted in fits]), sum(fitted.seconds for fitted in fits))


def _sound(outcome: FitOutcome) -> FittedMethod | None:
    """A fit, or None where training diverged; any other error is raised."""
    if isinstance(outcome, FittedMethod):
        return outcome
    if isinstance(outcome, NonFiniteLossError):
        return None
    raise outcome
