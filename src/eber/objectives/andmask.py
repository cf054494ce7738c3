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

from eber.nn.networks import classify, loss_gradients
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, environment_risks

LEAST_SHARE = 1e-10


def masked_gradient(gradients: Tensor, counts: Tensor, agreement: Tensor, tensor_of_entry: Tensor) -> Tensor:
    """The masked mean of environments' gradients.

    Parameters
    ----------
    gradients : (m, S, P), zero for environments that are missing
    counts : (S, 1), the number of environments present
    agreement : (S, 1), tau
    tensor_of_entry : (P,) int64, the parameter tensor of each entry

    Returns
    -------
    (S, P)
    """
    mask = ((torch.sign(gradients).sum(0) / counts).abs() >= agreement).to(gradients.dtype)
    sizes = torch.bincount(tensor_of_entry)
    shares = mask.new_zeros(len(mask), len(sizes)).index_add_(1, tensor_of_entry, mask) / sizes
    return mask * (gradients.sum(0) / counts) * (1 / (LEAST_SHARE + shares))[:, tensor_of_entry]


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
            gradients = loss_gradients(stack, found.risks[:, somewhere])
            stack.add_gradient(masked_gradient(gradients, counts, agreement, stack.tensor_of_entry))

        risk = found.mean.detach()
        return LossTerms(("loss", "risk"), torch.stack([risk, risk]), backward)
