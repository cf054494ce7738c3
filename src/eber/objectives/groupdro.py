"""Group distributionally robust optimisation (GroupDRO; Sagawa, Koh, Hashimoto and Liang 2020).

The worst environment's risk, min_theta max_q sum_e q_e R_e over q in the simplex, by mirror ascent on q: before each
step of theta,

    q_e <- q_e exp(eta R_e) / sum_j q_j exp(eta R_j),        loss = sum_e q_e R_e.

An environment that is missing from a batch has no risk there: its q keeps its share (R_e = 0 in the exponent) and its
summand is left out, as in the paper's algorithm, which draws one environment at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, environment_risks


class GroupDROObjective:
    """``sum_e q_e R_e``, with q of each model moved towards its worst environments; q starts at equal shares.

    Parameters
    ----------
    step_sizes : eta of each of the S models
    """

    def __init__(self, step_sizes: Sequence[float], n_environments: int) -> None:
        self.step_sizes, self.n_environments = tuple(step_sizes), n_environments
        self.log_q: Tensor | None = None  # (S, m)

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        risks = found.risks.detach()
        if self.log_q is None:
            self.log_q = torch.zeros_like(risks)
        # In logarithms, q stays positive however long an environment has been the easiest.
        self.log_q = torch.log_softmax(self.log_q + risks.new_tensor(self.step_sizes)[:, None] * risks, 1)
        loss = (self.log_q.exp() * found.risks).sum(1)
        return LossTerms.from_tensors(stack, loss, risk=found.mean)
