"""Empirical risk minimisation: the mean negative log-likelihood over all rows, environments ignored."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from eber.networks import Classifier
from eber.objectives.base import Batch, LossTerms


class ERMObjective:
    """``mean_i -log p(y_i | x_i)``."""

    def __call__(self, module: Classifier, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """See `Objective`."""
        _, logits = module(batch.x)
        loss = F.cross_entropy(logits, batch.y)
        return LossTerms.from_tensor(loss, risk=loss)
