"""From the networks' answers to predictions: p(y|x), p(y|x,e), E[z|x], the split of uncertainty.

Rows are worked through in chunks, so that memory is bounded whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor, nn

from eber.method.aggregates import Conditionals, Rule, parts_of, row_chunks
from eber.method.integration import Expansion, average_components
from eber.method.model import EBERNetworks
from eber.method.posteriors import GridPosterior, SuppliedPosteriors
from eber.nn.networks import ConditionalNetwork, Plans

MEAN_ELEMENTS = 1 << 20
"""Of x and of p(e|x) at once, where only the mean over rows is wanted."""
FEW = 8
"""Entries from which on numpy adds them pairwise."""
MEAN_ROWS = 1 << 20
"""Rows at most that such a mean is of."""
SMALLEST = np.finfo(np.float64).smallest_subnormal


def widest_layer(network: ConditionalNetwork, row: Tensor) -> int:
    """The most numbers that any layer of a network puts out for one row, (1, ...)."""
    layers = [layer for layer in (network.first, *network.layers, network.head) if layer is not None]
    sizes: list[int] = [row.numel(), *(layer.weight.shape[0] * math.prod(network.contexts) for layer in layers)]
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


def mean_p_e_given_x(module: EBERNetworks, x: Tensor, weight: Tensor | None = None) -> NDArray[np.float64]:
    """The mean of p(e|x) over n rows, (m,), in float64; only as many rows at a time are converted as are looked at.

    Of more than `MEAN_ROWS` rows so many are looked at, at even steps: a standard error of 0.0005 at most. With weights
    of the rows, (n,) of mean one, the weighted mean.
    """
    total, weights = np.zeros(module.n_environments), 0.0
    size = max(1, MEAN_ELEMENTS // max(module.n_environments, x[0].numel()))
    looked_at = evenly(len(x), MEAN_ROWS)
    with torch.no_grad():
        for part in (slice(start, start + size) for start in range(0, min(len(x), MEAN_ROWS), size)):
            rows = part if looked_at is None else looked_at[part]
            p = in_chunks(module.log_p_e_given_x, x[rows].double(), module.h).exp()  # (m, rows)
            own = torch.ones(p.shape[1], dtype=p.dtype) if weight is None else weight[rows]
            total += (p * own).sum(1).numpy()
            weights += float(own.sum())
    return total / weights


def evenly(n: int, limit: int) -> Tensor | None:
    """Numbers of `limit` rows at even steps among n, (limit,); None where n are no more."""
    if n <= limit:
        return None
    return torch.linspace(0, n - 1, limit, dtype=torch.float64).long()  # float32 does not count beyond 16 million


@dataclass(frozen=True)
class Prediction:
    """What the model says about n rows, for each of its m components of environments.

    Attributes
    ----------
    p_y_given_xe : (n, m, K)
        Predictive distribution within each training environment, the integral of p(y|z) over q(z;x,e).
    mean_z_given_xe : (n, m, L)
        E[z|x,e] under q(z;x,e).
    log_p_e_given_x : (n, m)
    """

    p_y_given_xe: NDArray[np.float64]
    mean_z_given_xe: NDArray[np.float64]
    log_p_e_given_x: NDArray[np.float64]

    @cached_property
    def p_e_given_x(self) -> NDArray[np.float64]:
        """p(e|x), (n, m)."""
        p: NDArray[np.float64] = np.exp(self.log_p_e_given_x)
        return p

    @cached_property
    def p_y_given_x(self) -> NDArray[np.float64]:
        """Equation (pred): the predictions of the environments averaged over p(e|x), (n, K)."""
        averaged: NDArray[np.float64] = np.einsum("nek,ne->nk", self.p_y_given_xe, self.p_e_given_x)
        averaged /= sum_over_last(averaged)[:, None]  # rounding may leave a sum of 1 + 2e-16
        return averaged

    @cached_property
    def mean_z(self) -> NDArray[np.float64]:
        """E[z|x] under q(z;x), (n, L)."""
        return mean_over_environments(self.mean_z_given_xe, self.p_e_given_x)

    def reweighted(self, log_ratio: NDArray[np.float64]) -> Prediction:
        """With p(e|x) multiplied by exp(log_ratio), (m,), and renormalised: q(z;x,e) is as it was."""
        return replace(self, log_p_e_given_x=special.log_softmax(self.log_p_e_given_x + log_ratio, axis=1))


def mean_over_environments(values: NDArray[np.float64], p_e_given_x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over p(e|x), (n, m): (n, m, L) -> (n, L)."""
    mean: NDArray[np.float64] = np.einsum("nel,ne->nl", values, p_e_given_x)
    return mean


def predict(
    module: EBERNetworks,
    x: Tensor,
    rule: Rule | Expansion | None,
    log_p_e_given_x: Tensor | None = None,
    posteriors: SuppliedPosteriors | None = None,
) -> Prediction:
    """Predict n rows.

    Parameters
    ----------
    x : (n, ...) float64
    rule : points (L, Q) and weights (Q,), an `Expansion`, or None for the closed form
    log_p_e_given_x : (m, n), optional
        Weights in place of h's.
    posteriors : callable, optional
        q(z;x,y,e) in place of g's.
    """
    n, K, m = len(x), module.n_classes, module.n_environments
    # The rows are the last axis in memory, as in all that is worked out: what is added over few entries are columns.
    p_y_given_xe, mean_z = np.empty((K, m, n)), np.empty((module.latent_dim, m, n))
    with torch.inference_mode():
        if log_p_e_given_x is None:
            log_p_e_given_x = in_chunks(module.log_p_e_given_x, x, module.h)
        # z is evaluated at so many points of a row at once.
        rules = parts_of(rule, K * m * max(K, module.latent_dim)) if isinstance(rule, tuple) else rule
        points = rules[0][1].numel() if isinstance(rules, list) else 1
        dtype = rules.half.dtype if isinstance(rules, Expansion) else x.dtype
        for rows, components in _in_components(module, x, log_p_e_given_x, posteriors, points, dtype):
            p_y_given_xe[..., rows] = components.p_y(rules).numpy()
            mean_z[..., rows] = components.mean_z().numpy()
    if dtype != x.dtype:
        p_y_given_xe /= sum_over_last(p_y_given_xe.T).T
    return Prediction(p_y_given_xe.T, mean_z.T, log_p_e_given_x.T.numpy())


def mean_latent(
    module: EBERNetworks, x: Tensor, log_p_e_given_x: Tensor, posteriors: SuppliedPosteriors | None = None
) -> NDArray[np.float64]:
    """E[z|x] under q(z;x) of n rows, (n, L), without predicting them; parameters as for `predict`."""
    means, p_e = np.empty((len(x), module.latent_dim)), np.exp(log_p_e_given_x.T.numpy())
    with torch.inference_mode():
        for rows, components in _in_components(module, x, log_p_e_given_x, posteriors):
            means[rows] = mean_over_environments(components.mean_z().numpy().T, p_e[rows])
    return means


@dataclass(frozen=True)
class _Gaussian:
    """Components that g gives."""

    module: EBERNetworks
    c: Conditionals

    @cached_property
    def _p_k(self) -> Tensor:
        return self.c.log_p_y_given_xe.exp().to(self.c.mu)  # (K, m, B)

    def p_y(self, rules: Sequence[Rule] | Expansion | None) -> Tensor:
        """E[p(y|z)] under q(z;x,e), (K, m, B)."""
        return average_components(self.module, self.c, self._p_k, rules)

    def mean_z(self) -> Tensor:
        """E[z|x,e], (L, m, B)."""
        return (self._p_k * self.c.mu).sum(1)


@dataclass(frozen=True)
class _OnGrid:
    """Components that are supplied on a grid, averaged over p(k|x,e), `p_k` (K, m, B); exact sums need no rule."""

    module: EBERNetworks
    grid: GridPosterior
    p_k: Tensor

    @cached_property
    def _z(self) -> Tensor:
        return torch.from_numpy(self.grid.z.T.copy())  # (L, Q)

    @cached_property
    def _q(self) -> Tensor:
        return torch.from_numpy(np.exp(self.grid.log_q))  # (B, K, m, W)

    def p_y(self, rules: Sequence[Rule] | Expansion | None) -> Tensor:
        """As `_Gaussian`'s."""
        p_y_given_z = self.module.log_p_y_given_z(self._z).exp()[:, torch.from_numpy(self.grid.index)]  # (K', m, W)
        return (self.p_k * torch.einsum("bkew,jew->jkeb", self._q, p_y_given_z)).sum(1)

    def mean_z(self) -> Tensor:
        """As `_Gaussian`'s."""
        z = self._z[:, torch.from_numpy(self.grid.index)]  # (L, m, W)
        return (self.p_k * torch.einsum("bkew,lew->lkeb", self._q, z)).sum(1)


def _in_components(
    module: EBERNetworks,
    x: Tensor,
    log_p_e_given_x: Tensor,
    posteriors: SuppliedPosteriors | None,
    points: int | None = None,
    dtype: torch.dtype | None = None,
) -> Iterator[tuple[slice, _Gaussian | _OnGrid]]:
    """The components of all rows, a chunk of rows at a time; z is to be evaluated at `points` of each, if at any.

    They are valid until the next chunk, and of the type `dtype`, else of that of x.
    """
    K, m, plans = module.n_classes, module.n_environments, Plans()
    widest = max(widest_layer(network, x[:1]) for network in (module.g, module.f0) if network is not None)
    values_of_z = K * m * points * max(K, module.latent_dim) if points else 1
    if posteriors is not None:  # z is evaluated at the nodes of every environment's window
        values_of_z = K * posteriors(x[:1].numpy()).index.size * max(K, module.latent_dim)
    for rows in row_chunks(len(x), max(widest, values_of_z)):
        if posteriors is None:
            yield rows, _Gaussian(module, module.conditionals(x[rows], log_p_e_given_x[:, rows], plans, dtype))
        else:
            p_k = module.log_p_y_given_xe(x[rows], plans).exp()
            yield rows, _OnGrid(module, posteriors(x[rows].numpy()), p_k)


def entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy in nats over the last axis, with 0 log 0 = 0."""
    products = np.maximum(p, SMALLEST)  # 0 log of anything finite is 0
    np.log(products, out=products)
    products *= p
    total: NDArray[np.float64] = -sum_over_last(products)
    return total


def sum_over_last(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the last axis; of few entries one after the other, as numpy adds them too, but ten times as slowly."""
    if not 0 < values.shape[-1] < FEW:
        long: NDArray[np.float64] = np.ascontiguousarray(values).sum(-1)  # pairwise, wherever they lie
        return long
    total = values[..., 0].copy()
    for j in range(1, values.shape[-1]):
        total += values[..., j]
    return total


def split_uncertainty(prediction: Prediction) -> dict[str, NDArray[np.float64]]:
    """Entropy of p(y|x) as the mean entropy within environments plus the mutual information of y and e given x.

    H[y|x] = sum_e p(e|x) H[y|x,e] + I(y; e|x), each (n,) in nats.
    """
    total = entropy(prediction.p_y_given_x)
    within = sum_over_last(prediction.p_e_given_x * entropy(prediction.p_y_given_xe))
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
