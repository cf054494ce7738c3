"""The methods that are compared, by name: the paper's five, and two references that people trust."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from eber.datasets.base import MultiEnvironmentData
from eber.exceptions import EnvironmentWarning
from eber.model_selection import choose_penalty_weight, selection_folds
from eber.runs.fitting import CLASSIFIERS, PENALISED, Steps, fit

LOGISTIC, BOOSTING = "Logistic regression", "Gradient boosting"
METHODS = (*CLASSIFIERS, LOGISTIC, BOOSTING)
PENALTY_WEIGHTS = (1.0, 10.0, 100.0)
"""Grid for the penalty weights of IRM, V-REx and Fishr."""
DEFAULT_SELECTION = "training_domain_validation"
BATCH_SIZE = 64
MAX_EPOCHS, MIN_EPOCHS = 50, 3
MAX_COMPONENTS = 40
"""Of more environments, EBER lets so many learned components stand for all."""


@dataclass(frozen=True)
class Effort:
    """How much work goes into a fit.

    Parameters
    ----------
    steps : int
        Gradient steps to aim at. Small tables are passed over 50 times at most, large ones three times at least.
    penalty_weights : tuple of float
        Grid; a single weight is used without validation.
    selection : str
        The rule by which a weight is chosen, a key of `eber.model_selection.SELECTION_RULES`.
    """

    steps: int = 1500
    penalty_weights: tuple[float, ...] = PENALTY_WEIGHTS
    selection: str = DEFAULT_SELECTION

    @property
    def searches(self) -> bool:
        """Whether penalty weights are chosen, or there is only one."""
        return len(self.penalty_weights) > 1

    @property
    def choice_of_weights(self) -> str:
        """How penalty weights come about, in a sentence that names the rule."""
        if not self.searches:
            return f"The penalty weight of IRM, V-REx and Fishr is {self.penalty_weights[0]:g}; none is searched."
        weights = ", ".join(f"{weight:g}" for weight in self.penalty_weights)
        return (
            f"Penalty weights of IRM, V-REx and Fishr are chosen from {weights} by {self.selection.replace('_', ' ')} "
            "within the training environments; a held-out environment has no part in it."
        )

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


def build(method: str, seed: int, epochs: int, n_environments: int, penalty_weight: float | None = None) -> Any:
    """An unfitted classifier with the settings that the comparison uses, for so many training environments."""
    if method == LOGISTIC:
        return LogisticRegression(random_state=seed)
    if method == BOOSTING:
        return HistGradientBoostingClassifier(random_state=seed)
    parameters: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH_SIZE, "random_state": seed}
    if method in PENALISED:
        parameters["penalty_weight"] = penalty_weight
    if method == "EBER" and n_environments > MAX_COMPONENTS:
        parameters["pseudo_environments"] = MAX_COMPONENTS
    return CLASSIFIERS[method](**parameters)


def fit_method(
    method: str, X: NDArray[Any], y: NDArray[Any], environments: NDArray[Any], seed: int, effort: Effort
) -> Steps[FittedMethod]:
    """Fit a method as the comparison does; a computation for `eber.runs.joint_fits`.

    A penalty weight is chosen by the effort's rule within these rows, then all of them are fitted with it. With more
    than `MAX_COMPONENTS` environments, EBER's share so many pseudo-environments.
    """
    epochs, m = effort.epochs(len(y)), len(np.unique(environments))
    if method not in CLASSIFIERS:
        return FittedMethod(build(method, seed, epochs, m).fit(X, y))
    weight = _choose_weight(method, X, y, environments, seed, effort) if method in PENALISED else None
    fitted = yield from fit(build(method, seed, epochs, m, weight), MultiEnvironmentData(X, y, environments))
    return FittedMethod(fitted.classifier, weight)


def _choose_weight(
    method: str, X: NDArray[Any], y: NDArray[Any], environments: NDArray[Any], seed: int, effort: Effort
) -> float:
    """The weight that the rule prefers; the middle of the grid, with a warning, where the rows are too few for it."""
    grid = effort.penalty_weights
    middle = grid[len(grid) // 2]
    if not effort.searches:
        return middle
    try:
        selection_folds(effort.selection, y, environments, seed)
    except ValueError as error:
        warnings.warn(f"The penalty weight is {middle:g}, not chosen: {error}", EnvironmentWarning, stacklevel=3)
        return middle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EnvironmentWarning)  # said once, by the fit that is kept
        estimator = build(method, seed, effort.epochs(len(y)), len(np.unique(environments)), middle)
        return choose_penalty_weight(
            estimator, X, y, environments=environments, grid=grid, rule=effort.selection, random_state=seed
        ).weight
