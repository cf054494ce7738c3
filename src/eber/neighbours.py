"""How near a row lies to the rows of another set, on a scale on which data of any kind can be compared.

For a row, d_1 and d_k are the distances to the nearest and the k-th nearest *different* row of a pool. The ratio
r = d_1 / d_k has no unit and adapts to the density around the row: where rows lie independently with locally constant
density in D dimensions, r^D is distributed as the least of k - 1 uniform variables. A copy with a little noise has r
near zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.random_projection import GaussianRandomProjection

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Transform = Callable[[NDArray[Any]], NDArray[Any]]

# Distances between longer rows are estimated from a random projection, which keeps small distances small.
_MOST_COLUMNS = 256
_PROJECTED_COLUMNS = 64
# A column with no more values than this is a category rather than a measurement.
_CATEGORIES = 20
# A value of a measurement that so large a share of the rows has is one of the kind "none found".
_COMMON = 0.05
# A measurement is fine when, among different rows, so large a share of its values (but the commonest) is distinct.
_FINE = 0.95
# A value that more rows have than this stands for something, such as "not measured", even if those rows are identical.
_MOST_COPIES = 5
# A row was measured when it has a value of its own in so large a share of the columns.
_MOSTLY = 0.75
# Rows that differ in so few columns are as good as identical: a category is two columns, or a value and its absence.
_FEW_COLUMNS = 2
# The lower tail of the reference is continued by a power law from this quantile on.
_TAIL = 0.05
_LEAST_TAIL_ROWS = 10


@dataclass(frozen=True)
class Rows:
    """Rows as points, with a key that is the same for identical rows and only for them.

    Parameters
    ----------
    Z : array of shape (n, d)
    columns : array of shape (n, c)
        What Z is a projection of, where there are very many columns; otherwise the same.
    keys : array of shape (n,)
    free : array of shape (n,)
        In how many columns a row has a value of its own, rather than one that many rows share, such as "none found".
    fine : array of shape (n,)
        In how many finely measured columns a row has a value that no different row of the training data has: rows
        that agree in two such columns do so because one is a copy.
    """

    Z: FloatArray
    columns: FloatArray
    keys: NDArray[np.uint64]
    free: IntArray
    fine: IntArray

    def __len__(self) -> int:
        return len(self.keys)

    def select(self, rows: NDArray[Any]) -> Rows:
        """The given rows (a mask or an index)."""
        return Rows(self.Z[rows], self.columns[rows], self.keys[rows], self.free[rows], self.fine[rows])


@dataclass(frozen=True)
class Comparison:
    """How near each of n rows lies to a pool.

    Parameters
    ----------
    ratios : array of shape (n,)
        r = d_1 / d_k. For rows that the pool also has, d_1 is the resolution of the measurements.
    copies : array of shape (n,)
        How many rows of the pool are identical with this one.
    nearest : array of shape (n,)
        Index, in the pool, of the nearest row (of a copy, where there is one).
    free : array of shape (n,)
        See `Rows`.
    near_misses : array of shape (n,)
        Whether one of the k neighbours differs from this row in a column or two.
    """

    ratios: FloatArray
    copies: IntArray
    nearest: IntArray
    free: IntArray
    near_misses: NDArray[np.bool_]


def as_points(X_train: NDArray[Any], X_held_out: NDArray[Any], transform: Transform | None) -> tuple[Rows, Rows]:
    """Put rows into a space where Euclidean distance means something.

    Columns of tables are centred and divided by their standard deviation in the training rows, or given to `transform`;
    missing values take the median. Images, and what `transform` returns, keep their scale.
    """
    shapes = [(len(X), int(np.prod(X.shape[1:]))) for X in (X_train, X_held_out)]
    common = np.result_type(X_train, X_held_out, np.float32)
    A, B = (X.reshape(shape).astype(common) for X, shape in zip((X_train, X_held_out), shapes, strict=True))
    keys = row_keys(A), row_keys(B)
    if transform is not None:
        A, B = transform(A), transform(B)
    A, B = A.astype(np.float64), B.astype(np.float64)
    observed = ~np.isnan(A).all(axis=0)
    A, B = A[:, observed], B[:, observed]
    missing = np.isnan(A), np.isnan(B)
    if np.isnan(A).any() or np.isnan(B).any():
        median = np.nanmedian(A, axis=0)
        A, B = np.where(np.isnan(A), median, A), np.where(np.isnan(B), median, B)
    varying = np.ptp(A, axis=0) > 0
    A, B = A[:, varying], B[:, varying]
    missing = missing[0][:, varying], missing[1][:, varying]
    scale = A.std(axis=0) if transform is None and X_train.ndim == 2 else 1.0
    A, B = (A - (centre := A.mean(axis=0))) / scale, (B - centre) / scale
    free = _free_columns(A, A), _free_columns(A, B)
    fine = tuple(own.sum(axis=1) for own in _own_values(A, B, keys[0], *missing))
    points = A, B
    if A.shape[1] > _MOST_COLUMNS:
        projection = GaussianRandomProjection(_PROJECTED_COLUMNS, random_state=0).fit(A)
        points = projection.transform(A), projection.transform(B)
    return Rows(points[0], A, keys[0], free[0], fine[0]), Rows(points[1], B, keys[1], free[1], fine[1])


def resolution(Z: FloatArray) -> float:
    """The distance that two identical rows may really have, because measurements are rounded.

    Zero when any column is measured so finely that values other than the commonest hardly ever repeat. Otherwise each
    rounded column with gap g adds g^2/6, the mean squared difference of two values within half a gap of the same
    number; when all columns are categories, half a difference in one of them is taken.
    """
    rounded, categories = [], []
    for column in Z.T:
        values, counts = np.unique(column, return_counts=True)
        gaps = np.diff(values)
        if len(values) <= _CATEGORIES:
            categories.append(gaps.min())
        elif (len(values) - 1) / (counts.sum() - counts.max()) > 0.9:
            return 0.0
        else:
            rounded.append(np.median(gaps))
    if rounded:
        return float(np.sqrt(np.square(rounded).sum() / 6))
    return float(min(categories) / np.sqrt(2)) if categories else 0.0


def compare(rows: Rows, pool: Rows, k: int, finest: float, *, from_pool: bool = False) -> Comparison | None:
    """Compare rows with a pool.

    Parameters
    ----------
    rows : Rows
        Whose nearness is wanted.
    pool : Rows
        To which.
    k : int
        The neighbour that is the yardstick, counted among different rows.
    finest : float
        The resolution, see `resolution`.
    from_pool : bool
        The rows are themselves in the pool, so that one identical row is the row itself.

    Returns
    -------
    Comparison, or None when the pool has too few different rows, or nothing by which they differ.
    """
    keys, first, counts = np.unique(pool.keys, return_index=True, return_counts=True)
    if len(keys) < k + 1 or not len(rows) or not pool.Z.shape[1]:
        return None
    place = np.minimum(np.searchsorted(keys, rows.keys), len(keys) - 1)
    there = keys[place] == rows.keys
    copies = np.where(there, counts[place], 0) - int(from_pool)
    distances, neighbours = NearestNeighbors(n_neighbors=k + 1).fit(pool.Z[first]).kneighbors(rows.Z)
    # Of the k + 1 neighbours one is left out: the identical row where there is one, else the farthest.
    left_out = neighbours == np.where(there, place, -1)[:, None]
    left_out[~left_out.any(axis=1), -1] = True
    shape = (len(rows), k)
    distances, neighbours = distances[~left_out].reshape(shape), neighbours[~left_out].reshape(shape)
    nearest, farthest = np.where(copies > 0, finest, distances[:, 0]), distances[:, -1]
    return Comparison(
        # Different rows may be the same point, such as those that differ only in what is missing: no evidence.
        ratios=np.divide(nearest, farthest, out=np.ones(len(rows)), where=farthest > 0),
        copies=copies,
        nearest=np.where(copies > 0, first[place], first[neighbours[:, 0]]),
        free=rows.free,
        near_misses=_near_misses(rows, pool, first[neighbours]),
    )


def tail_probability(found: Comparison, reference: Comparison, dimensions: int) -> FloatArray:
    """How often rows of the reference lie as near to their pool as each row found does to its own.

    Ratios are compared with those of reference rows without copies. Below their 5 % quantile t the share of smaller
    ratios is continued as a power, share(r) = share(t) (r/t)^D, with Hill's estimator of D at its lower 95 % limit
    and at most the number of dimensions. Rows that share all values but a few with many others lie in fewer dimensions,
    where near rows are commoner: for them, D is at most the number of those few, and where there are none, so that
    nothing was measured in a row, it is no evidence.

    A row with c copies is, besides, no rarer than reference rows with 1 to c copies are, itself counted among them as
    far as reference rows have near misses, that is, others that differ from them in a column or two: without any, rows
    do not repeat by nature. Copies in the reference are then double entries, and do not count against a row of rounded
    values, most of them its own.

    Returns
    -------
    array of shape (n,)
        One where the reference has too few rows to tell.
    """
    ratios = np.sort(reference.ratios[reference.copies == 0])
    n = len(ratios)
    tail_rows = max(_LEAST_TAIL_ROWS, int(_TAIL * n))
    if n < 2 * tail_rows:
        return np.ones(len(found.ratios))
    t = ratios[tail_rows]
    probability = np.searchsorted(ratios, found.ratios, side="right") / n
    below = found.ratios < t
    with np.errstate(divide="ignore"):
        mean_log = np.mean(np.log(t / ratios[:tail_rows])) if t > 0 else np.inf
    D = min(dimensions, 1 / mean_log) if mean_log > 0 else dimensions
    D *= 1 - 1.64 / np.sqrt(tail_rows)
    own = np.where(found.copies > 0, D, np.minimum(D, np.maximum(found.free, 1)))
    probability[below] = tail_rows / n * (found.ratios[below] / t) ** own[below]
    copies = np.sort(reference.copies)
    as_often = np.searchsorted(copies, found.copies, side="right") - np.searchsorted(copies, 1)
    plausible = np.minimum((as_often + 1) / (len(copies) + 1), reference.near_misses.mean())
    rounded = (found.ratios > 0) & (found.free >= _MOSTLY * dimensions) & (found.copies <= _MOST_COPIES)
    as_rare = np.where(rounded, plausible, np.maximum(plausible, as_often / len(copies)))
    probability = np.where(found.copies > 0, np.maximum(probability, as_rare), probability)
    return np.where(found.free == 0, 1.0, probability)


def _near_misses(rows: Rows, pool: Rows, neighbours: IntArray) -> NDArray[np.bool_]:
    found = np.zeros(len(rows), dtype=bool)
    for neighbour in neighbours.T:
        found |= (rows.columns != pool.columns[neighbour]).sum(axis=1) <= _FEW_COLUMNS
    return found


def _free_columns(A: FloatArray, B: FloatArray) -> IntArray:
    """For each row of B, the columns in which it has not the value that is commonest, and common, in A."""
    free = np.full(len(B), B.shape[1])
    for column, other in zip(A.T, B.T, strict=True):
        values, counts = np.unique(column, return_counts=True)
        commonest = counts.max()
        repeated = (len(column) - commonest) / max(len(values) - 1, 1)  # how often the other values occur
        if commonest >= _COMMON * len(column) and (len(values) > _CATEGORIES or repeated < 2):
            free -= other == values[counts.argmax()]
    return free


def _own_values(
    A: FloatArray, B: FloatArray, keys: NDArray[np.uint64], missing_A: NDArray[np.bool_], missing_B: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For the rows of A and of B, in which finely measured columns their value is that of one row of A and its copies.

    Whether a column is fine is seen among rows of A that are different, so that copies do not make it coarse. Columns
    that put the rows in the same order, such as a weight in two units, are one measurement.
    """
    own = np.zeros(A.shape, dtype=bool), np.zeros(B.shape, dtype=bool)
    _, first = np.unique(keys, return_index=True)
    orders = set()
    for j, column in enumerate(A.T):
        values, order, counts = np.unique(column[first], return_inverse=True, return_counts=True)
        if len(values) <= _CATEGORIES or len(values) - 1 <= _FINE * (len(first) - counts.max()):
            continue
        rising = (order if order[0] <= order[-1] else order.max() - order).tobytes()
        if rising in orders:
            continue
        orders.add(rising)
        rows_with = np.bincount(np.searchsorted(values, column))
        single = (counts == 1) & (rows_with <= _MOST_COPIES)
        for marks, points, missing in zip(own, (A, B), (missing_A, missing_B), strict=True):
            place = np.minimum(np.searchsorted(values, points[:, j]), len(values) - 1)
            marks[:, j] = single[place] & (values[place] == points[:, j]) & ~missing[:, j]
    return own


def row_keys(X: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row of a table, the same for identical rows and only for them."""
    # All NaN alike and no negative zero, so that equal rows have equal bytes.
    X = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0))
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in X)
    return np.frombuffer(digests, dtype=np.uint64)
