"""Is it chance that a held-out row equals a training row in every column?

The score of a row is the sum over columns of log(n / how many of n training rows have its value). Where columns are
independent, exp(-score) is the probability of the row, and n exp(-score) training rows are expected to equal it by
chance. A value that one training row has is rarer than one in n where values hardly ever repeat: then Good and Turing's
estimate takes the place of the count. Missing values say nothing, and columns that put the rows in the same order, such
as a weight in two units, are one column.

How far columns are from independent is read off the training data: a training row and a *different* one agree in some
columns, and the score of those columns, for the row with which it is largest, is the reference. Where rows repeat by
nature, they also nearly repeat, with scores close to that of a whole row. Where they do not, double entries among the
training rows change nothing, as identical rows are never compared. Beyond their 95 % quantile the scores are continued
as exponential, at a rate of at most one.

A row that its training environments have more often than most of their rows repeats by nature, such as one in which
nothing was found: it is no rarer than the share of these repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from eber.neighbours import LEAST_TAIL_ROWS, TAIL, FloatArray, IntArray, Rows, lower_limit

# Training rows whose best partner is looked for, and pairs of rows that are compared at a time.
_REFERENCE_ROWS = 500
_MOST_PAIRS = 10_000_000


def chance_of_copies(rows: Rows, copied: Rows, environments: NDArray[Any], rng: np.random.Generator) -> FloatArray:
    """For each copied row, which training rows equal, how likely such a coincidence is.

    Parameters
    ----------
    rows : Rows
        The training rows.
    copied : Rows
        Held-out rows, each of which equals a training row.
    environments : array of shape (len(rows),)
        Of the training rows.
    rng : numpy.random.Generator
        Draws the reference rows where there are very many.
    """
    n = len(rows)
    drawn = rng.choice(n, size=min(n, _REFERENCE_ROWS), replace=False)
    scores, reference = _scores(rows, copied, drawn)
    tail_rows = max(LEAST_TAIL_ROWS, int(TAIL * len(reference)))
    if len(reference) < 2 * tail_rows:
        return np.ones(len(copied))
    reference = np.sort(reference)[::-1]
    t = reference[tail_rows]
    excess = (reference[:tail_rows] - t).mean()
    rate = lower_limit(1 / max(excess, 1.0), tail_rows)
    as_high = (reference[:, None] >= scores).mean(axis=0)
    tail = np.where(scores > t, tail_rows / len(reference) * np.exp(-rate * (scores - t)), as_high)
    by_nature = _repetitions(rows.keys, environments, copied.keys) / n
    return np.maximum.reduce([tail, n * np.exp(-scores), by_nature]).clip(max=1.0)


def _scores(rows: Rows, copied: Rows, drawn: IntArray) -> tuple[FloatArray, FloatArray]:
    """The scores of the copied rows, and of the drawn training rows with the different rows most like them."""
    n = len(rows)
    whole, best = np.zeros(len(copied)), np.zeros(len(drawn))
    values_of, score_of = [], []
    seen = set()
    for column, other in zip(rows.columns.T, copied.columns.T, strict=True):
        values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        order = (place if place[0] <= place[-1] else place.max() - place).tobytes()
        if order in seen:
            continue
        seen.add(order)
        missing = np.isnan(values)
        once, twice = (counts[~missing] == 1).sum(), (counts[~missing] == 2).sum()
        rare = min(1.0, (2 * twice + 1) / (once + 1))
        score = np.log(n / np.where(np.arange(n + 1) > 1, np.arange(n + 1), rare))  # by the number of rows with a value
        whole += np.where(missing, 0.0, score[counts])[np.searchsorted(values, other)]
        # The row itself is not among those that it is compared with.
        score_of.append(np.where(missing, 0.0, score[counts - 1])[place[drawn]].astype(np.float32))
        values_of.append(place)
    step = max(1, _MOST_PAIRS // n)
    for start in range(0, len(drawn), step):
        part = slice(start, start + step)
        agreement = np.zeros((len(drawn[part]), n), dtype=np.float32)
        for place, score in zip(values_of, score_of, strict=True):
            agreement += np.where(place[drawn[part], None] == place, score[part, None], np.float32(0))
        agreement[rows.keys[drawn[part], None] == rows.keys] = 0.0
        best[part] = agreement.max(axis=1)
    return whole, best


def _repetitions(keys: NDArray[np.uint64], environments: NDArray[Any], wanted: NDArray[np.uint64]) -> IntArray:
    """How many training rows with each wanted key their environments have beyond the number usual there."""
    found = np.zeros(len(wanted), dtype=np.int64)
    for environment in np.unique(environments):
        values, index, counts = np.unique(keys[environments == environment], return_inverse=True, return_counts=True)
        place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        beyond = counts[place] - int(np.median(counts[index]))
        found += np.where(values[place] == wanted, np.maximum(beyond, 0), 0)
    return found


def excess_of_copies(rows: Rows, queries: Rows, environments: NDArray[Any]) -> FloatArray:
    """How likely it is that so many held-out rows have a copy in the training environment where this one has its own.

    Fisher's exact test against the rows of each other training environment, and against those of the environment
    itself: the largest p-value counts, as environments differ in how alike they are, times the number of environments.
    One for rows without a copy.
    """
    p_values = np.ones(len(queries))
    keys, index = np.unique(np.concatenate([rows.keys, queries.keys]), return_inverse=True)
    inside, outside = index[: len(rows)], index[len(rows) :]
    names, environment_of = np.unique(environments, return_inverse=True)
    sizes = np.bincount(environment_of)
    if len(names) < 2:
        return p_values
    for e in range(len(names)):
        in_pool = np.bincount(inside[environment_of == e], minlength=len(keys))
        copied = in_pool[outside] > 0
        if not copied.any():
            continue
        repeated = in_pool[inside] > (environment_of == e)
        usual = np.bincount(environment_of[repeated], minlength=len(names))
        n, m = len(queries), int(copied.sum())
        as_many = hypergeom.sf(m - 1, n + sizes, usual + m, n)
        p_values[copied] = np.minimum(p_values[copied], len(names) * as_many.max())
    return p_values.clip(max=1.0)
