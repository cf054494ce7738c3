"""How the comparison fits a method: how long, with which settings, and how a penalty weight is chosen."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.evaluation.wording import listed
from eber.exceptions import EnvironmentWarning
from eber.methods import PENALTY_WEIGHTS, Method, find_method, middle_weight
from eber.model_selection import Choice, find_rule
from eber.runs.fitting import FittedMethod, Steps, WeightSearch, fit

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
    passes : int, optional
        Passes over the rows, in place of those that `steps` asks for.
    """

    steps: int = 1500
    penalty_weights: tuple[float, ...] = PENALTY_WEIGHTS
    selection: str = DEFAULT_SELECTION
    passes: int | None = None

    @property
    def searches(self) -> bool:
        """Whether penalty weights are chosen, or there is only one."""
        return len(self.penalty_weights) > 1

    def choice_of_weights(self, methods: Iterable[Method]) -> str:
        """How the penalty weights of these methods come about, in sentences that name the rule; none for none."""
        by_grid: dict[tuple[float, ...], list[str]] = defaultdict(list)
        for method in methods:
            if method.penalty_parameter:
                by_grid[method.grid(self.penalty_weights)].append(method.name)
        if not self.searches:
            return " ".join(
                f"The penalty weight of {listed(names)} is {grid[0]:g}; none is searched."
                for grid, names in by_grid.items()
            )
        return " ".join(
            f"Penalty weights of {listed(names)} are chosen from {', '.join(f'{weight:g}' for weight in grid)} by "
            f"{self.selection.replace('_', ' ')} within the training environments; a held-out environment has no part "
            "in it."
            for grid, names in by_grid.items()
        )

    def epochs(self, n_rows: int) -> int:
        """Passes over so many rows."""
        if self.passes is not None:
            return self.passes
        return int(np.clip(round(self.steps * BATCH_SIZE / n_rows), MIN_EPOCHS, MAX_EPOCHS))


THOROUGH = Effort()
QUICK = Effort(steps=500, penalty_weights=(1.0,))


def build(method: str, seed: int, epochs: int, n_environments: int, penalty_weight: float | None = None) -> Any:
    """An unfitted classifier with the settings that the comparison uses, for so many training environments."""
    declared = find_method(method)
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH_SIZE, "random_state": seed}
    if declared.penalty_parameter:
        settings[declared.penalty_parameter] = penalty_weight
    if n_environments > MAX_COMPONENTS:
        settings["pseudo_environments"] = MAX_COMPONENTS
    return declared.build(**settings)


def fit_method(
    method: str, X: NDArray[Any], y: NDArray[Any], environments: NDArray[Any], seed: int, effort: Effort
) -> Steps[FittedMethod]:
    """Fit a method as the comparison does; a computation for `eber.runs.joint_fits`.

    A penalty weight is chosen by the effort's rule within these rows, then all of them are fitted with it; the time of
    the search is part of the method's. With more than `MAX_COMPONENTS` environments, EBER's share so many
    pseudo-environments.
    """
    data = MultiEnvironmentData(X, y, environments)
    epochs, m = effort.epochs(len(y)), len(data.environment_names)

    def make(weight: float | None) -> Any:
        return build(method, seed, epochs, m, weight)

    if not find_method(method).penalty_parameter:
        return (yield from fit(make(None), data))
    choice = yield from _choose_weight(make, find_method(method).grid(effort.penalty_weights), data, seed, effort)
    fitted = yield from fit(make(choice.weight), data)
    return replace(fitted, seconds=fitted.seconds + choice.seconds, penalty_weight=choice.weight)


def _choose_weight(
    make: Callable[[float], Any], grid: Sequence[float], data: MultiEnvironmentData, seed: int, effort: Effort
) -> Steps[Choice]:
    """The weight that the rule prefers; the middle of the grid, with a warning, where the rows are too few for it."""
    middle = middle_weight(grid)
    if len(grid) == 1:
        return Choice(middle, {})
    rule = find_rule(effort.selection)
    try:
        rule(data, seed)
    except ValueError as error:
        warnings.warn(f"The penalty weight is {middle:g}, not chosen: {error}", EnvironmentWarning, stacklevel=3)
        return Choice(middle, {})
    return (yield from WeightSearch(grid, rule).run(make, data, seed))
