"""Fishr: invariant gradient variances (Rame et al. 2022).

For a linear classifier on the representation r, the gradient of row i's loss with respect to the classifier is
closed: (p_i - onehot y_i) outer r_i for the weights, p_i - onehot y_i for the bias. No per-sample backward pass is
needed, and the variance over an environment's rows is a second moment minus a squared first moment.

Variances are smoothed over the steps, with the past detached. The paper's average is exponential,
w_t = ema · w_(t-1) + (1 - ema) · v_t; DomainBed divides it by 1 - ema, so that the gradient does not depend on ema:
a discounted sum, w_t = v_t + ema · w_(t-1). The latter is the default here, since penalty weights in the literature
belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from eber.nn.networks import classify, row_losses
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_averages

AVERAGES = ("discounted_sum", "exponential")


def gradient_variances(
    representation: Tensor, logits: Tensor, batch: Batch, n_environments: int
) -> tuple[Tensor, Tensor]:
    """Population variance of the classifier's per-row gradients within each environment.

    Returns
    -------
    present : (S, m), one for the environments with at least two rows in the batch, zero for the others
    variances : (S, m, K·R + K), meaningless where an environment is not present
    """
    average, counts = environment_averages(batch.e, n_environments, logits.dtype, batch.weight)
    residual = torch.softmax(logits, 2) - F.one_hot(batch.y, logits.shape[2])  # (S, B, K)
    outer = residual[:, :, :, None] * representation[:, :, None]  # (S, B, K, R)
    gradients = torch.cat([outer.flatten(2), residual], 2)  # (S, B, K·R + K)
    first = torch.bmm(average, gradients)
    return (counts > 1).to(logits.dtype), torch.bmm(average, gradients.square()) - first.square()


class FishrObjective:
    """``mean_i -log p(y_i|x_i) + weight · mean_e |v_e - mean_e v_e|^2 / size``, v_e smoothed over the steps.

    An environment that is missing from a batch (or has one row, hence no variance) keeps its last sum; since its sum
    then holds fewer summands than the others', each sum is scaled to the discounted count of an environment that was
    always there.
    """

    def __init__(
        self,
        schedule: PenaltySchedule,
        n_environments: int,
        ema: float = 0.95,
        moving_average: str = "discounted_sum",
    ) -> None:
        self.schedule, self.n_environments, self.ema = schedule, n_environments, ema
        self._of_sum = 1.0 if moving_average == "discounted_sum" else 1 - ema
        self._sums: Tensor | None = None  # (S, m, K·R + K)
        self._counts: Tensor | None = None  # (S, m), discounted
        self._full_count = 0.0

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        representation, logits = classify(stack, batch.x)
        risk = batch.mean(row_losses(logits, batch.y))
        penalty = self.penalty(*gradient_variances(representation, logits, batch, self.n_environments))
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)

    def penalty(self, present: Tensor, variances: Tensor) -> Tensor:
        """Mean squared distance of the smoothed variances from their mean over environments, (S,)."""
        if self._sums is None or self._counts is None:
            self._sums, self._counts = torch.zeros_like(variances), torch.zeros_like(present)
        self._full_count = 1 + self.ema * self._full_count
        here = present[:, :, None]
        sums = here * (variances + self.ema * self._sums) + (1 - here) * self._sums
        self._counts = present * (1 + self.ema * self._counts) + (1 - present) * self._counts
        self._sums = sums.detach()
        seen = (self._counts > 0).to(variances.dtype)[:, :, None]  # environments that have had two rows by now
        scale = torch.where(self._counts > 0, self._of_sum * self._full_count / self._counts, 0.0)
        smoothed = sums * scale[:, :, None]  # zero for the others
        n_seen = seen.sum(1, keepdim=True).clamp(min=1)
        centred = (smoothed - smoothed.sum(1, keepdim=True) / n_seen) * seen
        return centred.square().mean(2).sum(1) / n_seen[:, 0, 0]
