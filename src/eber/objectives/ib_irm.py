"""Information bottleneck with invariant risk minimisation (IB-IRM; Ahuja et al. 2021).

    loss = mean_e R_e + weight · mean_e |grad_w R_e|^2 + bottleneck weight · mean_e mean_k Var_e(feature_k),

the first penalty as in `irm`, the second as in `ib_erm`. Invariance alone does not identify the features that hold in
new environments where labels are fully informed by them; with the bottleneck it does, under the paper's conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_risks
from eber.objectives.ib_erm import bottleneck_penalty
from eber.objectives.irm import irm_penalty


class IBIRMObjective:
    """``mean_e R_e + weight · mean_e |grad_w R_e|^2 + bottleneck weight · mean_e mean_k Var_e(feature_k)``."""

    def __init__(self, schedule: PenaltySchedule, bottleneck: PenaltySchedule, n_environments: int) -> None:
        self.schedule, self.bottleneck, self.n_environments = schedule, bottleneck, n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        representation, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        risk = found.mean
        penalty = irm_penalty(logits, batch, self.n_environments)
        bottleneck = bottleneck_penalty(representation, found.average, found.counts, batch.e)
        loss = risk + self.schedule.at(step, risk) * penalty + self.bottleneck.at(step, risk) * bottleneck
        return LossTerms.from_tensors(stack, loss, risk=risk, penalty=penalty, bottleneck=bottleneck)
