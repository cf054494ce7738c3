"""Diagonal Gaussians and the rules that integrate against them. Pure tensors in, pure tensors out.

Inside the library the batch is the last axis and the latent coordinates are the first, so that sums over latent
coordinates, classes and environments run over outer axes: ``(L, ..., B)``.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)

MAX_QUADRATURE_DIM = 2
"""Above this latent dimension a product rule costs more than sampling."""
MAX_QUADRATURE_NODES = 200
"""For each latent axis: beyond it the weights of the outer nodes underflow, and there is nothing left to gain."""


def log_normal(z: Tensor, mu: Tensor, log_sigma: Tensor) -> Tensor:
    """Log-density of N(mu, diag(sigma^2)) at z, summed over the leading latent axis.

    The residual is divided by sigma before it is squared: expanding the square into natural parameters loses
    float32 accuracy when sigma is small.
    """
    u = (z - mu) * torch.exp(-log_sigma)
    return (-0.5 * u.square() - log_sigma).sum(0) - 0.5 * z.shape[0] * LOG_2PI


def soft_bound(value: Tensor, bound: Tensor | None) -> Tensor:
    """``bound * tanh(value / bound)``: the identity near zero, never beyond the bound; None leaves the value alone."""
    return value if bound is None else bound * torch.tanh(value / bound)


def gauss_hermite(nodes: int, latent_dim: int) -> tuple[Tensor, Tensor]:
    """Product Gauss-Hermite rule for expectations under a standard normal in `latent_dim` dimensions.

    Returns
    -------
    points : (L, Q) tensor, float64, with Q = nodes ** latent_dim
    weights : (Q,) tensor, float64, summing to one
    """
    if nodes > MAX_QUADRATURE_NODES:
        raise ValueError(
            f"{nodes} quadrature nodes for each latent axis are too many: give at most {MAX_QUADRATURE_NODES}, or ask "
            f"for {nodes} samples (prediction='monte_carlo')."
        )
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    grids = np.meshgrid(*[x] * latent_dim, indexing="ij")
    products = np.meshgrid(*[w] * latent_dim, indexing="ij")
    points = np.stack([grid.ravel() for grid in grids])
    weights = np.prod(np.stack([product.ravel() for product in products]), axis=0)
    return torch.from_numpy(points), torch.from_numpy(weights)


def standard_normal_draws(
    samples: int, latent_dim: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Monte Carlo in the form of `gauss_hermite`: (L, Q) independent draws and Q equal weights."""
    points = torch.randn(latent_dim, samples, generator=generator, dtype=dtype)
    return points, torch.full((samples,), 1 / samples, dtype=dtype)


# sigmoid(t) is within 3.1e-9 of sum_i PROBIT_WEIGHTS[i] · Phi(PROBIT_SLOPES[i] · t) for all t: the mixture of probits
# of Monahan & Stefanski (1989), with eight terms fitted for the least largest error on [0, 40].
PROBIT_WEIGHTS = (
    0.001241791626943994,
    0.02380811691831888,
    0.11847996900306008,
    0.264569044292496,
    0.32185905493756317,
    0.20868546018065792,
    0.05757305845172672,
    0.0037835045892331788,
)
PROBIT_SLOPES = (
    0.23635312253008753,
    0.3041721034617145,
    0.3884535736677795,
    0.49758698260070117,
    0.6384016158829585,
    0.8176079650978062,
    1.04624876843629,
    1.3526351922051532,
)


def expected_sigmoid(mean: Tensor, variance: Tensor) -> Tensor:
    """E[sigmoid(t)] for t ~ N(mean, variance), to 4e-9 at any steepness and without nodes.

    A probit of a Gaussian is a probit, E[Phi(s t)] = Phi(s mean / sqrt(1 + s^2 variance)), and the weights of the
    mixture sum to one, so that with Phi(a) = (1 + erf(a / sqrt(2))) / 2 only erf is left to sum.
    """
    slopes, weights = (mean.new_tensor(values) for values in (PROBIT_SLOPES, PROBIT_WEIGHTS))  # (8,)
    a = (2 * variance)[..., None, :] + 2 / slopes[:, None].square()  # (..., 8, B)
    a.rsqrt_().mul_(mean[..., None, :]).erf_()
    return (0.5 * weights @ a).add_(0.5).clamp_(0.0, 1.0)  # the weights sum to one only up to rounding
