"""Maximum mean discrepancy between environments (MMD; Gretton et al. 2012, Li, Pan, Wang and Kot 2018).

Features of any two environments a, b shall have the same distribution, as seen by a kernel k:

    penalty = mean over pairs a < b of  mean k(a, a') + mean k(b, b') - 2 mean k(a, b),
    k(u, v) = sum of exp(-gamma |u - v|^2) over gamma = 0.001, 0.01, ..., 1000.

With A the matrix (p, B) whose rows average over each of the p environments present, the three means are entries of
M = A K A', and the mean over pairs is 2 (p tr M - 1' M 1) / (p (p - 1)): one kernel matrix of all rows, no loop over
pairs. Environments that are missing from a batch are in no pair.

`distances` says how |u - v|^2 is worked out. ``"expansion"``, |u|^2 + |v|^2 - 2 u·v bounded below by 1e-30, is
DomainBed's; what cancels there is off by the rounding of |u|^2, which gamma = 1000 makes visible (exp(-1000 · 1e-7)
is 0.9999 where a row meets itself). ``"differences"`` is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, PenaltySchedule, environment_risks

GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
DISTANCES = ("expansion", "differences")
LEAST_DISTANCE = 1e-30


def squared_distances(rows: Tensor, distances: str) -> Tensor:
    """|u - v|^2 for any two of the rows, (S, B, R) -> (S, B, B)."""
    if distances == "differences":
        return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist").square()
    squares = rows.square().sum(2, keepdim=True)
    return torch.baddbmm(squares.mT, rows, rows.mT, alpha=-2).add(squares).clamp_min(LEAST_DISTANCE)


def mmd_penalty(representation: Tensor, average: Tensor, present: Tensor, distances: str) -> Tensor:
    """Mean over pairs of environments present of their squared discrepancy, (S,); zero where there is no pair."""
    squares = squared_distances(representation, distances)
    kernel = torch.exp(squares[:, None] * -squares.new_tensor(GAMMAS)[:, None, None]).sum(1)  # (S, B, B)
    p, total = present.sum(1)[:, None, None], average.sum(1)[:, :, None]
    # The weight of a pair of rows: tr(A K A') and 1' A K A' 1 are both sums over the kernel.
    weights = 2 * (p * torch.bmm(average.mT, average) - torch.bmm(total, total.mT)) / (p * (p - 1)).clamp(min=1)
    # A row is where it is: its distance to itself has no gradient, and rounding would give it one a thousandfold.
    itself = (kernel.detach() * weights).diagonal(dim1=1, dim2=2).sum(1)
    weights.diagonal(dim1=1, dim2=2).zero_()
    return (kernel * weights).sum((1, 2)) + itself


class MMDObjective:
    """``mean_e R_e + weight · (mean over pairs of the squared discrepancy of the features)``."""

    def __init__(self, schedule: PenaltySchedule, n_environments: int, distances: str = "expansion") -> None:
        self.schedule, self.n_environments, self.distances = schedule, n_environments, distances

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        representation, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        risk, penalty = found.mean, mmd_penalty(representation, found.average, found.present, self.distances)
        return LossTerms.from_tensors(stack, risk + self.schedule.at(step, risk) * penalty, risk=risk, penalty=penalty)
