"""Ending a fit when what was held out is predicted no better: rows of known environments, or whole environments."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from eber.estimators.persistence import fitted_attributes
from eber.estimators.rows import Rows, class_factors
from eber.estimators.validation import distinct, one_entry_per_row, plain
from eber.nn.image_extractor import convolutional_parts
from eber.training import Verdict

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

ROWS, ENVIRONMENTS = "rows", "environments"
VALIDATION = "validation_nll"
"""What the held-out NLL is called in what a callback hears."""
MIN_ENVIRONMENTS = 3
"""With one held out, two are left to differ."""
SMALLEST = float(np.finfo(np.float64).eps)


def hold_out(rows: Rows, what: str, fraction: float, seed: int, method: str) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to stop by.

    Parameters
    ----------
    what : {"rows", "environments"}
    fraction : float
        Share of the rows, or of the environments, one at least.
    method : str
        Who asks, for refusals.
    """
    rng = np.random.default_rng(seed)
    whole = what == ENVIRONMENTS
    held = _some_environments(rows, fraction, rng, method) if whole else _some_rows(rows, fraction, rng)
    return rows.select(~held), rows.select(held)


def _some_environments(rows: Rows, fraction: float, rng: np.random.Generator, method: str) -> NDArray[np.bool_]:
    if rows.environments is None:
        raise ValueError(f"early_stopping='environments' of {method} needs environments=...; 'rows' does without.")
    names, index = distinct(one_entry_per_row(rows.environments, len(rows.y), "environments"))
    if len(names) < MIN_ENVIRONMENTS:
        listed = ", ".join(repr(plain(name)) for name in names)
        raise ValueError(
            f"early_stopping='environments' holds environments out and needs {MIN_ENVIRONMENTS} of them at least; here "
            f"{'is' if len(names) == 1 else 'are'} {listed}. Use early_stopping='rows'."
        )
    wanted = min(max(1, round(fraction * len(names))), len(names) - MIN_ENVIRONMENTS + 1)
    n_classes = len(np.unique(rows.y))
    held = np.zeros(len(rows.y), dtype=bool)
    for e in rng.permutation(len(names)):
        with_it = held | (index == e)
        if len(np.unique(index[with_it])) <= wanted and len(np.unique(rows.y[~with_it])) == n_classes:
            held = with_it
    if not held.any():
        raise ValueError(
            "early_stopping='environments': each environment has a class of its own, so that none can be held out. Use "
            "early_stopping='rows'."
        )
    return held


def _some_rows(rows: Rows, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """About that share of the rows of each class in each environment; one of them always stays."""
    strata = distinct(rows.y)[1].astype(np.int64)
    if rows.environments is not None:
        _, environment = distinct(one_entry_per_row(rows.environments, len(rows.y), "environments"))
        strata = strata * (environment.max() + 1) + environment
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]  # stratum by stratum, in random order within
    reached = np.floor(fraction * np.arange(1, len(order) + 1) + 1e-9)
    held = np.zeros(len(strata), dtype=bool)
    held[order] = np.diff(reached, prepend=0.0) > 0  # at even steps through them all
    _, first = np.unique(strata[order], return_index=True)
    lost = ~np.isin(strata[order[first]], strata[~held])
    held[order[first[lost]]] = False
    if not held.any():
        raise ValueError(
            f"early_stopping: validation_fraction={fraction:g} of {len(strata)} rows, by class and environment, is "
            "none. Raise it, or fit without early stopping."
        )
    return held


class Judge:
    """Looks at every pass with the weights that prediction would use.

    Parameters
    ----------
    estimator : the classifier that is being fitted
    attributes : what it knows by now
    held : Rows
        What to stop by.
    train : Rows
        What is learned from, for the weights of classes.
    first_epoch : int
        Passes before it are looked at and neither kept nor waited for: the objective has not its final form yet.
    """

    def __init__(
        self, estimator: EnvironmentClassifier, attributes: dict[str, Any], held: Rows, train: Rows, first_epoch: int
    ) -> None:
        self._estimator, self._attributes, self._x = estimator, attributes, held.X
        classes = attributes["classes_"]
        self._y = np.searchsorted(classes, held.y)
        factors = class_factors(estimator.class_weight, classes, np.searchsorted(classes, train.y), train.weight)
        of_rows = np.ones(len(self._y)) if held.weight is None else held.weight
        self._weight = of_rows if factors is None else of_rows * factors[self._y]
        self._patience, self._first_epoch = int(estimator.n_iter_no_change), first_epoch
        self._best, self.best_epoch = math.inf, 0

    def __call__(self, epoch: int, module: nn.Module) -> Verdict:
        """What to make of a pass."""
        nll = self.loss(module)
        counts = epoch >= self._first_epoch
        is_best = counts and nll < self._best
        if is_best:
            self._best, self.best_epoch = nll, epoch
        waited = epoch - max(self.best_epoch, self._first_epoch - 1)
        return Verdict({VALIDATION: nll}, is_best, counts and waited >= self._patience)

    def loss(self, module: nn.Module) -> float:
        """The weighted NLL of the held-out rows."""
        single = copy.deepcopy(module).double().eval()
        for extractor in convolutional_parts(single):
            extractor.absorb_centre()
        asked = copy.copy(self._estimator)
        for name in fitted_attributes(asked):
            delattr(asked, name)
        # Rows come as an array here, whatever they came as to the fit.
        known = {name: value for name, value in self._attributes.items() if name != "feature_names_in_"}
        asked.__dict__.update(known, module_=single)
        p = asked.predict_proba(self._x)[np.arange(len(self._y)), self._y]
        return float(np.average(-np.log(np.clip(p, SMALLEST, None)), weights=self._weight))
