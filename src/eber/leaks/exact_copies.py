"""Is it chance that a held-out row equals a training row in every column?

Two rows have a score: the logarithm of how much more likely their values are if one row is a copy of the other, with
one value in ten changed, than if they are independent. Columns add up. Agreement in a value that a share s of the
training rows has adds log(0.9 / s), and disagreement takes log((1 - s) / 0.1) away. Where values hardly ever repeat,
the share of a value that one training row has is smaller than one in n, and Good and Turing's estimate is taken.
Missing values say nothing, and columns that put the rows in the same order, such as a weight in two units, are one.

If columns are independent, at most n exp(-score) of n training rows are expected to agree so well with a row by chance.
They are not, and so a copy must also stand out from what *different* rows reach: with S the score of a training row and
the different row most like it, Markov's inequality bounds the probability of a score by the mean of exp(S/2), times
exp(-score/2). Where rows repeat by nature they also nearly repeat, and S is close to the score of a copy; where they do
not, S is low, and double entries do not raise it, as identical rows are never compared. Nor is a copy more telling than
its margin over the row most like it, held out or not, that is different.

A row that an environment has often, beyond what is usual there and a double entry, repeats by nature, such as one in
which nothing was found: it is no rarer than the share of these repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from eber.leaks.near_rows import FloatArray, IntArray, Rows

# The share of values that a copy may have changed.
_CHANGED = 0.1
# What is compared of very large data, drawn at random: rows whose most alike row is looked for, among how many, in how
# many columns; and how many pairs at a time.
_REFERENCE_ROWS = 500
_MAX_ROWS = 20_000
_MAX_COLUMNS = 256
_MAX_PAIRS = 10_000_000
# The margin over different rows matters only where a row is not excused already.
_EXCUSED = 0.05


def chance_of_copies(rows: Rows, queries: Rows, environments: NDArray[Any], rng: np.random.Generator) -> FloatArray:
    """For each held-out row that equals a training row, how likely such a coincidence is; one for the others.

    Parameters
    ----------
    rows, queries : Rows
        The training and the held-out rows.
    environments : array of shape (len(rows),)
        Of the training rows.
    rng : numpy.random.Generator
        Draws what is compared of very large data.
    """
    p_values = np.ones(len(queries))
    places = np.flatnonzero(np.isin(queries.keys, rows.keys))
    if not len(places):
        return p_values
    n, copied = len(rows), queries.select(places)
    values = _Values(rows, rng)
    scores = values.of_copies(copied)
    usual = np.exp(values.best(rows.select(_draw(n, _REFERENCE_ROWS, rng)), rows, inside=True) / 2).mean()
    parts = [queries.keys, *(rows.keys[environments == environment] for environment in np.unique(environments))]
    by_nature = np.sum([_repetitions(keys, copied.keys) for keys in parts], axis=0) / (n + len(queries))
    chance = np.maximum.reduce([usual * np.exp(-scores / 2), n * np.exp(-scores), by_nature])
    left = np.flatnonzero(chance <= _EXCUSED)
    for pool in (rows, queries):
        margin = scores[left] - values.best(copied.select(left), pool, inside=False)
        chance[left] = np.maximum(chance[left], np.exp(-margin / 2))
    p_values[places] = chance.clip(max=1.0)
    return p_values


class _Values:
    """How common the values of the training rows are, column by column."""

    def __init__(self, rows: Rows, rng: np.random.Generator) -> None:
        self.n = len(rows)
        self.rng = rng
        self.columns: list[tuple[int, FloatArray, IntArray, FloatArray]] = []
        orders = set()
        for j in _draw(rows.columns.shape[1], _MAX_COLUMNS, rng):
            values, place, counts = np.unique(rows.columns[:, j], return_inverse=True, return_counts=True)
            order = (place if place[0] <= place[-1] else place.max() - place).tobytes()
            if order in orders:
                continue
            orders.add(order)
            once, twice = (counts == 1).sum(), (counts == 2).sum()
            rare = min(1.0, (2 * twice + 1) / (once + 1))  # Good and Turing's count of a value seen once
            number = np.arange(self.n + 1)
            self.columns.append((j, values, counts, np.where(number > 1, number, rare) / self.n))

    def of_copies(self, rows: Rows) -> FloatArray:
        """The score of each row, which is a copy of a training row."""
        scores = np.zeros(len(rows))
        for j, values, counts, share in self.columns:
            column = rows.columns[:, j]
            agree = np.log((1 - _CHANGED) / share[counts[np.searchsorted(values, column)]])
            scores += np.where(np.isnan(column), 0.0, agree)
        return scores

    def best(self, rows: Rows, pool: Rows, *, inside: bool) -> FloatArray:
        """The largest score of each row with a different one of the pool; zero if that is negative.

        Rows have values of training rows; where they are `inside`, they do not count in the shares of their values.
        """
        pool = pool.select(_draw(len(pool), _MAX_ROWS, self.rng))
        best = np.zeros(len(rows))
        step = max(1, _MAX_PAIRS // len(pool))
        for start in range(0, len(rows), step):
            part = rows.select(np.arange(start, min(start + step, len(rows))))
            score = np.zeros((len(part), len(pool)), dtype=np.float32)
            for j, values, counts, share in self.columns:
                column = part.columns[:, j]
                common = share[counts[np.searchsorted(values, column)] - int(inside)]
                agree, differ = np.log((1 - _CHANGED) / common), np.log(_CHANGED / (1 - common))
                agree, differ = (np.where(np.isnan(column), 0, x).astype(np.float32)[:, None] for x in (agree, differ))
                score += np.where(column[:, None] == pool.columns[:, j], agree, differ)
            score[part.keys[:, None] == pool.keys] = 0.0
            best[start : start + step] = score.max(axis=1).clip(min=0.0)
        return best


def _draw(n: int, most: int, rng: np.random.Generator) -> IntArray:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, size=most, replace=False))


def _repetitions(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> IntArray:
    """How often an environment has rows with each wanted key, beyond the number usual there and a double entry."""
    values, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    beyond = counts[place] - int(np.median(counts[index])) - 1
    return np.where(values[place] == wanted, np.maximum(beyond, 0), 0)


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
