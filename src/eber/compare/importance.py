"""Which columns a fitted method lives on: permutation importance in the environment that was held out.

The values of one column of the table are dealt anew among the held-out rows, all columns of the matrix that encode it
together, and the NLL is computed again. What it rises by is the column's importance there: about zero where the method
does not use the column, below zero where the column misleads it in this environment (Breiman 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.tables.preprocessing import Preprocessing

REPEATS = 3
MAX_ROWS = 2000
MAX_COLUMNS = 30
"""Of more columns, those are looked at that move the predictions most, which is seen without a label."""
MAX_PREDICTIONS = 30_000
"""Rows that are predicted for it in all: with many columns fewer rows are looked at."""
MAX_SCREENED, MIN_SCREENED = 5_000, 8
"""Rows that are predicted to find those columns in all, and held-out rows for each column at least."""
TOGETHER = 2048
"""Rows that are predicted in one call, where each column has few: a call costs as much as many rows."""


def column_importance(
    predict_proba: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    X: NDArray[np.float64],
    labels: NDArray[np.int64],
    preprocessing: Preprocessing,
    weights: NDArray[np.float64] | None = None,
) -> dict[str, NDArray[Any]]:
    """By how much the NLL of held-out rows rises when a column is shuffled among them.

    Parameters
    ----------
    predict_proba : callable
        Of a fitted classifier: (n, d) -> (n, K).
    X : array of shape (n, d)
        Held-out rows, preprocessed.
    labels : array of shape (n,)
        Column of each row's class.
    preprocessing : Preprocessing
        Which columns of the matrix come from one column of the table.
    weights : array of shape (n,), optional
        How much each row counts in the NLL.

    Returns
    -------
    dict
        "importance_columns" (C,), "importance" (C, REPEATS) in nats a row, and "importance_error" (C,), the standard
        error of a column's mean over repeats as far as the rows say.
    """
    rng = np.random.default_rng(0)  # the same rows are dealt in the same way to every method
    blocks = _blocks(preprocessing)
    if len(blocks) > MAX_COLUMNS:
        blocks = _most_moving(predict_proba, X, blocks, rng)
    n_rows = min(MAX_ROWS, MAX_PREDICTIONS // (REPEATS * max(len(blocks), 1)))
    rows = np.sort(rng.permutation(len(X))[:n_rows])
    X, labels = X[rows], labels[rows]
    before = _losses(predict_proba(X), labels)
    rises = np.zeros((len(blocks), REPEATS, len(X)))
    for c, block in enumerate(blocks.values()):
        for r in range(REPEATS):
            rises[c, r] = _losses(predict_proba(_shuffled(X, block, rng)), labels) - before
    if weights is not None:  # a mean of r_i w_i, whose error is that of their scatter
        rises *= weights[rows] / weights[rows].mean()
    spread = rises.mean(1).std(axis=1, ddof=1) if len(X) > 1 else np.full(len(blocks), np.nan)
    return {
        "importance_columns": np.array(list(blocks), dtype=str),
        "importance": rises.mean(2),
        "importance_error": spread / np.sqrt(len(X)),
    }


def asked_rows(n_rows: int, n_columns: int) -> tuple[int, int]:
    """How often a classifier is asked for the importance of so many columns, and about how many rows each time."""
    shown = min(n_columns, MAX_COLUMNS)
    rows = min(n_rows, MAX_ROWS, MAX_PREDICTIONS // (REPEATS * max(shown, 1)))
    screened = n_columns * min(n_rows, max(MAX_SCREENED // n_columns, MIN_SCREENED)) if n_columns > MAX_COLUMNS else 0
    return 1 + REPEATS * shown + round(screened / max(rows, 1)), rows


def _blocks(preprocessing: Preprocessing) -> dict[str, NDArray[np.int64]]:
    """Column of the table to its columns of the matrix; those that have none are left out."""
    blocks: dict[str, NDArray[np.int64]] = {}
    start = 0
    for encoding in preprocessing.encodings:
        width = len(encoding.names_out)
        if width:
            blocks[encoding.name] = np.arange(start, start + width)
        start += width
    return blocks


def _most_moving(
    predict_proba: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    X: NDArray[np.float64],
    blocks: Mapping[str, NDArray[np.int64]],
    rng: np.random.Generator,
) -> dict[str, NDArray[np.int64]]:
    """The columns that move predictions most.

    Labels have no part in it: columns chosen by them would look too good.
    """
    X = X[rng.permutation(len(X))[: max(MAX_SCREENED // len(blocks), MIN_SCREENED)]]
    before, names = predict_proba(X), list(blocks)
    moved: dict[str, float] = {}
    at_once = max(TOGETHER // len(X), 1)
    for start in range(0, len(names), at_once):
        part = names[start : start + at_once]
        after = predict_proba(np.concatenate([_shuffled(X, blocks[name], rng) for name in part]))
        change = np.abs(after.reshape(len(part), *before.shape) - before).sum((1, 2))
        moved |= dict(zip(part, change.tolist(), strict=True))
    kept = set(sorted(moved, key=lambda name: -moved[name])[:MAX_COLUMNS])
    return {name: block for name, block in blocks.items() if name in kept}


def _shuffled(X: NDArray[np.float64], block: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A copy in which the columns of a block are dealt anew among the rows, together."""
    shuffled = X.copy()
    shuffled[:, block] = X[np.ix_(rng.permutation(len(X)), block)]
    return shuffled


def _losses(proba: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    own = np.asarray(proba, dtype=np.float64)[np.arange(len(labels)), labels]
    losses: NDArray[np.float64] = -np.log(np.maximum(own, np.finfo(np.float64).eps))
    return losses
