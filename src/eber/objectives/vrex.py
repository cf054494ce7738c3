"""Risk extrapolation by variance (V-REx; Krueger et al. 2021)."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from eber.networks import Classifier
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_matrix


class VRExObjective:
    """``mean_e R_e + weight · Var_e(R_e)``, the population variance over the environments present in the batch."""

    def __init__(self, schedule: PenaltySchedule) -> None:
        self.schedule = schedule

    def __call__(self, module: Classifier, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """See `Objective`."""
        _, logits = module(batch.x)
        risks = environment_matrix(batch.e, logits.dtype) @ F.cross_entropy(logits, batch.y, reduction="none")  # (E,)
        risk, penalty = risks.mean(), risks.var(correction=0)
        loss = risk + self.schedule.at(step) * penalty
        return LossTerms.from_tensor(loss, risk=risk, penalty=penalty)
