"""Posteriors of z that are supplied rather than learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

SUM_TOLERANCE = 1e-4
"""What is supplied as a distribution may miss a sum of one by so much, as float32 does."""


@dataclass(frozen=True)
class GridPosterior:
    """Posteriors q(z; x, y, e) supplied on a grid instead of learned: environment e has mass only on nodes index[e].

    Each environment has its own window of the grid, so that its posterior is normalised where it lives: far from it the
    likelihood p(x|z) may be smaller by hundreds of nats, and a normalisation over the whole grid would underflow.

    Parameters
    ----------
    z : array of shape (Q, L)
        Grid nodes, shared by all environments.
    index : array of shape (m, W), int64
        The nodes of each environment's window; W is the same for all.
    log_q : array of shape (n, K, m, W)
        Log-probability of each node in the window; the log-sum-exp over the window is 0.
    """

    z: NDArray[np.float64]
    index: NDArray[np.int64]
    log_q: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.z.ndim != 2 or self.index.ndim != 2 or self.log_q.ndim != 4:
            raise ValueError(
                "A grid posterior needs z of shape (Q, L), index of shape (m, W) and log_q of shape (n, K, m, W), "
                f"but the shapes are {self.z.shape}, {self.index.shape} and {self.log_q.shape}."
            )
        if self.log_q.shape[2:] != self.index.shape:
            raise ValueError(
                f"log_q ends in {self.log_q.shape[2:]} (environments, window), but index has shape {self.index.shape}."
            )
        if self.index.min() < 0 or self.index.max() >= len(self.z):
            raise ValueError(
                f"index names nodes {self.index.min()} to {self.index.max()}, "
                f"but the grid has nodes 0 to {len(self.z) - 1}."
            )
        if not np.isfinite(self.z).all():
            raise ValueError("The nodes z of a grid posterior hold NaN or infinity.")
        with np.errstate(under="ignore"):
            missed = np.abs(special.logsumexp(self.log_q, axis=3))  # NaN where log_q is
        if not (missed < SUM_TOLERANCE).all():
            n, k, e = (int(i) for i in np.argwhere(~(missed < SUM_TOLERANCE))[0])
            raise ValueError(
                f"log_q of row {n}, class {k}, environment {e} is no distribution over its window: the log-sum-exp "
                f"must be 0, and it is off by {missed[n, k, e]:.3g}."
            )


SuppliedPosteriors = Callable[[NDArray[np.float64]], GridPosterior]
"""Rows of X to the posteriors of every label and environment."""
