"""From the networks' answers to predictions: p(y|x), p(y|x,e), E[z|x], the split of uncertainty.

Rows are worked through in chunks, so that memory is bounded whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from eber.method.aggregates import Conditionals, Rule, parts_of, row_chunks
from eber.method.distributions import MAX_QUADRATURE_DIM, expected_sigmoid, gauss_hermite, standard_normal_draws
from eber.method.model import EBERNetworks
from eber.method.posteriors import GridPosterior, SuppliedPosteriors
from eber.nn.networks import ConditionalNetwork, Plans

QUADRATURE_NODES = {1: 32, 2: 16}
"""Nodes for each latent axis, by latent dimension."""
MONTE_CARLO_SAMPLES = 1000
"""From each component."""


def integration_rule(
    latent_dim: int, method: str, points: int | None, seed: int, *, samples: int = MONTE_CARLO_SAMPLES
) -> Rule:
    """Points (L, Q) and weights (Q,) for expectations over a standard normal.

    ``"auto"`` means Gauss-Hermite quadrature up to two latent dimensions (no sampling noise, the same answer every
    time) and Monte Carlo above. `points` counts nodes for each latent axis, or samples; without it there are `samples`.
    """
    if method == "quadrature" and latent_dim > MAX_QUADRATURE_DIM:
        raise ValueError(
            f"prediction='quadrature' needs latent_dim <= {MAX_QUADRATURE_DIM}, got {latent_dim}; use 'monte_carlo'."
        )
    if method == "quadrature" or (method == "auto" and latent_dim <= MAX_QUADRATURE_DIM):
        return gauss_hermite(points or QUADRATURE_NODES[latent_dim], latent_dim)
    generator = torch.Generator().manual_seed(seed)
    return standard_normal_draws(points or samples, latent_dim, generator)


def widest_layer(network: ConditionalNetwork, row: Tensor) -> int:
    """The most numbers that any layer of a network puts out for one row, (1, ...)."""
    layers = [layer for layer in (network.first, *network.layers, network.head) if layer is not None]
    sizes = [row.numel(), *(layer.weight.shape[0] * math.prod(network.contexts) for layer in layers)]
    if network.extractor is not None:
        # What an extractor does inside is its own affair: watch it at work on one row.
        def note(module: nn.Module, inputs: object, output: object) -> None:
            if isinstance(output, Tensor):
                sizes.append(output.numel())

        hooks = [module.register_forward_hook(note) for module in network.extractor.modules()]
        try:
            network.extractor(row)
        finally:
            for hook in hooks:
                hook.remove()
    return max(sizes)


def in_chunks(function: Callable[[Tensor], Tensor], x: Tensor, network: ConditionalNetwork) -> Tensor:
    """`function` of all rows, (..., n) with the batch last, worked out in chunks that the network's layers fit in."""
    return torch.cat([function(x[rows]) for rows in row_chunks(len(x), widest_layer(network, x[:1]))], -1)


def has_closed_form(module: EBERNetworks) -> bool:
    """Whether E[p(y|z)] under a Gaussian is known without nodes: two classes and a linear decoder."""
    return module.n_classes == 2 and len(module.f1) == 1


@dataclass(frozen=True)
class Prediction:
    """What the model says about n rows.

    Attributes
    ----------
    p_y_given_xe : (n, m, K)
        Predictive distribution within each training environment, the integral of p(y|z) over q(z;x,e).
    p_e_given_x : (n, m)
    mean_z : (n, L)
        E[z|x] under q(z;x).
    """

    p_y_given_xe: NDArray[np.float64]
    p_e_given_x: NDArray[np.float64]
    mean_z: NDArray[np.float64]

    @property
    def p_y_given_x(self) -> NDArray[np.float64]:
        """Equation (pred): the predictions of the environments averaged over p(e|x), (n, K)."""
        averaged: NDArray[np.float64] = np.einsum("nek,ne->nk", self.p_y_given_xe, self.p_e_given_x)
        return averaged / averaged.sum(1, keepdims=True)  # rounding may leave a sum of 1 + 2e-16


def predict(
    module: EBERNetworks,
    x: Tensor,
    rule: Rule | None,
    log_p_e_given_x: Tensor | None = None,
    posteriors: SuppliedPosteriors | None = None,
) -> Prediction:
    """Predict n rows.

    Parameters
    ----------
    x : (n, ...) float64
    rule : points (L, Q) and weights (Q,), or None for the closed form
    log_p_e_given_x : (m, n), optional
        Weights in place of h's.
    posteriors : callable, optional
        q(z;x,y,e) in place of g's.
    """
    n, K, m = len(x), module.n_classes, module.n_environments
    p_y_given_xe, p_e_given_x, mean_z = np.empty((n, m, K)), np.empty((n, m)), np.empty((n, module.latent_dim))
    with torch.inference_mode():
        if log_p_e_given_x is None:
            log_p_e_given_x = in_chunks(module.log_p_e_given_x, x, module.h)
        # z is evaluated at so many points of a row at once; of a grid, at the nodes of every environment's window.
        rules = [] if rule is None else parts_of(rule, K * m * max(K, module.latent_dim))
        if posteriors is not None:
            points = K * posteriors(x[:1].numpy()).index.size
        else:
            points = K * m * (rules[0][1].numel() if rules else 1)
        plans: Plans = {}
        for rows in row_chunks(n, max(_widest(module, x), points * max(K, module.latent_dim))):
            log_p_e = log_p_e_given_x[:, rows]
            if posteriors is None:
                c = module.conditionals(x[rows], log_p_e, plans)
                p_k, mean = c.log_p_y_given_xe.exp(), c.mu
                p_y = _average_components(module, c, p_k, rules)
            else:
                p_k = module.log_p_y_given_xe(x[rows], plans).exp()
                p_y, mean = _average_grid(module, posteriors(x[rows].numpy()), p_k)
            p_e = log_p_e.exp()  # (m, B)
            p_e_given_x[rows] = p_e.numpy().T
            p_y_given_xe[rows] = p_y.numpy().T
            mean_z[rows] = (p_k.mul_(p_e) * mean).sum((1, 2)).numpy().T
    return Prediction(p_y_given_xe, p_e_given_x, mean_z)


def mean_latent(
    module: EBERNetworks, x: Tensor, log_p_e_given_x: Tensor, posteriors: SuppliedPosteriors | None = None
) -> NDArray[np.float64]:
    """E[z|x] under q(z;x) of n rows, (n, L); parameters as for `predict`."""
    means, plans = np.empty((len(x), module.latent_dim)), Plans()
    with torch.inference_mode():
        points = module.n_classes * posteriors(x[:1].numpy()).index.size if posteriors else 1
        for rows in row_chunks(len(x), max(_widest(module, x), points)):
            if posteriors is None:
                c = module.conditionals(x[rows], log_p_e_given_x[:, rows], plans)
                p_k, mean = c.log_p_y_given_xe.exp(), c.mu
            else:
                p_k = module.log_p_y_given_xe(x[rows], plans).exp()
                _, mean = _average_grid(module, posteriors(x[rows].numpy()), p_k)
            means[rows] = (p_k.mul_(log_p_e_given_x[:, rows].exp()) * mean).sum((1, 2)).numpy().T
    return means


def _widest(module: EBERNetworks, x: Tensor) -> int:
    """The most numbers that any layer of g or f0 puts out for one row."""
    return max(widest_layer(network, x[:1]) for network in (module.g, module.f0) if network is not None)


def _average_components(module: EBERNetworks, c: Conditionals, p_k: Tensor, rules: Sequence[Rule]) -> Tensor:
    """E[p(y|z)] under q(z;x,e), the components q(z;x,k,e) averaged over p(k|x,e), `p_k` (K, m, B): (K', m, B).

    The integral is in closed form where `rules`, the parts of an integration rule, are none.
    """
    if not rules:
        # Two classes and a linear f1: the difference of the logits is Gaussian, whatever the latent dimension.
        decoder = module.f1[0]
        assert isinstance(decoder, nn.Linear)
        slope, offset = decoder.weight[1] - decoder.weight[0], decoder.bias[1] - decoder.bias[0]  # (L,), ()
        slope = slope[:, None, None, None]
        mean = (slope * c.mu).sum(0).add_(offset)
        variance = (slope * c.log_sigma.exp()).square_().sum(0)
        positive = (p_k * expected_sigmoid(mean, variance)).sum(0)  # (m, B)
        return torch.stack([1 - positive, positive])
    total = torch.zeros(())
    for points, weights in rules:
        p_y_given_z = module.log_p_y_given_z(c.component_points(points)).exp()  # (K', Q, K, m, B)
        total = total + torch.einsum("q,jqkeb->jkeb", weights, p_y_given_z)
    return (p_k * total).sum(1)


def _average_grid(module: EBERNetworks, grid: GridPosterior, p_k: Tensor) -> tuple[Tensor, Tensor]:
    """As `_average_components`, under posteriors supplied on a grid; and their means, (L, K, m, B)."""
    z = torch.from_numpy(grid.z.T.copy())  # (L, Q)
    q = torch.from_numpy(np.exp(grid.log_q))  # (B, K, m, W)
    index = torch.from_numpy(grid.index)  # (m, W)
    p_y_given_z = module.log_p_y_given_z(z).exp()[:, index]  # (K', m, W)
    p_y = (p_k * torch.einsum("bkew,jew->jkeb", q, p_y_given_z)).sum(1)
    return p_y, torch.einsum("bkew,lew->lkeb", q, z[:, index])


def entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy in nats over the last axis, with 0 log 0 = 0."""
    logs = np.log(np.where(p > 0, p, 1.0))
    total: NDArray[np.float64] = -(p * logs).sum(-1)
    return total


def split_uncertainty(prediction: Prediction) -> dict[str, NDArray[np.float64]]:
    """Entropy of p(y|x) as the mean entropy within environments plus the mutual information of y and e given x.

    H[y|x] = sum_e p(e|x) H[y|x,e] + I(y; e|x), each (n,) in nats.
    """
    total = entropy(prediction.p_y_given_x)
    within = (prediction.p_e_given_x * entropy(prediction.p_y_given_xe)).sum(1)
    # Both differ from an exact identity only by rounding; the information itself is never negative.
    return {"total": total, "within_environments": within, "between_environments": np.maximum(total - within, 0.0)}


def split_over_members(predictions: Sequence[Prediction]) -> dict[str, NDArray[np.float64]]:
    """The split for an average of M models, with what they disagree about as a part of its own; each (n,) in nats.

    H[y|x] = mean_j sum_e p_j(e|x) H_j[y|x,e] + mean_j I_j(y; e|x) + I(y; j|x), with j one of the models.
    """
    total = entropy(np.mean([prediction.p_y_given_x for prediction in predictions], 0))
    splits = [split_uncertainty(prediction) for prediction in predictions]
    within = np.mean([split["within_environments"] for split in splits], 0)
    between = np.mean([split["between_environments"] for split in splits], 0)
    return {
        "total": total,
        "within_environments": within,
        "between_environments": between,
        "between_members": np.maximum(total - within - between, 0.0),
    }
