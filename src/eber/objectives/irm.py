"""Invariant risk minimisation (Arjovsky et al. 2019), in the form of IRMv1 with an unbiased penalty.

The penalty of environment e is the squared gradient of its risk R_e(w · logits) with respect to a scalar w at w = 1.
An unbiased estimate of the square multiplies two independent estimates of the gradient: one from the even and one
from the odd rows of the environment. For the cross-entropy that gradient is closed,

    d/dw R_e(w · logits) at w=1  =  mean_i sum_k (p_ik - 1[y_i = k]) logit_ik.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from eber.networks import Classifier
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_matrix


def irm_penalty(logits: Tensor, y: Tensor, e: Tensor) -> Tensor:
    """Mean over environments of the product of the two half-batch gradients.

    An environment with a single row in the batch has no odd half and enters neither the sum nor the count; a batch
    in which no environment has two rows has penalty zero.
    """
    mean = environment_matrix(e, logits.dtype, minimum=2)  # (E, B)
    if not len(mean):
        return logits.sum() * 0.0
    residual = torch.softmax(logits, 1) - F.one_hot(y, logits.shape[1])
    slope = (residual * logits).sum(1)  # (B,)
    member = (mean > 0).to(logits.dtype)
    odd = (member.cumsum(1) - 1) % 2 * member  # position of a row within its environment, modulo 2
    even = member - odd
    halves = [(half @ slope) / half.sum(1) for half in (even, odd)]
    return (halves[0] * halves[1]).mean()


class IRMObjective:
    """``mean_e R_e + weight · mean_e |grad_w R_e|^2`` over the environments present in the batch."""

    def __init__(self, schedule: PenaltySchedule) -> None:
        self.schedule = schedule

    def __call__(self, module: Classifier, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """See `Objective`."""
        _, logits = module(batch.x)
        risks = environment_matrix(batch.e, logits.dtype) @ F.cross_entropy(logits, batch.y, reduction="none")  # (E,)
        risk, penalty = risks.mean(), irm_penalty(logits, batch.y, batch.e)
        loss = risk + self.schedule.at(step) * penalty
        return LossTerms.from_tensor(loss, risk=risk, penalty=penalty)
