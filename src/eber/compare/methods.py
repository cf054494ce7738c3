"""The methods that are compared, by name: the paper's five, and two references that people trust."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from eber.compare.grouping import MAX_ENVIRONMENTS, group_environments
from eber.datasets.base import MultiEnvironmentData
from eber.exceptions import EnvironmentWarning
from eber.experiments.fitting import CLASSIFIERS, PENALISED
from eber.metrics import negative_log_likelihood
from eber.model_selection import Fold, choose_weight, training_domain_validation

LOGISTIC, BOOSTING = "Logistic regression", "Gradient boosting"
METHODS = (*CLASSIFIERS, LOGISTIC, BOOSTING)
PENALTY_WEIGHTS = (1.0, 10.0, 100.0)
"""Grid for the penalty weights of IRM, V-REx and Fishr."""
BATCH_SIZE = 64
MAX_EPOCHS, MIN_EPOCHS = 50, 3


@dataclass(frozen=True)
class Effort:
    """How much work goes into a fit.

    Parameters
    ----------
    steps : int
        Gradient steps to aim at. Small tables are passed over 50 times at most, large ones three times at least.
    penalty_weights : tuple of float
        Grid; a single weight is used without validation.
    """

    steps: int = 1500
    penalty_weights: tuple[float, ...] = PENALTY_WEIGHTS

    def epochs(self, n_rows: int) -> int:
        """Passes over so many rows."""
        return int(np.clip(round(self.steps * BATCH_SIZE / n_rows), MIN_EPOCHS, MAX_EPOCHS))


THOROUGH = Effort()
QUICK = Effort(steps=500, penalty_weights=(1.0,))


@dataclass(frozen=True)
class FittedMethod:
    """A fitted classifier, and the penalty weight that was chosen for it where there is one."""

    classifier: Any
    penalty_weight: float | None = None


def build(method: str, seed: int, epochs: int, penalty_weight: float | None = None) -> Any:
    """An unfitted classifier with the settings that the comparison uses."""
    if method == LOGISTIC:
        return LogisticRegression(random_state=seed)
    if method == BOOSTING:
        return HistGradientBoostingClassifier(random_state=seed)
    parameters: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH_SIZE, "random_state": seed}
    if method in PENALISED:
        parameters["penalty_weight"] = penalty_weight
    return CLASSIFIERS[method](**parameters)


def fit_method(
    method: str, X: NDArray[Any], y: NDArray[Any], environments: NDArray[Any], seed: int, effort: Effort
) -> FittedMethod:
    """Fit a method as the comparison does.

    A penalty weight is chosen by training-domain validation, then all rows are fitted with it. EBER learns from at
    most `MAX_ENVIRONMENTS` environments; of more, similar ones are put together, with a warning.
    """
    if method == "EBER" and len(np.unique(environments)) > MAX_ENVIRONMENTS:
        warnings.warn(
            f"EBER puts {len(np.unique(environments))} environments into {MAX_ENVIRONMENTS} groups of similar ones: "
            "its cost grows with the square of their number.",
            EnvironmentWarning,
            stacklevel=2,
        )
        environments = group_environments(X, environments, seed)

    def fit(rows: NDArray[np.int64], weight: float | None) -> Any:
        classifier = build(method, seed, effort.epochs(len(y)), weight)
        if method in CLASSIFIERS:
            return classifier.fit(X[rows], y[rows], environments=environments[rows])
        return classifier.fit(X[rows], y[rows])

    weight = None
    if method in PENALISED:
        weight = choose_penalty_weight(fit, MultiEnvironmentData(X, y, environments), seed, effort.penalty_weights)
    return FittedMethod(fit(np.arange(len(y)), weight), weight)


def choose_penalty_weight(
    fit: Callable[[NDArray[np.int64], float], Any], train: MultiEnvironmentData, seed: int, grid: tuple[float, ...]
) -> float:
    """The weight with the least NLL on a fifth of every training environment: training-domain validation.

    The held-out environment has no part in it. A grid of one weight, or rows too few to validate on, give the middle
    of the grid.
    """
    try:
        folds = training_domain_validation(train, seed) if len(grid) > 1 else []
    except ValueError:
        folds = []
    if not folds:
        return grid[len(grid) // 2]

    def loss(weight: float, fold: Fold) -> float:
        fit_rows, rows = fold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EnvironmentWarning)  # said once, by the fit that is kept
            classifier = fit(fit_rows, weight)
        return negative_log_likelihood(train.y[rows], classifier.predict_proba(train.X[rows]), classifier.classes_)

    return choose_weight(grid, folds, loss).weight
