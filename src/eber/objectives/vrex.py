"""Risk extrapolation by variance (V-REx; Krueger et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_risks, mean_where


class VRExObjective:
    """``mean_e R_e + weight · Var_e(R_e)``, the population variance over the environments present in the batch."""

    def __init__(self, schedule: PenaltySchedule, n_environments: int) -> None:
        self.schedule, self.n_environments = schedule, n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        risk = found.mean
        penalty = mean_where((found.risks - risk[:, None]).square(), found.present)
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
