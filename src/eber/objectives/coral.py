"""Correlation alignment (deep CORAL; Sun and Saenko 2016), between all pairs of training environments.

Features of any two environments a, b shall have the same mean mu and covariance C (Bessel's correction n - 1):

    penalty = mean over pairs a < b of  mean_k (mu_ak - mu_bk)^2 + mean_kl (C_akl - C_bkl)^2.

The paper aligns covariances only; the means are DomainBed's addition (Gulrajani and Lopez-Paz 2021). No pair need be
looked at: the mean over pairs of a squared difference is twice the variance over environments, with p - 1 for p of
them. Environments that are missing from a batch are in no pair; one with a single row has a mean and no covariance.
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
)


def mean_squared_difference(values: Tensor, present: Tensor) -> Tensor:
    """Mean over pairs of environments present of the mean squared difference, (S, m, D) and (S, m) -> (S,).

    Zero where fewer than two environments are present.
    """
    here, n = present[:, :, None], present.sum(1)
    centre = (values * here).sum(1, keepdim=True) / n.clamp(min=1)[:, None, None]
    return 2 * ((values - centre) * here).square().sum(1).mean(1) / (n - 1).clamp(min=1)


def coral_penalty(representation: Tensor, average: Tensor, counts: Tensor, e: Tensor) -> Tensor:
    """Mean over pairs of environments of the differences of means and of covariances, (S,)."""
    means, centred = centred_within(representation, average, e)
    present, several = ((counts > least).to(representation.dtype) for least in (0, 1))
    unbiased = average * (counts / degrees_of_freedom(counts))[:, :, None]  # (S, m, B): 1 / (n_e - 1) for its rows
    weighted = unbiased[:, :, :, None] * centred[:, None]  # (S, m, B, R)
    covariances = torch.matmul(weighted.mT, centred[:, None])  # (S, m, R, R)
    return mean_squared_difference(means, present) + mean_squared_difference(covariances.flatten(2), several)


class CORALObjective:
    """``mean_e R_e + weight · (mean over pairs of the distance between means and covariances of the features)``."""

    def __init__(self, schedule: PenaltySchedule, n_environments: int) -> None:
        self.schedule, self.n_environments = schedule, n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        representation, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        risk, penalty = found.mean, coral_penalty(representation, found.average, found.counts, batch.e)
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
