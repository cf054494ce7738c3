"""The paper's conditionals and the aggregates built from them.

m training environments, K classes, latent dimension L, batch B, and Q evaluation points of z for each row. The batch
is the last axis throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from eber.method.distributions import log_normal

CHUNK_ELEMENTS = 1 << 19
"""Largest number of float64 elements (4 MiB) in an array that grows with the number of rows: memory is bounded, and
what one operation writes is still in the cache when the next one reads it."""


Rule = tuple[Tensor, Tensor]
"""An integration rule: points (L, Q) and weights (Q,) for expectations over a standard normal."""


def parts_of(rule: Rule, elements_per_point: int) -> list[Rule]:
    """The rule in parts whose arrays, for a single row, stay below CHUNK_ELEMENTS; what they give adds up."""
    size = max(1, CHUNK_ELEMENTS // elements_per_point)
    return list(zip(rule[0].split(size, 1), rule[1].split(size), strict=True))


def at_label(values: Tensor, y: Tensor, axis: int) -> Tensor:
    """Entry of the class axis that each row's label picks: (..., K, ..., B) -> (..., ..., B)."""
    shape = values.shape
    return values.gather(axis, y.expand(*shape[:axis], 1, *shape[axis + 1 :])).squeeze(axis)


@dataclass(frozen=True)
class Conditionals:
    """What the four networks say about a batch of rows, and the distributions which follow from it.

    Attributes
    ----------
    mu, log_sigma : (L, K, m, B)
        The components q(z; x, y, e) = N(mu, diag(sigma^2)), Equation (variational-family).
    log_p_y_given_xe : (K, m, B)
        f0, log p(y|x,e).
    log_p_e_given_x : (m, B)
        h, log p(e|x), or weights supplied in its place.
    """

    mu: Tensor
    log_sigma: Tensor
    log_p_y_given_xe: Tensor
    log_p_e_given_x: Tensor

    @cached_property
    def log_w(self) -> Tensor:
        """Log p(y,e|x) = log p(e|x) + log p(y|x,e), (K, m, B): sums to one over y and e together."""
        return self.log_p_y_given_xe + self.log_p_e_given_x

    @cached_property
    def log_p_y_given_x(self) -> Tensor:
        """Log sum_e p(y,e|x), (K, B)."""
        return torch.logsumexp(self.log_w, 1)

    def log_p_e_given_xy(self, y: Tensor) -> Tensor:
        """Bayes' rule, log p(e|x,y) with p(e|x,y) ∝ p(y|x,e) p(e|x), (m, B)."""
        return torch.log_softmax(at_label(self.log_w, y, 0), 0)

    def log_q_zxye(self, z: Tensor) -> Tensor:
        """Log q(z; x, k, e) of every component at every point: (L, Q, B) -> (Q, K, m, B)."""
        return log_normal(z[:, :, None, None], self.mu[:, None], self.log_sigma[:, None])

    def log_q_zxe(self, log_q_zxye: Tensor) -> Tensor:
        """Log q(z; x, e), Equation (env_var): components averaged over p(y|x,e). (Q, K, m, B) -> (Q, m, B)."""
        return torch.logsumexp(self.log_p_y_given_xe + log_q_zxye, 1)

    def log_q_zxy(self, log_q_zxye: Tensor, y: Tensor) -> Tensor:
        """Log q(z; x, y), Equation (posterior): components averaged over p(e|x,y). (Q, K, m, B) -> (Q, B)."""
        return torch.logsumexp(self.log_p_e_given_xy(y) + at_label(log_q_zxye, y, 1), 1)

    def log_q_zx(self, log_q_zxye: Tensor) -> Tensor:
        """Log q(z; x), Equation (prior): all components averaged over p(y,e|x). (Q, K, m, B) -> (Q, B)."""
        return torch.logsumexp(self.log_w + log_q_zxye, (1, 2))

    def component_points(self, points: Tensor) -> Tensor:
        """Standard-normal points moved into every component: (L, Q) or (L, Q, K, m, B) -> (L, Q, K, m, B)."""
        if points.dim() == 2:
            points = points[:, :, None, None, None]
        return self.mu[:, None] + torch.exp(self.log_sigma)[:, None] * points

    def posterior_points(self, y: Tensor, points: Tensor) -> Tensor:
        """Points moved into q(z; x, y, e) of every environment, y observed: (L, Q) or (L, Q, m, B) -> (L, Q, m, B)."""
        if points.dim() == 2:
            points = points[:, :, None, None]
        mu, log_sigma = at_label(self.mu, y, 1), at_label(self.log_sigma, y, 1)
        return mu[:, None] + torch.exp(log_sigma)[:, None] * points


def row_chunks(n_rows: int, elements_per_row: int) -> Iterator[slice]:
    """Slices of rows whose arrays stay below CHUNK_ELEMENTS."""
    size = max(1, CHUNK_ELEMENTS // max(1, elements_per_row))
    for start in range(0, n_rows, size):
        yield slice(start, min(n_rows, start + size))
