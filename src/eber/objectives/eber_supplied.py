"""The EBER objective with posteriors q(z;x,y,e) that are supplied on a grid instead of learned.

Only f0, h and f1 are learned then, and all expectations are exact sums over grid nodes. The four terms are those of
`eber.py` in the stratified reading.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from eber.aggregates import at_label
from eber.model import EBERNetworks
from eber.objectives.base import Batch, LossTerms
from eber.objectives.eber import TERMS
from eber.posteriors import SuppliedPosteriors

LOG_ZERO = -700.0
"""Stands for log 0 at nodes outside a window; its exponential is the smallest normal float64, or zero."""


@dataclass(frozen=True)
class SuppliedEBERObjective:
    """The stratified bound at fixed posteriors, the tie, and the environment loss."""

    posteriors: SuppliedPosteriors
    env_loss_weight: float = 1.0
    tie_weight: float = 0.0

    def __call__(self, module: EBERNetworks, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """See `Objective`."""
        grid = self.posteriors(batch.x.double().numpy())
        like = batch.x
        z = torch.from_numpy(grid.z.T.copy()).to(like)  # (L, Q)
        index = torch.from_numpy(grid.index)  # (m, W)
        log_q = torch.from_numpy(grid.log_q).clamp_(min=LOG_ZERO).movedim(0, -1)  # (K, m, W, B)
        log_q_zxye = log_q.to(like)
        q_zxye = log_q_zxye.exp()
        y, (m, W), B = batch.y, index.shape, len(batch.y)

        log_h = module.log_p_e_given_x(batch.x)
        log_p_e = log_h if batch.log_p_e_given_x is None else batch.log_p_e_given_x  # (m, B)
        log_p_y = module.log_p_y_given_xe(batch.x)  # (K, m, B)
        p_e_given_xy = torch.softmax(at_label(log_p_y, y, 0) + log_p_e, 0)  # (m, B)
        log_lik = at_label(module.log_p_y_given_z(z)[:, index][..., None].expand(-1, -1, -1, B), y, 0)  # (m, W, B)

        q_label, log_q_label = at_label(q_zxye, y, 0), at_label(log_q_zxye, y, 0)  # (m, W, B)
        q_zxe = torch.einsum("keb,kewb->ewb", log_p_y.exp(), q_zxye)  # (m, W, B)
        tiny = torch.finfo(like.dtype).tiny

        def on_windows(weight: Tensor, q: Tensor) -> Tensor:
            """Log sum_e weight_e q_e on the whole grid, read back on every window: (m, B), (m, W, B) -> (m, W, B)."""
            mass = torch.zeros(z.shape[1], B, dtype=like.dtype)
            mass = mass.index_add(0, index.reshape(-1), (weight[:, None] * q).reshape(m * W, B))
            return mass.clamp(min=tiny).log()[index]

        log_q_zxe = q_zxe.clamp(min=tiny).log()
        log_q_zxy, log_q_zx = on_windows(p_e_given_xy, q_label), on_windows(log_p_e.exp(), q_zxe)

        def expect(integrand: Tensor) -> Tensor:
            return (q_label * integrand).sum(1)  # (m, B)

        likelihood, kl = expect(log_lik), expect(log_q_label - log_q_zxe)
        posterior_coupling, prior_coupling = expect(log_q_label - log_q_zxy), expect(log_q_zxe - log_q_zx)
        observed = F.one_hot(batch.e, m).T.to(like)

        def average(weight: Tensor, values: Tensor) -> Tensor:
            return (weight * values).sum(0).mean()

        stratified = (likelihood, kl, posterior_coupling, prior_coupling)
        terms = [average(p_e_given_xy, term) for term in stratified]
        environment_loss, tie = F.nll_loss(log_h.T, batch.e), average(observed, likelihood - kl)
        bound = terms[0] - terms[1] + terms[2] - terms[3]
        loss = -bound - self.tie_weight * tie + self.env_loss_weight * environment_loss
        values = (*terms, environment_loss, tie)
        return LossTerms.from_tensor(loss, **dict(zip(TERMS, values, strict=True)))
