"""What fits say about training rows that they have not seen, and which candidates are kept for it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from eber.datasets.base import MultiEnvironmentData
from eber.estimators.many_fits import fit_many
from eber.exceptions import EnvironmentWarning, FitWarning, NonFiniteLossError, warn_user
from eber.io.text import count
from eber.model_selection import Fold, leave_one_environment_out, training_domain_cross_validation
from eber.tuning.adaptation_record import STRENGTHS, adapted_to_each
from eber.tuning.grids import Candidate

LEAVE_ENVIRONMENTS_OUT, LEAVE_ROWS_OUT, NOTHING_LEFT_OUT = "leave environments out", "leave rows out", "none"
SMALLEST = float(np.finfo(np.float64).eps)
"""Probabilities below count as this, as in `eber.evaluation.metrics.negative_log_likelihood`."""


def choose_folds(y: NDArray[Any], environments: NDArray[Any], max_folds: int) -> tuple[str, list[Fold]]:
    """The rule by which training rows are left out, and its folds; warns where environments cannot be.

    Whole environments, in at most `max_folds` folds; with fewer than three of them, or where each has a class of its
    own, a fifth of each environment's rows in turn; where even that leaves too few rows, no fold at all.
    """
    data = MultiEnvironmentData(np.arange(len(y))[:, None], y, environments, name="The table")
    try:
        return LEAVE_ENVIRONMENTS_OUT, leave_one_environment_out(data, max_folds=max_folds)
    except ValueError:
        obstacle = _obstacle(environments)
    try:
        folds = training_domain_cross_validation(data)
    except ValueError:
        warn_user(f"{obstacle}, and there are too few rows to leave some out: nothing is tuned.", EnvironmentWarning)
        return NOTHING_LEFT_OUT, []
    warn_user(
        f"{obstacle}: settings are judged on left-out rows of known environments, which says less about new ones.",
        EnvironmentWarning,
    )
    return LEAVE_ROWS_OUT, folds


def _obstacle(environments: NDArray[Any]) -> str:
    """Why no environment can be left out."""
    names = np.unique(environments)
    if len(names) < 3:
        return (
            f"There {'is' if len(names) == 1 else 'are'} {count(len(names), 'training environment')} "
            f"({', '.join(map(str, names))}), too few to leave one out"
        )
    return "Each training environment has a class of its own, so none can be left out"


@dataclass(frozen=True)
class LeftOut:
    """What fits of C candidates without each of the folds say about the rows that were left out.

    Attributes
    ----------
    folds : rows fitted on and rows left out, of each fold
    proba : (C, n, K)
        Probabilities of rows while they were left out; NaN of rows that never were, and where training diverged.
    adapted : (S, C, n) or None
        Where adapting was tried: the probability of each row's label after it, by strength
        (`eber.tuning.adaptation_record`).
    """

    folds: list[Fold]
    proba: NDArray[np.float64]
    adapted: NDArray[np.float64] | None = None


def fit_sound(estimators: Sequence[Any], data: Sequence[MultiEnvironmentData]) -> list[Exception | None]:
    """Fit estimators, side by side where they can be; the errors of those that diverged. Any other error is raised."""
    errors = fit_many(estimators, data, raise_errors=False)
    for error in errors:
        if error is not None and not isinstance(error, NonFiniteLossError):
            raise error
    return errors


def fit_left_out(
    estimator: Any,
    candidates: Sequence[Candidate],
    table: MultiEnvironmentData,
    folds: list[Fold],
    n_classes: int,
    *,
    adapting: bool = False,
) -> LeftOut:
    """Fit every candidate without every fold, side by side where that is possible.

    Parameters
    ----------
    adapting : bool
        Whether EBER's fits, which these then have to be, also try what adapting does.
    """
    tables = [table.select(rows) for rows, _ in folds]
    estimators = [[clone(estimator).set_params(**candidate) for _ in folds] for candidate in candidates]
    with warnings.catch_warnings():
        for category in (EnvironmentWarning, FitWarning, ConvergenceWarning):  # said by the fits that are kept
            warnings.simplefilter("ignore", category)
        errors = iter(fit_sound([e for row in estimators for e in row], tables * len(candidates)))
    fits = [[None if next(errors) else e for e in row] for row in estimators]
    C, n = len(candidates), len(table.y)
    proba = np.full((C, n, n_classes), np.nan)
    adapted = np.full((len(STRENGTHS), C, n), np.nan) if adapting else None
    for fold, (_, rows) in enumerate(folds):
        proba[:, rows], after = said_about([row[fold] for row in fits], table.select(rows), n_classes, adapting)
        if adapted is not None:
            adapted[:, :, rows] = after
    return LeftOut(folds, proba, adapted)


def said_about(
    fits: Sequence[Any | None], rows: MultiEnvironmentData, n_classes: int, adapting: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """What fits say about rows that they have not seen, (C, n, K); after adapting, of the label, (S, C, n).

    NaN of fits that diverged, which are None.
    """
    proba = np.full((len(fits), len(rows), n_classes), np.nan)
    adapted = np.full((len(STRENGTHS), len(fits), len(rows)), np.nan) if adapting else None
    for c, fitted in enumerate(fits):
        if fitted is not None:
            proba[c] = fitted.predict_proba(rows.X)
            if adapted is not None:
                adapted[:, c] = adapted_to_each(fitted, rows)
    return proba, adapted


def judged_units(
    folds: Sequence[Fold], environments: NDArray[Any], rule: str
) -> tuple[list[NDArray[np.int64]], list[str]]:
    """What a candidate is judged on, each counting once: the rows of an environment, or of a fold; with its name."""
    rows = [rows for _, rows in folds]
    if rule != LEAVE_ENVIRONMENTS_OUT:
        return rows, [f"fold {i + 1}" for i in range(len(rows))]
    names = sorted({name for fold in rows for name in environments[fold].tolist()})
    return [np.flatnonzero(environments == name) for name in names], [str(name) for name in names]


def losses(
    proba: NDArray[np.float64],
    y_index: NDArray[np.int64],
    units: Sequence[NDArray[np.int64]],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Mean -log p(y|x) of each unit's rows, (C, n, K) and U arrays of rows -> (C, U); infinite where there is none.

    With weights of the rows, (n,), all positive, weighted means.
    """
    return label_losses(np.take_along_axis(proba, y_index[None, :, None], 2)[:, :, 0], units, weights)


def label_losses(
    p_of_label: NDArray[np.float64],
    units: Sequence[NDArray[np.int64]],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The same from the probability of each row's label, (C, n) -> (C, U)."""
    row_losses = -np.log(np.clip(p_of_label, SMALLEST, None))
    if not units:
        return np.empty((len(p_of_label), 0))
    if weights is None:
        means = np.stack([row_losses[:, rows].mean(1) for rows in units], 1)
    else:
        means = np.stack([row_losses[:, rows] @ weights[rows] / weights[rows].sum() for rows in units], 1)
    return np.where(np.isnan(means), math.inf, means)


def kept_candidates(
    proba: NDArray[np.float64],
    y_index: NDArray[np.int64],
    units: Sequence[NDArray[np.int64]],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Which candidates are kept, the best first; where nothing was left out, the one in the middle of the list."""
    return widest_average(proba, y_index, units, weights) if units else np.array([len(proba) // 2])


def widest_average(
    proba: NDArray[np.float64],
    y_index: NDArray[np.int64],
    units: Sequence[NDArray[np.int64]],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """The candidates to be averaged, (C, n, K) and U arrays of rows -> indices, the best candidate first.

    Candidates are put in order by their mean loss, and the averages of the first, the first two and so on are judged as
    single candidates are. The widest is taken whose mean difference to the best of them, unit by unit, is at most one
    standard error of that mean: an average is often better than each of its parts, and what it gains in left-out
    environments is seen here, not guessed from the parts. A candidate that diverged anywhere has no part in it.
    """
    unit_losses = losses(proba, y_index, units, weights)  # (C, U)
    sound = np.flatnonzero(np.asarray(np.isfinite(unit_losses)).all(1))
    if not len(sound):
        raise ArithmeticError("Training diverged with every candidate: standardise the features or set clip_norm.")
    order: NDArray[np.int64] = sound[unit_losses[sound].mean(1).argsort(kind="stable")]
    averages = np.cumsum(proba[order], 0) / np.arange(1, len(order) + 1)[:, None, None]
    average_losses = losses(averages, y_index, units, weights)
    difference = average_losses - average_losses[average_losses.mean(1).argmin()]  # (C', U), zero for the best itself
    spread = difference.std(1, ddof=1) if len(units) > 1 else np.zeros(len(order))
    widest = np.flatnonzero(difference.mean(1) <= spread / math.sqrt(len(units))).max()
    return order[: widest + 1]
