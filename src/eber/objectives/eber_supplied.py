"""The EBER objective with posteriors q(z;x,y,e) that are supplied on a grid instead of learned.

Only f0, h and f1 are learned then, and all expectations are exact sums over grid nodes. The four terms are those of
`eber.py` in the stratified reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from eber.method.aggregates import at_label
from eber.method.model import EBERNetworks
from eber.method.posteriors import SuppliedPosteriors
from eber.objectives.base import Batch
from eber.objectives.eber import TERMS

LOG_ZERO = -80.0
"""Stands for log 0: its exponential is nothing beside one in float32, and not yet so small as to be slow."""


@dataclass(frozen=True)
class SuppliedEBERObjective:
    """The stratified bound at fixed posteriors, the tie, and the environment loss."""

    posteriors: SuppliedPosteriors
    env_loss_weight: float = 1.0
    tie_weight: float = 0.0

    def terms(self, module: EBERNetworks, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        """See `ModelObjective`."""
        # Batch first here, as the grid comes: windows of nodes are the long axis, and they stay contiguous.
        grid = self.posteriors(batch.x.double().numpy())
        like, y, rows = batch.x, batch.y, torch.arange(len(batch.y))
        z = torch.from_numpy(grid.z.T.copy()).to(like)  # (L, Q)
        index = torch.from_numpy(grid.index)  # (m, W)
        log_q_zxye = torch.from_numpy(grid.log_q).to(like).clamp_(min=LOG_ZERO)  # (B, K, m, W)
        q_zxye = log_q_zxye.exp()

        log_h = module.log_p_e_given_x(batch.x)  # (m, B)
        log_p_e = log_h if batch.log_p_e_given_x is None else batch.log_p_e_given_x
        log_p_y = module.log_p_y_given_xe(batch.x)  # (K, m, B)
        p_e_given_xy = torch.softmax(at_label(log_p_y, y, 0) + log_p_e, 0).T  # (B, m)
        log_p_y_given_z = module.log_p_y_given_z(z)[:, index][y]  # (B, m, W)

        q_label, log_q_label = q_zxye[rows, y], log_q_zxye[rows, y]  # (B, m, W)
        q_zxe = (log_p_y.exp().permute(2, 0, 1)[..., None] * q_zxye).sum(1)  # (B, m, W)
        floor = math.exp(LOG_ZERO)

        def on_windows(weight: Tensor, q: Tensor) -> Tensor:
            """log sum_e weight_e q_e on the whole grid, read back on every window: (B, m), (B, m, W) -> (B, m, W)."""
            mass = torch.zeros(len(y), z.shape[1], dtype=like.dtype)
            mass = mass.index_add(1, index.flatten(), (weight[..., None] * q).flatten(1))
            return mass.clamp(min=floor).log()[:, index]

        log_q_zxe = q_zxe.clamp(min=floor).log()
        log_q_zxy, log_q_zx = on_windows(p_e_given_xy, q_label), on_windows(log_p_e.exp().T, q_zxe)

        def expect(integrand: Tensor) -> Tensor:
            return (q_label * integrand).sum(2)  # (B, m)

        likelihood, kl = expect(log_p_y_given_z), expect(log_q_label - log_q_zxe)
        posterior_coupling, prior_coupling = expect(log_q_label - log_q_zxy), expect(log_q_zxe - log_q_zx)
        observed = F.one_hot(batch.e, module.n_environments).to(like)

        def average(weight: Tensor, values: Tensor) -> Tensor:
            return batch.mean((weight * values).sum(1))

        stratified = (likelihood, kl, posterior_coupling, prior_coupling)
        terms = [average(p_e_given_xy, term) for term in stratified]
        if batch.weight is None:
            environment_loss = F.nll_loss(log_h.T, batch.e)
        else:
            environment_loss = batch.mean(F.nll_loss(log_h.T, batch.e, reduction="none"))
        tie = average(observed, likelihood - kl)
        bound = terms[0] - terms[1] + terms[2] - terms[3]
        loss = -bound - self.tie_weight * tie + self.env_loss_weight * environment_loss
        values = (*terms, environment_loss, tie)
        return {"loss": loss, **dict(zip(TERMS, values, strict=True))}
