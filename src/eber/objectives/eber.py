"""The EBER objective in its four readings. Read it with the paper's Theorem 1 beside it.

For a row (x, y) from environment e_i, every reading estimates the four terms of

    L(x,y) = likelihood - KL + posterior coupling - prior coupling

    likelihood          E[log p(y|z)]
    KL                  E[log q(z;x,y,e) - log q(z;x,e)]
    posterior coupling  E[log q(z;x,y,e) - log q(z;x,y)]
    prior coupling      E[log q(z;x,e)   - log q(z;x)]

with z from q(z;x,y,e). Summed as above, the terms telescope to log p(y|z) - log q(z;x,y) + log q(z;x), the integrand
of Equation (pq_elbo_single), at every single z. The readings differ in the weight each environment's z gets:

    stratified   p(e|x,y) in all terms: the expectation over q(z;x,y), exact in e
    algorithm    the observed environment in all terms: Algorithm 1 to the letter
    decomposed   the observed environment in L_e = likelihood - KL, p(e|x,y) in the posterior coupling, and z from
                 q(z;x,e) with weight p(e|x) in the prior coupling: Theorem 1
    collapsed    L_e of the observed environment alone: the paper's collapsed regime

The *tie*, tie_weight · L_e of the observed environment, binds the components to the environments they are named
after; without it the aggregated readings use the environment labels hardly at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from eber.method.distributions import gauss_hermite
from eber.method.model import EBERNetworks
from eber.method.theorem import prior_discrepancy, theorem_terms
from eber.objectives.base import Batch

READINGS = ("stratified", "algorithm", "decomposed", "collapsed")
TERMS = ("likelihood", "kl", "posterior_coupling", "prior_coupling", "environment_loss", "tie")


@dataclass(frozen=True)
class ExpectationRule:
    """How expectations over a Gaussian component are taken: reparametrised samples, or Gauss-Hermite quadrature."""

    latent_dim: int
    points: int = 1
    quadrature: bool = False

    def draw(self, shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Standard-normal points, (L, Q, *shape) or (L, Q) for quadrature, and their weights (Q,)."""
        if self.quadrature:
            points, weights = gauss_hermite(self.points, self.latent_dim)
            return points.to(like), weights.to(like)
        noise = torch.randn(self.latent_dim, self.points, *shape, generator=generator, dtype=like.dtype)
        return noise, torch.full((self.points,), 1 / self.points, dtype=like.dtype)


@dataclass(frozen=True)
class EBERObjective:
    """The negative of Equation (empirical) in one of its readings, plus lambda_env times the environment loss.

    Parameters
    ----------
    reading : one of READINGS
    rule : ExpectationRule
    env_loss_weight : float
        lambda_env.
    tie_weight : float
        Weight of the tie; the decomposed and collapsed readings contain L_e already and ignore it.
    """

    reading: str
    rule: ExpectationRule
    env_loss_weight: float = 1.0
    tie_weight: float = 0.0

    def terms(self, module: EBERNetworks, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        """See `ModelObjective`."""
        y, m = batch.y, module.n_environments
        log_h = module.log_p_e_given_x(batch.x)  # (m, B)
        c = module.conditionals(batch.x, log_h if batch.log_p_e_given_x is None else batch.log_p_e_given_x)
        points, weights = self.rule.draw((m, len(y)), c.mu, generator)
        t = theorem_terms(c, module, y, points, weights)

        observed, log_p_observed = module.components_of(batch.e, log_h)  # (m, B), (B,)
        p_e_given_xy = c.log_p_e_given_xy(y).exp()
        inner = p_e_given_xy if self.reading == "stratified" else observed
        coupled = observed if self.reading == "algorithm" else p_e_given_xy

        def average(weight: Tensor, values: Tensor) -> Tensor:
            return batch.mean((weight * values).sum(0))

        likelihood, kl = average(inner, t.likelihood), average(inner, t.kl)
        if self.reading == "collapsed":
            posterior_coupling = prior_coupling = torch.zeros_like(kl)
        else:
            posterior_coupling = average(coupled, t.posterior_coupling)
            if self.reading == "decomposed":
                everywhere, q = self.rule.draw((module.n_classes, m, len(y)), c.mu, generator)
                prior_coupling = average(c.log_p_e_given_x.exp(), prior_discrepancy(c, everywhere, q))
            else:
                prior_coupling = average(coupled, t.prior_coupling)
        tie = average(observed, t.likelihood - t.kl)
        environment_loss = -batch.mean(log_p_observed)

        loss = -(likelihood - kl + posterior_coupling - prior_coupling) + self.env_loss_weight * environment_loss
        if self.reading in ("stratified", "algorithm"):
            loss = loss - self.tie_weight * tie
        values = (likelihood, kl, posterior_coupling, prior_coupling, environment_loss, tie)
        return {"loss": loss, **dict(zip(TERMS, values, strict=True))}
