"""Fishr: invariant gradient variances (Rame et al. 2022).

For a linear classifier on the representation r, the gradient of row i's loss with respect to the classifier is
closed: (p_i - onehot y_i) outer r_i for the weights, p_i - onehot y_i for the bias. No per-sample backward pass is
needed, and the variance over an environment's rows is a second moment minus a squared first moment.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from eber.networks import Classifier
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_matrix


def gradient_variances(representation: Tensor, logits: Tensor, y: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Population variance of the classifier's per-row gradients within each environment.

    Returns
    -------
    environments : (E,) the environments with at least two rows in the batch
    variances : (E, K·R + K)
    """
    mean = environment_matrix(e, logits.dtype, minimum=2)
    present, counts = e.unique(return_counts=True)
    residual = torch.softmax(logits, 1) - F.one_hot(y, logits.shape[1])  # (B, K)
    gradients = torch.cat([(residual[:, :, None] * representation[:, None]).flatten(1), residual], 1)  # (B, K·R + K)
    first = mean @ gradients
    return present[counts >= 2], mean @ gradients.square() - first.square()


class FishrObjective:
    """``mean_i -log p(y_i|x_i) + weight · mean_e |v_e - mean_e v_e|^2 / size``, v_e smoothed over the steps.

    The smoothing is a discounted sum, w_t = v_t + ema · w_(t-1), with the past detached. An environment that is
    missing from a batch (or has one row, hence no variance) keeps its last sum; since its sum then holds fewer
    summands than the others', each sum is scaled to the discounted count of an environment that was always there.
    """

    def __init__(self, schedule: PenaltySchedule, ema: float = 0.95) -> None:
        self.schedule = schedule
        self.ema = ema
        self._sums: dict[int, Tensor] = {}
        self._counts: dict[int, float] = {}
        self._full_count = 0.0

    def __call__(self, module: Classifier, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """See `Objective`."""
        representation, logits = module(batch.x)
        risk = F.cross_entropy(logits, batch.y)
        penalty = self._penalty(*gradient_variances(representation, logits, batch.y, batch.e))
        loss = risk + self.schedule.at(step) * penalty
        return LossTerms.from_tensor(loss, risk=risk, penalty=penalty)

    def _penalty(self, environments: Tensor, variances: Tensor) -> Tensor:
        self._full_count = 1 + self.ema * self._full_count
        current: dict[int, Tensor] = dict(self._sums)
        for j, v in zip(environments.tolist(), variances, strict=True):
            self._counts[j] = 1 + self.ema * self._counts.get(j, 0.0)
            current[j] = v + self.ema * self._sums[j] if j in self._sums else v
            self._sums[j] = current[j].detach()
        if not current:
            return variances.sum()  # no environment has had two rows yet
        smoothed = torch.stack([current[j] * (self._full_count / self._counts[j]) for j in sorted(current)])
        return (smoothed - smoothed.mean(0)).square().mean()
