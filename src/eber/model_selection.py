"""Choosing a weight without a look at the environment that is held out.

All rules see training environments only, and ask one of two questions:

- `leave_one_environment_out`: how well does a model do in an environment that it was not trained on? That is what is
  asked of it later, at the price of one fit for each environment and weight, and only with three environments or more:
  a penalty on how environments differ has nothing to compare in one.
- `training_domain_validation`: how well does it do on new rows of the environments it was trained on? One fit for each
  weight, on nearly as many rows as the final one; the name is DomainBed's (Gulrajani and Lopez-Paz 2021).
  `training_domain_cross_validation` asks the same five times over, for data sets that are too small to trust one fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold

from eber.datasets.base import MultiEnvironmentData
from eber.exceptions import NonFiniteLossError

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows to fit on, rows to validate on."""

SelectionRule = Callable[[MultiEnvironmentData, int], list[Fold]]
"""Training data and a seed -> folds."""

N_FOLDS = 5
"""A fifth of the rows validates."""


@dataclass(frozen=True)
class Choice:
    """A chosen weight, and the mean validation loss of every weight; infinite where training diverged."""

    weight: float
    losses: dict[float, float]


def leave_one_environment_out(data: MultiEnvironmentData, random_state: int = 0) -> list[Fold]:
    """Each training environment in turn validates a fit on all others; nothing is drawn."""
    names = data.environment_names
    if len(names) < 3:
        raise ValueError(
            f"{data.name} has {len(names)} training environments ({', '.join(map(str, names))}): with one of them left "
            "out, a penalty has nothing to compare. Use training_domain_validation."
        )
    return list(LeaveOneGroupOut().split(data.X, groups=data.environments))


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


def choose_weight(
    weights: Iterable[float], folds: Sequence[Fold], validation_loss: Callable[[float, Fold], float]
) -> Choice:
    """The weight with the least mean validation loss; the first of equals.

    Parameters
    ----------
    weights : iterable of float
    folds : sequence of Fold
    validation_loss : callable
        Fits with a weight on a fold's first rows and gives the loss on its second, smaller is better. A weight with
        which training diverges (`NonFiniteLossError`) is not chosen.
    """
    losses: dict[float, float] = {}
    for weight in weights:
        try:
            losses[weight] = float(np.mean([validation_loss(weight, fold) for fold in folds]))
        except NonFiniteLossError:
            losses[weight] = math.inf
        if math.isnan(losses[weight]):
            losses[weight] = math.inf
    if not losses:
        raise ValueError("The grid of weights is empty: there is nothing to choose from.")
    best = min(losses, key=lambda weight: losses[weight])
    if math.isinf(losses[best]):
        raise ArithmeticError(f"Training diverged with every weight of the grid: {', '.join(map(str, losses))}.")
    return Choice(best, losses)


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
