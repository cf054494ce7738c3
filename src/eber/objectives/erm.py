"""Empirical risk minimisation: the mean negative log-likelihood over all rows, environments ignored."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from eber.nn.networks import classify, row_losses
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms


class ERMObjective:
    """``mean_i -log p(y_i | x_i)``."""

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        loss = batch.mean(row_losses(logits, batch.y))
        return LossTerms.from_tensors(stack, loss, risk=loss)
