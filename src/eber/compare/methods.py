"""How the comparison fits a method: how long, with which settings, and how these are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eber.estimators.batches import USUAL_BATCH
from eber.methods import PENALTY_WEIGHTS, POOL, find_method
from eber.tuning.grids import PENALISED, Candidate, default_candidates, penalised_candidates
from eber.tuning.pool import EnvironmentPool
from eber.tuning.search import MAX_FOLDS, EnvironmentSearch

BATCH_SIZE = "auto"
MAX_EPOCHS, MIN_EPOCHS = 50, 3
MAX_COMPONENTS = 40
"""Of more environments, EBER lets so many learned components stand for all."""
POOL_MEMBERS = ("EBER", "Logistic regression", "Gradient boosting", "Random forest")
QUICK_WEIGHTS = (1.0,)
"""The penalty weight where none is searched; a method with a grid of its own has the middle one."""
QUICK_POOL_FOLDS = 2
"""Folds of whole environments by which a pool is weighted where nothing is searched."""


@dataclass(frozen=True)
class Effort:
    """How much work goes into a fit.

    Parameters
    ----------
    steps : int
        Gradient steps to aim at. Small tables are passed over 50 times at most, large ones three times at least.
    search_folds : int
        Folds of whole training environments, at most, by which settings are chosen; zero for fixed settings.
    passes : int, optional
        Passes over the rows, in place of those that `steps` asks for.
    """

    steps: int = 4500
    search_folds: int = MAX_FOLDS
    passes: int | None = None

    @property
    def searches(self) -> bool:
        """Whether settings are chosen, or fixed."""
        return self.search_folds > 0

    @property
    def care(self) -> str:
        """How settings come about, in a sentence for whoever reads scores."""
        if not self.searches:
            return "Settings are fixed and nothing is tuned (--quick): a first look, not the methods' best."
        return (
            "Every method's settings are chosen in the same way: by NLL in training environments that are left out, "
            f"{self.search_folds} folds of them at most; as many of the best settings are averaged as leave the "
            "average within one standard error of the best such average. A held-out environment has no part in it: the "
            "fits that settings are judged by have not seen it, and one may serve several held-out environments."
        )

    def epochs(self, n_rows: int) -> int:
        """Passes over so many rows."""
        if self.passes is not None:
            return self.passes
        return int(np.clip(round(self.steps * USUAL_BATCH / n_rows), MIN_EPOCHS, MAX_EPOCHS))


THOROUGH = Effort()
QUICK = Effort(steps=500, search_folds=0)


def build(method: str, seed: int, epochs: int, n_environments: int) -> Any:
    """An unfitted classifier with the fixed settings of the comparison, for so many training environments."""
    declared = find_method(method)
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH_SIZE, "random_state": seed}
    if declared.penalty_parameter:
        (settings[declared.penalty_parameter],) = declared.grid(QUICK_WEIGHTS)
    if n_environments > MAX_COMPONENTS:
        settings["pseudo_environments"] = MAX_COMPONENTS
    return declared.build(**settings)


def candidates_of(method: str) -> list[Candidate]:
    """The settings that are tried for a method; a single empty one where it has none to choose."""
    declared = find_method(method)
    if declared.penalty_parameter:
        others = PENALISED if declared.is_network else ()
        return penalised_candidates(declared.penalty_parameter, declared.grid(PENALTY_WEIGHTS), others)
    try:
        return default_candidates(declared.build())
    except TypeError:  # a kind that nobody has listed settings for
        return [{}]


def is_tuned(method: str) -> bool:
    """Whether a method has settings to choose among; a pool has none of its own."""
    return method != POOL and len(candidates_of(method)) > 1


def prepare(method: str, seed: int, epochs: int, n_environments: int, effort: Effort) -> Any:
    """The unfitted classifier with its search: what `eber.compare.fit_method` fits."""
    if method == POOL:
        folds = effort.search_folds or QUICK_POOL_FOLDS
        members = [
            (
                member,
                EnvironmentSearch(
                    build(member, seed, epochs, n_environments),
                    candidates_of(member) if effort.searches else [{}],
                    max_folds=folds,
                ),
            )
            for member in POOL_MEMBERS
        ]
        return EnvironmentPool(members, max_folds=folds, random_state=seed)
    classifier = build(method, seed, epochs, n_environments)
    candidates = candidates_of(method) if effort.searches else []
    if len(candidates) < 2:
        return classifier
    return EnvironmentSearch(classifier, candidates, max_folds=effort.search_folds)
