"""Fits of all settings without a block of environments, and how held-out environments share what they say.

A fit without the environments {a, b, c} has seen none of them: it judges settings in b and c for the result of a, in a
and c for that of b. Nothing of a held-out environment has a part in what is chosen while it is held out: no fit that
judges for it has seen its rows, and its rows are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.blocks import Block
from eber.compare.methods import Effort, build, candidates_of
from eber.datasets.base import MultiEnvironmentData
from eber.exceptions import NonFiniteLossError
from eber.runs.cell import CellResult
from eber.runs.fitting import FitOutcome, FitRequest, FittedMethod, Steps
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable
from eber.tuning.choosing import choose
from eber.tuning.left_out import LEAVE_ENVIRONMENTS_OUT, LeftOut, said_about
from eber.tuning.search import EnvironmentSearch, checked_table

PROBA, ADAPTED, SECONDS = "proba", "adapted", "seconds"
"""Arrays of a result: `eber.tuning.left_out.LeftOut` of the block's rows, and the time for one held-out fold."""


def fit_without(
    table: TrainingTable, block: Block, folds: Sequence[Sequence[str]], method: str, seed: int, effort: Effort
) -> Steps[CellResult]:
    """Every setting of a method fitted without a block, and what each says about its rows.

    A fit makes as many passes as the final ones, which have more rows. Preprocessing is learned without the block.

    Parameters
    ----------
    block : names of environments
    folds : environments that are held out together
        Those folds that the block judges settings for.
    """
    left_out = np.isin(table.environments, block)
    fitted_on, rows = np.flatnonzero(~left_out), np.flatnonzero(left_out)
    preprocessing = Preprocessing.fit(table.columns.select(fitted_on), table.schema)
    data, of_block = (_prepared(table, preprocessing, chosen) for chosen in (fitted_on, rows))
    without = [~np.isin(table.environments, fold) for fold in folds]
    final_rows = round(np.mean([train.sum() for train in without]))
    final_environments = round(np.mean([len(np.unique(table.environments[train])) for train in without]))
    search = EnvironmentSearch(
        build(method, seed, effort.epochs(final_rows), final_environments), candidates_of(method)
    )
    fits = search.to_fit(range(len(search.candidates_to_try)))
    outcomes = yield [FitRequest(fitted, data, quiet=True) for fitted in fits]
    sound = [None if error else fitted for fitted, error in zip(fits, _diverged(outcomes), strict=True)]
    proba, adapted = said_about(sound, of_block, len(np.unique(table.y)), search.adapts)
    arrays = {PROBA: proba, SECONDS: np.array(_seconds(outcomes) / len(folds))}
    return CellResult({}, {}, arrays if adapted is None else {**arrays, ADAPTED: adapted})


def left_out_of(table: TrainingTable, held: NDArray[np.bool_], said: Mapping[Block, CellResult]) -> LeftOut:
    """What was said about the training rows of a fold while they were left out, from the blocks that judge for it.

    A row that several blocks leave out is judged by the first of them.

    Parameters
    ----------
    held : array of shape (n,)
        Whether a row is held out.
    said : mapping
        Block to what `fit_without` found.
    """
    train = np.flatnonzero(~held)
    position = np.full(len(held), -1)
    position[train] = np.arange(len(train))
    parts = list(said.values())
    C, _, K = parts[0].arrays[PROBA].shape
    proba = np.full((C, len(train), K), np.nan)
    adapted = None
    if ADAPTED in parts[0].arrays:
        adapted = np.full((len(parts[0].arrays[ADAPTED]), C, len(train)), np.nan)
    folds, known = [], held.copy()
    for block, result in said.items():
        left_out = np.isin(table.environments, block)
        new = ~known[left_out]
        rows = position[left_out & ~known]
        proba[:, rows] = result.arrays[PROBA][:, new]
        if adapted is not None:
            adapted[:, :, rows] = result.arrays[ADAPTED][:, :, new]
        folds.append((np.flatnonzero(~left_out[train]), rows))
        known |= left_out
    return LeftOut(folds, proba, adapted)


def refit(search: EnvironmentSearch, data: MultiEnvironmentData, left_out: LeftOut) -> Steps[FittedMethod]:
    """The search on all training rows, where what its settings say about left-out rows is known already."""
    table, _ = checked_table(search, data.X, data.y, data.environments, data.weights)
    choice = choose(left_out, table, LEAVE_ENVIRONMENTS_OUT)
    fits = search.to_fit_on_all_rows(choice.kept)
    outcomes = yield [FitRequest(fitted, table) for fitted in fits]
    search.complete(choice, LEAVE_ENVIRONMENTS_OUT, fits, _diverged(outcomes))
    return FittedMethod(search, _seconds(outcomes))


def _prepared(table: TrainingTable, preprocessing: Preprocessing, rows: NDArray[np.int64]) -> MultiEnvironmentData:
    X: Any = preprocessing.transform(table.columns.select(rows))
    weights = None if table.weights is None else table.weights[rows]
    return MultiEnvironmentData(X, table.y[rows], table.environments[rows], weights=weights)


def _diverged(outcomes: Sequence[FitOutcome]) -> list[Exception | None]:
    """What ended the fits that diverged; any other error is raised."""
    errors = [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]
    for error in errors:
        if error is not None and not isinstance(error, NonFiniteLossError):
            raise error
    return errors


def _seconds(outcomes: Sequence[FitOutcome]) -> float:
    return sum(outcome.seconds for outcome in outcomes if isinstance(outcome, FittedMethod))
