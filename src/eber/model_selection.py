"""Choosing a weight without a look at the environment that is held out.

All rules see training environments only, and ask one of two questions:

- `leave_one_environment_out`: how well does a model do in an environment that it was not trained on? That is what is
  asked of it later, at the price of one fit for each environment and weight, and only with three environments or more:
  a penalty on how environments differ has nothing to compare in one.
- `training_domain_validation`: how well does it do on new rows of the environments it was trained on? One fit for each
  weight, on nearly as many rows as the final one; the name is DomainBed's (Gulrajani and Lopez-Paz 2021).
  `training_domain_cross_validation` asks the same five times over, for data sets that are too small to trust one fold.

`choose_penalty_weight` searches a grid of weights by one of them; `selection_folds` gives their folds to scikit-learn's
own searches, as `cv`.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, StratifiedKFold

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import fit_many
from eber.evaluation.metrics import negative_log_likelihood
from eber.exceptions import NonFiniteLossError

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows to fit on, rows to validate on."""

SelectionRule = Callable[[MultiEnvironmentData, int], list[Fold]]
"""Training data and a seed -> folds."""

N_FOLDS = 5
"""A fifth of the rows validates."""
MAX_FOLDS = 20
"""Folds in which many environments are left out."""


@dataclass(frozen=True)
class Choice:
    """A chosen weight, the mean validation loss of each, infinite where training diverged, and the search's seconds."""

    weight: float
    losses: dict[float, float]
    seconds: float = 0.0


def leave_one_environment_out(
    data: MultiEnvironmentData, random_state: int = 0, max_folds: int = MAX_FOLDS
) -> list[Fold]:
    """Each training environment in turn validates a fit on all others; nothing is drawn.

    An environment without which a class would have no row left is fitted on in every fold. More than `max_folds`
    environments are left out in as many folds of whole environments, of about equal size.
    """
    names = data.environment_names
    if len(names) < 3:
        raise ValueError(
            f"{data.name} has {len(names)} training environments ({', '.join(map(str, names))}): with one of them left "
            "out, a penalty has nothing to compare. Use training_domain_validation."
        )
    n_classes = len(np.unique(data.y))
    splitter = LeaveOneGroupOut() if len(names) <= max_folds else GroupKFold(max_folds)
    folds = [
        fold
        for fold in splitter.split(data.X, groups=data.environments)
        if len(np.unique(data.y[fold[0]])) == n_classes
    ]
    if not folds:
        raise ValueError(f"{data.name}: each training environment has a class of its own, so none can be left out.")
    return folds


def training_domain_validation(data: MultiEnvironmentData, random_state: int = 0) -> list[Fold]:
    """One fold: a fifth of each training environment, label by label, validates a fit on the rest."""
    return training_domain_cross_validation(data, random_state)[:1]


def training_domain_cross_validation(data: MultiEnvironmentData, random_state: int = 0) -> list[Fold]:
    """Five folds: each fifth of each training environment, label by label, validates a fit on the rest.

    Where an environment has fewer than five rows of a label, these are fitted on in every fold.
    """
    strata = _strata(data)
    many = np.bincount(strata)[strata] >= N_FOLDS
    few, rest = np.flatnonzero(~many), np.flatnonzero(many)
    if not len(rest):
        raise ValueError(f"{data.name}: no training environment has {N_FOLDS} rows of a label to choose a weight by.")
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=random_state)
    return [
        (np.sort(np.concatenate([rest[fit_rows], few])), rest[validation_rows])
        for fit_rows, validation_rows in splitter.split(rest, strata[rest])
    ]


SELECTION_RULES: dict[str, SelectionRule] = {
    rule.__name__: rule
    for rule in (leave_one_environment_out, training_domain_validation, training_domain_cross_validation)
}


def find_rule(name: str) -> SelectionRule:
    """The selection rule of that name."""
    if name not in SELECTION_RULES:
        raise ValueError(f"There is no selection rule {name!r}; there are {', '.join(SELECTION_RULES)}.")
    return SELECTION_RULES[name]


def selection_folds(rule: str, y: ArrayLike, environments: ArrayLike, random_state: int = 0) -> list[Fold]:
    """The folds of a rule, for the `cv` of scikit-learn's `GridSearchCV`, `cross_val_score` and the like.

    Parameters
    ----------
    rule : str
        A key of `SELECTION_RULES`: "leave_one_environment_out", "training_domain_validation" or
        "training_domain_cross_validation".
    y, environments : array-like of shape (n,)
        Of the training rows alone: rows of the environment that is held out for the test have no place here.
    random_state : int
        Of the rules that draw.

    Returns
    -------
    list of tuple
        For each fold, the rows to fit on and the rows to validate on.
    """
    labels = np.asarray(y)
    # A rule looks at labels and environments; of X it needs no more than the number of rows.
    rows = np.arange(len(labels))[:, None]
    return find_rule(rule)(MultiEnvironmentData(rows, labels, np.asarray(environments)), random_state)


def choose_penalty_weight(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    environments: ArrayLike,
    grid: Iterable[float],
    rule: str,
    parameter: str = "penalty_weight",
    random_state: int = 0,
) -> Choice:
    """The penalty weight with the least NLL on validation rows, by a named rule.

    Parameters
    ----------
    estimator : classifier with a penalty weight, such as IRMClassifier, or a pipeline that ends in one
        Not fitted, and left as it is. A pipeline is fitted anew on each fold, preprocessing included; it needs
        scikit-learn's metadata routing for `environments`.
    X : array or DataFrame of shape (n, d)
    y, environments : array-like of shape (n,)
        Of the training rows alone.
    grid : iterable of float
        Weights to try.
    rule : str
        As for `selection_folds`.
    parameter : str
        The weight's name in `estimator`, such as "irmclassifier__penalty_weight" in a pipeline.
    random_state : int
        Of the folds; that of the fits is the estimator's.
    """
    rows = X if hasattr(X, "iloc") else np.asarray(X)
    data = MultiEnvironmentData(rows, np.asarray(y), np.asarray(environments))
    folds = [(data.select(first), data.select(second)) for first, second in find_rule(rule)(data, random_state)]
    trials = weight_trials(lambda weight: clone(estimator).set_params(**{parameter: weight}), folds, grid)
    start = time.perf_counter()
    errors = fit_many([trial.classifier for trial in trials], [trial.train for trial in trials], raise_errors=False)
    return choose_by_trials(trials, errors, time.perf_counter() - start)


@dataclass(frozen=True)
class WeightTrial:
    """A fit that shows what a weight is worth, on rows that it has not seen."""

    weight: float
    classifier: Any
    train: MultiEnvironmentData
    validation: MultiEnvironmentData


def weight_trials(
    make: Callable[[float], Any],
    folds: Sequence[tuple[MultiEnvironmentData, MultiEnvironmentData]],
    grid: Iterable[float],
) -> list[WeightTrial]:
    """The fits of a search: every weight on every fold.

    Parameters
    ----------
    make : callable
        Weight -> unfitted classifier.
    folds : sequence of pairs
        Rows to fit on, rows to validate on.
    grid : iterable of float
    """
    return [WeightTrial(weight, make(weight), *fold) for weight, fold in product(grid, folds)]


def choose_by_trials(trials: Sequence[WeightTrial], errors: Sequence[Exception | None], seconds: float = 0.0) -> Choice:
    """The weight with the least mean NLL on the validation rows of its trials, which are fitted by now.

    Parameters
    ----------
    errors : sequence
        What ended the fit of each trial, or None. One that diverged speaks against its weight; any other is raised.
    seconds : float
        Wall time of the trials.
    """
    losses: dict[float, list[float]] = defaultdict(list)
    for trial, error in zip(trials, errors, strict=True):
        if error is not None and not isinstance(error, NonFiniteLossError):
            raise error
        loss, rows, fitted = math.inf, trial.validation, trial.classifier
        if error is None:
            loss = negative_log_likelihood(rows.y, fitted.predict_proba(rows.X), fitted.classes_)
        losses[trial.weight].append(loss)
    return replace(choose_weight(losses), seconds=seconds)


def choose_weight(losses: Mapping[float, Sequence[float]]) -> Choice:
    """The weight with the least mean validation loss; the first of equals.

    Parameters
    ----------
    losses : mapping
        Weight to its losses on the folds, smaller is better; infinite where training diverged, so that such a weight is
        not chosen.
    """
    means = {weight: float(np.mean(values)) for weight, values in losses.items()}
    means = {weight: math.inf if math.isnan(mean) else mean for weight, mean in means.items()}
    if not means:
        raise ValueError("The grid of weights is empty: there is nothing to choose from.")
    best = min(means, key=lambda weight: means[weight])
    if math.isinf(means[best]):
        raise ArithmeticError(f"Training diverged with every weight of the grid: {', '.join(map(str, means))}.")
    return Choice(best, means)


def subsample(data: MultiEnvironmentData, rows_per_environment: int, random_state: int = 0) -> MultiEnvironmentData:
    """At most so many rows of each environment, drawn at random; all of them for zero."""
    if rows_per_environment == 0:
        return data
    rng = np.random.default_rng(random_state)
    kept: list[NDArray[Any]] = []
    for name in data.environment_names:
        rows = np.flatnonzero(data.environments == name)
        kept.append(rng.permutation(rows)[:rows_per_environment])
    return data.select(np.sort(np.concatenate(kept)))


def _strata(data: MultiEnvironmentData) -> NDArray[np.int64]:
    """A number for each combination of environment and label, shape (n,)."""
    environments = np.unique(data.environments, return_inverse=True)[1]
    classes, labels = np.unique(data.y, return_inverse=True)
    return np.unique(environments * len(classes) + labels, return_inverse=True)[1].astype(np.int64)
