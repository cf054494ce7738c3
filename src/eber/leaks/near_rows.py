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
_MAX_COLUMNS = 256
_PROJECTED_COLUMNS = 64
# The lower tail of the reference is continued by a power law from this quantile on.
_TAIL = 0.05
_MIN_TAIL_ROWS = 10


@dataclass(frozen=True)
class Rows:
    """Rows as points, with a key that is the same for rows that are identical in what varies in training.

    Parameters
    ----------
    Z : array of shape (n, d)
    columns : array of shape (n, c)
        The coordinates themselves, of which Z is a projection where they are very many; NaN where a value is missing.
    keys : array of shape (n,)
    """

    Z: FloatArray
    columns: FloatArray
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.keys)

    def select(self, rows: NDArray[Any]) -> Rows:
        """The given rows (a mask or an index)."""
        return Rows(self.Z[rows], self.columns[rows], self.keys[rows])


@dataclass(frozen=True)
class Nearness:
    """How near each of n rows lies to a pool.

    Parameters
    ----------
    ratios : array of shape (n,)
        r = d_1 / d_k; no identical row is among the neighbours.
    copies : array of shape (n,)
        How many rows of the pool are identical with this one.
    nearest : array of shape (n,)
        Index, in the pool, of the nearest row (of a copy, where there is one).
    differing : array of shape (n,)
        In how many columns this row and the nearest different one were both measured and differ.
    """

    ratios: FloatArray
    copies: IntArray
    nearest: IntArray
    differing: IntArray


def as_points(X_train: NDArray[Any], X_held_out: NDArray[Any], transform: Transform | None) -> tuple[Rows, Rows]:
    """Put rows into a space where Euclidean distance means something.

    Columns of tables are centred and divided by their standard deviation in the training rows, or given to `transform`;
    missing values take the median. Images, and what `transform` returns, keep their scale.
    """
    shapes = [(len(X), int(np.prod(X.shape[1:]))) for X in (X_train, X_held_out)]
    common = np.result_type(X_train, X_held_out, np.float32)
    A, B = (X.reshape(shape).astype(common) for X, shape in zip((X_train, X_held_out), shapes, strict=True))
    first = A[:1]
    constant = ((first == A) | (np.isnan(first) & np.isnan(A))).all(axis=0)
    keys = row_keys(A[:, ~constant]), row_keys(B[:, ~constant])
    if transform is not None:
        A, B = transform(A), transform(B)
    A, B = A.astype(np.float64), B.astype(np.float64)
    observed = ~np.isnan(A).all(axis=0)
    A, B = A[:, observed], B[:, observed]
    missing = np.isnan(A), np.isnan(B)
    if missing[0].any() or missing[1].any():
        median = np.nanmedian(A, axis=0)
        A, B = np.where(missing[0], median, A), np.where(missing[1], median, B)
    varying = np.ptp(A, axis=0) > 0
    A, B = A[:, varying], B[:, varying]
    missing = missing[0][:, varying], missing[1][:, varying]
    scale = A.std(axis=0) if transform is None and X_train.ndim == 2 else 1.0
    A, B = (A - (centre := A.mean(axis=0))) / scale, (B - centre) / scale
    points = A, B
    if A.shape[1] > _MAX_COLUMNS:
        projection = GaussianRandomProjection(_PROJECTED_COLUMNS, random_state=0).fit(A)
        points = projection.transform(A), projection.transform(B)
    columns = np.where(missing[0], np.nan, A), np.where(missing[1], np.nan, B)
    return Rows(points[0], columns[0], keys[0]), Rows(points[1], columns[1], keys[1])


def measure_nearness(rows: Rows, pool: Rows, k: int, *, from_pool: bool = False) -> Nearness | None:
    """Compare rows with a pool.

    Parameters
    ----------
    rows : Rows
        Whose nearness is wanted.
    pool : Rows
        To which.
    k : int
        The neighbour that is the yardstick, counted among different rows.
    from_pool : bool
        The rows are themselves in the pool, so that one identical row is the row itself.

    Returns
    -------
    Nearness, or None when the pool has too few different rows, or nothing by which they differ.
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
    nearest = first[neighbours[:, 0]]
    return Nearness(
        # Different rows may be the same point, such as those that differ only in what is missing: no evidence.
        ratios=np.divide(distances[:, 0], distances[:, -1], out=np.ones(len(rows)), where=distances[:, -1] > 0),
        copies=copies,
        nearest=np.where(copies > 0, first[place], nearest),
        differing=(np.abs(rows.columns - pool.columns[nearest]) > 0).sum(axis=1),
    )


def tail_probability(found: Nearness, reference: Nearness, dimensions: int) -> FloatArray:
    """How often rows of the reference lie as near to their pool as each row found does to its own.

    Ratios are compared with those of reference rows without copies. Below their 5 % quantile t the share of smaller
    ratios is continued as a power, share(r) = share(t) (r/t)^D, with Hill's estimator of D at its lower 95 % limit
    and at most the number of dimensions. Rows that agree in all columns but a few lie in fewer dimensions, where near
    rows are commoner: D is at most the number of columns in which a row and the one nearest to it differ.

    Returns
    -------
    array of shape (n,)
        One where the reference has too few rows to tell.
    """
    ratios = np.sort(reference.ratios[reference.copies == 0])
    n = len(ratios)
    tail_rows = max(_MIN_TAIL_ROWS, int(_TAIL * n))
    if n < 2 * tail_rows:
        return np.ones(len(found.ratios))
    t = ratios[tail_rows]
    probability = np.searchsorted(ratios, found.ratios, side="right") / n
    below = found.ratios < t
    with np.errstate(divide="ignore"):
        mean_log = np.mean(np.log(t / ratios[:tail_rows])) if t > 0 else np.inf
    D = min(dimensions, 1 / mean_log) if mean_log > 0 else dimensions
    D *= 1 - 1.64 / np.sqrt(tail_rows)
    probability[below] = tail_rows / n * (found.ratios[below] / t) ** np.minimum(D, found.differing[below])
    return probability


def row_keys(X: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row of a table, the same for identical rows and only for them."""
    # All NaN alike and no negative zero, so that equal rows have equal bytes.
    X = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0))
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in X)
    return np.frombuffer(digests, dtype=np.uint64)
