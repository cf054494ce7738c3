"""The mixture terms of `mixture.py` with a draw from every environment's component: the sum over e is exact.

Draws under every component are m² densities for each row, the only large arrays of a step. Where they outgrow the
processor's cache they are worked out for some of the draws at a time: what a draw needs of the others are sums alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.torch_operations import softmax_backward
from eber.objectives.fused.mixture import (
    LN_2,
    ComponentGradients,
    Densities,
    LabelPosterior,
    Offset,
    Weighing,
    from_squares,
)
from eber.objectives.fused.mixture_arrays import Draws, MixtureGradients, MixtureInputs, Sizes, Workspace, contiguous

BLOCK = 1 << 18
"""Most densities of one model in a block, unless those of a single draw are more. How many models are side by side does
not enter: it would change the order of sums, and a fit should not depend on its neighbours."""


class ExactMixture:
    """The mixtures of S models for batches of B rows, with a draw from every environment's component.

    Fill `inputs` and call `weigh`; call `draw`; let the decoder fill in the draws' log_lik and grad_points, and call
    `differentiate`, which fills in the gradients.

    Attributes
    ----------
    inputs, draws, gradients : MixtureInputs, Draws, MixtureGradients
    """

    def __init__(self, sizes: Sizes, tie_weight: float, like: Tensor, weighted_rows: bool = False) -> None:
        S, K, m, L, B = sizes
        self.draws = draws = Draws.empty(sizes, m, m, like)
        # Draw c is environment c's: what holds for the environments holds for the draws.
        theta, self._bound_weights = like.new_empty(S, 2 * L, K, m, B), draws.weights[:, 0]
        r = contiguous(self._bound_weights) if weighted_rows else self._bound_weights
        self.inputs = inputs = MixtureInputs.in_arrays(theta, draws.logs, r, draws.weights[:, 1])
        self.gradients = gradients = MixtureGradients.empty(sizes, like)
        n_blocks = math.ceil(m / max(1, BLOCK // (K * m * B)))
        size = math.ceil(m / n_blocks)
        work = Workspace.empty(sizes, size, size, like)
        self.weigh, self._offset = Weighing(inputs), Offset(inputs, work.top)
        self._blocks = []
        for first in range(0, m, size):
            n = min(size, m - first)  # of the last block, perhaps fewer
            self._blocks.append(
                _Block(inputs, draws.part(first, n), work.part(n), gradients, tie_weight, self._offset, first)
            )
        self._whole = _Whole(inputs, draws, work, gradients)
        self._through_weights = _ThroughWeights(inputs, draws, gradients, tie_weight)

    def draw(self, e: Tensor, generators: Sequence[torch.Generator]) -> None:
        """A draw from the component of the observed label in every environment, whichever was observed."""
        self.draws.fill_noise(generators)
        self._whole.draw()

    def weigh_rows(self, weight: Tensor) -> None:
        """Let each row count as much as its weight says, (S, B)."""
        torch.mul(self.inputs.r, weight[:, None], out=self._bound_weights)
        self.inputs.observed.mul_(weight[:, None])

    def differentiate(self, weight: Tensor | None = None) -> None:
        """Values at the draws, and the gradient; with the weights of rows that `weigh_rows` was given, if it was."""
        self._offset.find()
        for block in self._blocks:
            block.differentiate()
        self._whole.finish()
        self._through_weights(weight)


class _Whole:
    """What all draws have in common: how they are made, and what is left to do with their sums."""

    def __init__(self, inputs: MixtureInputs, draws: Draws, work: Workspace, gradients: MixtureGradients) -> None:
        self._tau, self._inv_sigma, self._gradients = inputs.tau, work.inv_sigma, gradients
        self._of_label = inputs.mu[:, :, 0], work.inv_sigma[:, :, 0], draws.noise, draws.from_mean, draws.z
        mu, log_sigma = gradients.theta.chunk(2, 1)
        self._grad_mu, self._moved = mu, (mu[:, :, 0], log_sigma[:, :, 0], draws.grad_z, draws.from_mean)

    def draw(self) -> None:
        """z_c = mu + sigma · noise, of the component of the observed label and the draw's environment."""
        mu, inv_sigma, noise, from_mean, z = self._of_label
        torch.exp2(self._tau, out=self._inv_sigma)
        torch.div(noise, inv_sigma, out=from_mean)
        torch.add(mu, from_mean, out=z)

    def finish(self) -> None:
        """From sums of a u and a u² to gradients, with what theta changes by moving the draws."""
        self._grad_mu.mul_(self._inv_sigma)
        from_squares(self._gradients)
        grad_mu, grad_log_sigma, grad_z, from_mean = self._moved
        grad_mu.add_(grad_z)
        grad_log_sigma.addcmul_(grad_z, from_mean)


class _Block:
    """Some of the draws under every component; draw c is environment c's, and `first` the first of them."""

    def __init__(
        self,
        inputs: MixtureInputs,
        draws: Draws,
        work: Workspace,
        gradients: MixtureGradients,
        tie_weight: float,
        offset: Offset,
        first: int,
    ) -> None:
        self._densities, self._posterior = (
            Densities(inputs, draws, work, offset),
            LabelPosterior(draws, work, tie_weight),
        )
        self._components = ComponentGradients(draws, work)
        self._own = work.a.diagonal(first, dim1=1, dim2=3).mT  # each under its own environment's, (S, K, C, B)
        self._joints = draws.joints, draws.joints[:, 0], draws.joints[:, 1]
        self._mass, self._top, self._ln_2 = work.mass.transpose(1, 2), work.top[:, None], work.u.new_tensor(LN_2)
        self._grad_own, self._au, self._inv_sigma = work.grad_joints[:, 1], work.au, work.inv_sigma[:, :, None]
        self._moments, self._sums, self._adds = work.moments, gradients.sums, first > 0

    def differentiate(self) -> None:
        """Values at the draws and what moves them; sums over the draws are added up."""
        self._densities.find()
        self._joints[2].copy_(self._own)  # joint[c,k,e_c] of every draw, relative to top and in base 2
        self._densities.sum_over_environments()
        self._to_natural_logarithms()
        self._posterior()
        self._own.add_(self._grad_own)  # the gradient through own
        self._components.find_moments()
        if self._adds:
            for of_draw in self._moments.unbind(2):
                self._sums.add_(of_draw)
        else:
            torch.sum(self._moments, 2, out=self._sums)
        self._au.mul_(self._inv_sigma)
        self._components.pull_draws()

    def _to_natural_logarithms(self) -> None:
        """t from the sums over environments; t and own in natural logarithms."""
        both, t, _ = self._joints
        torch.log2(self._mass, out=t)
        both.add_(self._top).mul_(self._ln_2)


class _ThroughWeights:
    """The gradient of sum_e r_e v_e + log p(y|x) through log p(y,e|x) at the observed label; those of lp_y and lp_e."""

    def __init__(self, inputs: MixtureInputs, draws: Draws, gradients: MixtureGradients, tie_weight: float) -> None:
        self._log_lik, self._log_post_label = draws.log_lik, draws.log_post[:, 0, 0]
        self._v, self._through_r = contiguous(self._log_lik), contiguous(inputs.r)
        self._r, self._observed, self._tie_weight = inputs.r, inputs.observed, tie_weight
        self._bound_weights = draws.weights[:, 0]
        self._grad_lp_y, self._grad_lp_label, self._grad_lp_e = gradients.lp_y, gradients.lp_y[:, 0], gradients.lp_e

    def __call__(self, weight: Tensor | None) -> None:
        """Add them to the gradients."""
        torch.sub(self._log_lik, self._log_post_label, out=self._v)
        if weight is not None:
            self._v.mul_(weight[:, None])
        softmax_backward(self._v, self._r, 1, self._r.dtype, grad_input=self._through_r)
        self._grad_lp_label.add_(self._through_r.add_(self._bound_weights))
        torch.sum(self._grad_lp_y, 1, out=self._grad_lp_e)  # the part through own adds up to nothing over the labels
        self._grad_lp_label.add_(self._observed, alpha=self._tie_weight)  # log p(y|x,e) in L_e
