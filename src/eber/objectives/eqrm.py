"""Empirical quantile risk minimisation (EQRM; Eastwood et al. 2022).

The risk that a new environment stays below with probability alpha, for the distribution of risks over environments
that a Gaussian kernel density sees in the risks R_1 .. R_n of the environments present in the batch:

    loss = F^-1(alpha),   F(t) = mean_e Phi((t - R_e) / h),   h = 1.06 · std_e(R_e) · n^(-1/5)   (Gauss-optimal).

Where fewer than two environments are present, or all have one risk, h is zero and the quantile is that risk.

`gradient` says what is differentiated. F^-1(alpha) lies between lo = min_e R_e + h z and hi = max_e R_e + h z, with
z = Phi^-1(alpha). ``"bisection"`` is DomainBed's: the bisection's answer lo + w (hi - lo) with w held fixed, so that
only the best and the worst environment and h are moved. ``"exact"`` is that of F^-1(alpha) itself, by the implicit
function theorem: every environment is moved by its share of the density at the quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, environment_risks

GRADIENTS = ("bisection", "exact")
GAUSS_OPTIMAL = 1.06
LEAST_VARIANCE = 1e-24
"""Of the risks: below it they are equal for all that float32 knows."""
SECTIONS, ROUNDS = 64, 6
"""The quantile's bracket is cut into so many sections at once, so many times: it is found to 64^-6 = 1.5e-11 of it."""


def bandwidth(risks: Tensor, present: Tensor) -> Tensor:
    """h of the risks of the environments present, (S, m) and (S, m) -> (S, 1)."""
    n = present.sum(1, keepdim=True)
    mean = (risks * present).sum(1, keepdim=True) / n.clamp(min=1)
    variance = ((risks - mean) * present).square().sum(1, keepdim=True) / (n - 1).clamp(min=1)
    return GAUSS_OPTIMAL * variance.clamp(min=LEAST_VARIANCE).sqrt() * n.clamp(min=1) ** -0.2


def distribution(points: Tensor, risks: Tensor, present: Tensor, h: Tensor) -> Tensor:
    """F at points of each model, (S, G); risks and present (S, m), h (S, 1)."""
    share = present / present.sum(1, keepdim=True).clamp(min=1)
    values = torch.special.ndtr((points[:, None] - risks[:, :, None]) / h[:, :, None])  # (S, m, G)
    return torch.bmm(share[:, None], values)[:, 0]


def quantile_between(low: Tensor, high: Tensor, alpha: Tensor, risks: Tensor, present: Tensor, h: Tensor) -> Tensor:
    """F^-1(alpha), (S, 1), which lies between low and high, (S, 1)."""
    grid = torch.linspace(0, 1, SECTIONS + 1, dtype=risks.dtype)
    for _ in range(ROUNDS):
        points = low + (high - low) * grid  # (S, G)
        below = (distribution(points, risks, present, h) <= alpha).sum(1, keepdim=True)
        section = (below - 1).clamp(0, SECTIONS - 1)
        low, high = points.gather(1, section), points.gather(1, section + 1)
    return (low + high) / 2


def risk_quantile(risks: Tensor, present: Tensor, alpha: Tensor, gradient: str) -> Tensor:
    """The quantile of the kernel density of the risks, with the gradient that is asked for.

    Parameters
    ----------
    risks, present : (S, m) float64
    alpha : (S, 1), between 0 and 1

    Returns
    -------
    (S,)
    """
    h = bandwidth(risks, present)
    absent = present == 0
    shift = h * torch.special.ndtri(alpha)
    low = risks.masked_fill(absent, math.inf).amin(1, keepdim=True) + shift
    high = risks.masked_fill(absent, -math.inf).amax(1, keepdim=True) + shift
    with torch.no_grad():
        quantile = quantile_between(low, high, alpha, risks, present, h)
    if gradient == "bisection":
        weight: Tensor = ((quantile - low) / (high - low).clamp(min=math.sqrt(LEAST_VARIANCE))).detach()
        value: Tensor = low + weight * (high - low)
        return value[:, 0]
    u = (quantile - risks) / h
    density = (torch.exp(-u.square() / 2) * present).sum(1, keepdim=True) / math.sqrt(2 * math.pi) / h
    slope = (density / present.sum(1, keepdim=True)).detach()
    # A step of Newton's method from the root: its value is the root's, its gradient that of the implicit function.
    return (quantile - (distribution(quantile, risks, present, h) - alpha) / slope)[:, 0]


class EQRMObjective:
    """``F^-1(alpha)`` of the environments' risks; ``mean_e R_e`` before `burn_in` steps have been taken.

    Parameters
    ----------
    quantiles : alpha of each of the S models
    """

    def __init__(
        self, quantiles: Sequence[float], n_environments: int, burn_in: int = 0, gradient: str = "bisection"
    ) -> None:
        self.quantiles, self.n_environments = tuple(quantiles), n_environments
        self.burn_in, self.gradient = burn_in, gradient

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        loss = risk = found.mean
        if step >= self.burn_in:
            # In float64: a small bandwidth asks for small differences of risks.
            risks, present = found.risks.double(), found.present.double()
            alpha = risks.new_tensor(self.quantiles)[:, None]
            loss = risk_quantile(risks, present, alpha, self.gradient).to(risk.dtype)
        return LossTerms.from_tensors(stack, loss, risk=risk)
