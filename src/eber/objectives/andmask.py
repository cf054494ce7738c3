"""Learning explanations that are hard to vary (ANDMask; Parascandolo et al. 2021).

Of the gradient g_e of each environment's risk only those entries are followed on whose sign the environments agree:

    mask = 1[ |mean_e sign(g_e)| >= tau ],        step along  mask · mean_e g_e / (1e-10 + share of the mask).

The share is that of each parameter tensor (weights and bias of a layer are two), so that a mask of few entries does
not shorten the step. Means are over the environments present in the batch. The loss is mean_e R_e; what changes is the
gradient alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.networks import classify
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, environment_risks

LEAST_SHARE = 1e-10


def masked_gradient(gradients: Tensor, counts: Tensor, agreement: Tensor, sizes: Sequence[int]) -> Tensor:
    """The masked mean of environments' gradients.

    Parameters
    ----------
    gradients : (m, S, P), zero for environments that are missing
    counts : (S, 1), the number of environments present
    agreement : (S, 1), tau
    sizes : entries of each parameter tensor, P in all

    Returns
    -------
    (S, P)
    """
    mask = ((torch.sign(gradients).sum(0) / counts).abs() >= agreement).to(gradients.dtype)
    shares = torch.stack([part.mean(1) for part in mask.split(list(sizes), 1)], 1)  # (S, number of tensors)
    scale = (1 / (LEAST_SHARE + shares)).repeat_interleave(torch.tensor(sizes), 1)
    return mask * (gradients.sum(0) / counts) * scale


class ANDMaskObjective:
    """``mean_e R_e``, followed where the environments' gradients agree in sign.

    Parameters
    ----------
    agreements : tau of each of the S models, from 0 (any entry) to 1 (all environments must agree)
    """

    def __init__(self, agreements: Sequence[float], n_environments: int) -> None:
        self.agreements, self.n_environments = tuple(agreements), n_environments

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        _, logits = classify(stack, batch.x)
        found = environment_risks(logits, batch, self.n_environments)
        counts, agreement = found.present.sum(1, keepdim=True), logits.new_tensor(self.agreements)[:, None]
        somewhere = found.present.any(0)  # in the batch of one of the models at least

        def backward() -> None:
            gradients = stack.gradients(found.risks[:, somewhere])
            stack.add_gradient(masked_gradient(gradients, counts, agreement, stack.sizes))

        risk = found.mean.detach()
        return LossTerms(("loss", "risk"), torch.stack([risk, risk]), backward)
