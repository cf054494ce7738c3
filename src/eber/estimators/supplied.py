"""What a user supplies in place of something learned: environment weights p(e|x) and posteriors q(z;x,y,e)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eber.method.posteriors import SUM_TOLERANCE, GridPosterior, SuppliedPosteriors

EnvironmentWeights = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Rows of X to p(e|x), (n, m)."""


def supplied_weights(weights: str | EnvironmentWeights, x: Tensor, n_environments: int) -> Tensor | None:
    """Log p(e|x), (m, n), float64, where weights are not learned; None where they are."""
    if weights == "learned":
        return None
    if weights == "uniform":
        return torch.full((n_environments, len(x)), -float(np.log(n_environments)), dtype=torch.float64)
    assert callable(weights)  # scikit-learn's validation has seen to it
    p = np.asarray(weights(x.double().numpy()), dtype=np.float64)
    if p.shape != (len(x), n_environments):
        raise ValueError(f"Supplied environment weights have shape {p.shape}, expected {(len(x), n_environments)}.")
    wrong = (p < 0).any(1) | ~np.isclose(p.sum(1), 1.0, atol=SUM_TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"Supplied environment weights are not a distribution at row {row}: {p[row]}.")
    # They are normalised; a weight of zero becomes one that no sum feels but whose logarithm is finite, in float32 too.
    return torch.log_softmax(torch.from_numpy(np.log(np.maximum(p, np.finfo(np.float32).tiny)).T.copy()), 0)


def checked_posteriors(
    posteriors: SuppliedPosteriors, n_classes: int, n_environments: int, latent_dim: int
) -> SuppliedPosteriors:
    """The supplied posteriors, refusing answers that do not fit the classes, the environments or the latent."""

    def checked(X: NDArray[np.float64]) -> GridPosterior:
        grid = posteriors(X)
        if not isinstance(grid, GridPosterior):
            raise TypeError(f"The posteriors callable must return a GridPosterior, got {type(grid).__name__}.")
        expected = (len(X), n_classes, n_environments)
        if grid.log_q.shape[:3] != expected:
            raise ValueError(
                f"Supplied posteriors have log_q of shape {grid.log_q.shape}, expected (rows, classes, environments, "
                f"window) = {(*expected, '...')}."
            )
        if grid.z.shape[1] != latent_dim:
            raise ValueError(
                f"Supplied posteriors have {grid.z.shape[1]} latent dimensions, but latent_dim is {latent_dim}."
            )
        return grid

    return checked
