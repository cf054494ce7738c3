"""Invariant risk minimisation (Arjovsky et al. 2019), in the form of IRMv1 with an unbiased penalty.

The penalty of environment e is the squared gradient of its risk R_e(w · logits) with respect to a scalar w at w = 1.
An unbiased estimate of the square multiplies two independent estimates of the gradient: one from the even and one
from the odd rows of the environment. For the cross-entropy that gradient is closed,

    d/dw R_e(w · logits) at w=1  =  mean_i sum_k (p_ik - 1[y_i = k]) logit_ik.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import (
    Batch,
    LossTerms,
    PenaltySchedule,
    environment_averages,
    environment_risks,
    mean_where,
)

LEAST_WEIGHT = 1e-30
"""Of half an environment in a batch: below it there is none, and what is divided by it is zero."""


def irm_penalty(logits: Tensor, batch: Batch, n_environments: int) -> Tensor:
    """Mean over environments of the product of the two half-batch gradients, (S,).

    An environment with a single row in the batch has no odd half and enters neither the sum nor the count; a batch
    in which no environment has two rows has penalty zero. A weighted row is in one half as a whole, since the halves
    have to be independent of each other.
    """
    average, counts = environment_averages(batch.e, n_environments, logits.dtype, batch.weight)
    residual = torch.softmax(logits, 2) - F.one_hot(batch.y, logits.shape[2])
    slope = (residual * logits).sum(2)[:, :, None]  # (S, B, 1)
    member = (average > 0).to(logits.dtype)  # (S, m, B)
    odd = (member.cumsum(2) - 1) % 2 * member  # position of a row within its environment, modulo 2
    even = member - odd
    halves, least = (even, odd), 1.0
    if batch.weight is not None:
        halves, least = (even * batch.weight[:, None], odd * batch.weight[:, None]), LEAST_WEIGHT
    first, second = (torch.bmm(half, slope)[:, :, 0] / half.sum(2).clamp(min=least) for half in halves)  # (S, m)
    return mean_where(first * second, (counts > 1).to(logits.dtype))


class IRMObjective:
    """``mean_e R_e + weight · mean_e |grad_w R_e|^2`` over the environments present in the batch."""

    def __init__(self, schedule: PenaltySchedule, n_environments: int) -> None:
        self.schedule, self.n_environments = schedule, n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        risk = environment_risks(logits, batch, self.n_environments).mean
        penalty = irm_penalty(logits, batch, self.n_environments)
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
