"""Inter-environmental gradient alignment (IGA; Koyama and Yamaguchi 2021).

    loss = mean_e R_e + weight · sum_e |grad R_e - mean_j grad R_j|^2,

the gradients with respect to all parameters, sum and mean over the environments present in the batch. The mean
gradient is not differentiated; it need not be, since sum_e (g_e - mean_j g_j) = 0 and its own contribution vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eber.nn.networks import classify, loss_gradients
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_risks


class IGAObjective:
    """``mean_e R_e + weight · sum_e |g_e - mean_e g_e|^2`` with g_e the gradient of R_e."""

    def __init__(self, schedule: PenaltySchedule, n_environments: int) -> None:
        self.schedule, self.n_environments = schedule, n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        somewhere = found.present.any(0)  # in the batch of one of the models at least
        gradients = loss_gradients(stack, found.risks[:, somewhere], differentiable=True)  # (m, S, P)
        mean = (gradients.sum(0) / found.present.sum(1, keepdim=True)).detach()
        here = found.present.T[somewhere][:, :, None]
        penalty = ((gradients - mean) * here).square().sum((0, 2))
        risk = found.mean
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
