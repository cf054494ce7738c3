"""Spectral decoupling (SD; Pezeshki et al. 2021): logits are kept small, environments ignored.

    loss = mean_i -log p(y_i | x_i) + weight · mean_ik logit_ik^2.

With cross-entropy alone, the feature that is learned first takes the gradient from all others (gradient starvation);
a penalty on the logits, in place of one on the weights, decouples the features' learning.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eber.nn.networks import classify, row_losses
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, PenaltySchedule


class SDObjective:
    """``mean_i -log p(y_i|x_i) + weight · mean_ik logit_ik^2`` over all rows and classes."""

    def __init__(self, schedule: PenaltySchedule) -> None:
        self.schedule = schedule

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        risk, squares = batch.mean(row_losses(logits, batch.y)), logits.square()
        penalty = squares.mean((1, 2)) if batch.weight is None else batch.mean(squares.mean(2))
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
