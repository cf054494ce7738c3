"""Information bottleneck with empirical risk minimisation (IB-ERM; Ahuja et al. 2021).

Among the features that predict, those with the least entropy; their variance stands for it:

    loss = mean_e R_e + weight · mean_e mean_k Var_e(feature_k),

the variance over the rows of environment e, with Bessel's correction n - 1. An environment with a single row in the
batch has no variance and enters neither the sum nor the count of the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import (
    Batch,
    LossTerms,
    PenaltySchedule,
    centred_within,
    degrees_of_freedom,
    environment_risks,
    mean_where,
)


def bottleneck_penalty(representation: Tensor, average: Tensor, counts: Tensor, e: Tensor) -> Tensor:
    """Mean over environments and features of the features' variance, (S,); zero where no environment has two rows."""
    _, centred = centred_within(representation, average, e)
    squares = torch.bmm(average, centred.square().mean(2, keepdim=True))[:, :, 0]  # (S, m)
    variances = squares * counts / degrees_of_freedom(counts)
    return mean_where(variances, (counts > 1).to(representation.dtype))


class IBERMObjective:
    """``mean_e R_e + weight · mean_e mean_k Var_e(feature_k)``."""

    def __init__(self, schedule: PenaltySchedule, n_environments: int) -> None:
        self.schedule, self.n_environments = schedule, n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        representation, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        risk, penalty = found.mean, bottleneck_penalty(representation, found.average, found.counts, batch.e)
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
