"""The mixture terms of the stratified objective with their gradient by hand. Read `eber.py` first: it is the judge.

Tests compare this file with it, value and gradient. What is gained is time: autograd records some eighty small
operations there and none here, and all arrays and views are made once.

Axes: S models side by side first, the B rows of the batch last; K labels, m environments, L latent dimensions, C
draws of z for each row. Labels are counted from the observed one (`label_order.py`): label k stands for class
(y + k) mod K, so that label 0 is always the observed one. With lp_y = log p(k|x,e), lp_e = log p(e|x), r = p(e|x,y),
z_c a draw from q(z;x,y,e_c) and the log-densities

    joint[c,k,e] = log p(k,e|x) q(z_c; x,k,e)
    t[c,k]       = log sum_e exp joint[c,k,e] = log q(z_c, k; x)
    own[c,k]     = joint[c,k,e_c]

the KL integrand log q(z;x,y) - log q(z;x) equals log_softmax_k(t)[0] - log p(y|x), so the bound of one row and L_e are

    L   = sum_e r_e v_e + log p(y|x),     v_c = log p(y|z_c) - log_softmax_k(t_c)[0]
    L_e = log p(y|z_e) - log_softmax_k(own_e)[0] + log p(y|x,e).

One draw for each environment makes the sum over e exact, at a cost of m² densities for each row; `sampled_mixture.py`
draws a few of many environments instead.

A step goes through three stages, each of which is given what the one before has filled in:

    weigh           MixtureInputs -> r                          `Weighing`
    draw            MixtureInputs, noise -> points              `draw` of the kind of mixture
    differentiate   points, log p(y|z) -> MixtureGradients      `Densities`, `LabelPosterior`, `ComponentGradients`

Rows that have weights w are weighed between the last two (`weigh_rows`): the sum over rows is then of w L + w tie L_e.
Every gradient is a sum over draws, whose weights carry w from there on; only that through r, which is not linear in the
draws' weights, takes r as it is and w times v.

Densities are worked out in base 2, since torch's exp2 is several times as fast as its exp: tau = -log2 sigma, so that
1/sigma = exp2(tau).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.torch_operations import softmax_backward
from eber.objectives.fused.mixture_arrays import Draws, MixtureGradients, MixtureInputs, Sizes, Workspace, contiguous

LOG2_E = math.log2(math.e)
LN_2 = math.log(2.0)
MIN_MASS = 2.0**-120
"""A sum of densities relative to the largest possible one is never taken to be less: it is zero beside one."""


class Weighing:
    """r = p(e|x,y), by Bayes' rule."""

    def __init__(self, inputs: MixtureInputs) -> None:
        self._lp_label, self._lp_e, self._log_r, self._r = inputs.lp_y[:, 0], inputs.lp_e, inputs.log_r, inputs.r
        self._joint = contiguous(inputs.lp_e)

    def __call__(self) -> None:
        """Fill in r and its logarithm."""
        torch.add(self._lp_label, self._lp_e, out=self._joint)
        torch.log_softmax(self._joint, 1, out=self._log_r)
        torch.exp(self._log_r, out=self._r)


class Densities:
    """Base-2 log-densities of the draws under every component, where a will be, and their sums over environments."""

    def __init__(self, inputs: MixtureInputs, draws: Draws, work: Workspace) -> None:
        self._z = draws.z[:, :, : draws.n_in_bound, None, None]
        self._mu, self._inv_sigma = inputs.mu[:, :, None], work.inv_sigma[:, :, None]
        self._u, self._a, self._squares = work.u, work.a, work.au2
        self._lp_y, self._lp_e, self._tau = inputs.lp_y, inputs.lp_e[:, None], inputs.tau
        self._one_dimension = (work.u[:, 0], inputs.tau[:, 0]) if work.u.shape[1] == 1 else None
        self._top, self._offset = work.top, contiguous(inputs.lp_y)
        self._mass, self._offset_for_draws = work.mass, self._offset[:, None]

    def find(self) -> None:
        """log2 p(k,e|x) q(z; x,k,e) in place of a, relative to `top`."""
        torch.sub(self._z, self._mu, out=self._u).mul_(self._inv_sigma)
        torch.add(self._lp_y, self._lp_e, out=self._offset)  # log p(k,e|x)
        tau = self._tau.sum(1) if self._one_dimension is None else self._one_dimension[1]
        torch.add(tau, self._offset, alpha=LOG2_E, out=self._offset)
        # No density of label k exceeds exp2(top): relative to it none overflows, and those of z's own label and of
        # environments with weight in r do not vanish.
        torch.amax(self._offset, 2, keepdim=True, out=self._top)
        self._offset.sub_(self._top)
        if self._one_dimension is not None:
            u = self._one_dimension[0]
            torch.addcmul(self._offset_for_draws, u, u, value=-0.5 * LOG2_E, out=self._a)
        else:
            torch.sum(torch.mul(self._u, self._u, out=self._squares), 1, out=self._a)
            torch.add(self._offset_for_draws, self._a, alpha=-0.5 * LOG2_E, out=self._a)

    def sum_over_environments(self) -> None:
        """The densities themselves in place of their logarithms, and their sums."""
        torch.sum(self._a.exp2_(), 3, out=self._mass).clamp_(min=MIN_MASS)


class LabelPosterior:
    """From t and own to the posterior of the label, and the gradient of the bound and the tie with respect to a."""

    def __init__(self, draws: Draws, work: Workspace, tie_weight: float) -> None:
        D = draws.n_in_bound
        self._joints, self._log_post, self._grad_joints = draws.joints, draws.log_post, work.grad_joints
        self._grad_of_label, self._weights = work.grad_joints[:, :, 0], draws.weights[:, :, None]
        self._grad_t, self._grad_own = work.grad_joints[:, 0, :, :D], work.grad_joints[:, 1]
        self._a, self._mass = work.a, work.mass.transpose(1, 2)
        self._grad_t_for_components = self._grad_t.transpose(1, 2)[:, :, :, None]
        # Factors as arrays: a plain number is converted anew at every use, which costs more than the arithmetic.
        self._one, self._tie = work.u.new_tensor([1, tie_weight])

    def __call__(self) -> None:
        """Fill in `log_post` and `grad_joints`; the densities become a, but for the part through own."""
        torch.log_softmax(self._joints, 2, out=self._log_post)
        # d/dt of -log_softmax(t)[0], in the bound, and d/d own of -log_softmax(own)[0], in the tie.
        torch.exp(self._log_post, out=self._grad_joints)
        self._grad_of_label.sub_(self._one)
        self._grad_joints.mul_(self._weights)
        self._grad_own.mul_(self._tie)
        self._grad_t.div_(self._mass)
        self._a.mul_(self._grad_t_for_components)


class ComponentGradients:
    """From a to the gradients of the components and of the draws."""

    def __init__(self, draws: Draws, work: Workspace, gradients: MixtureGradients) -> None:
        L = work.u.shape[1]
        self._u, self._au, self._au2, self._a = work.u, work.au, work.au2, work.moments[:, :1]
        self._grad_log_sigma, self._grad_lp_y = gradients.theta[:, L:], gradients.lp_y[:, None]
        self._grad_z = draws.grad_z[:, :, : draws.n_in_bound]
        self._pull = contiguous(self._grad_z)

    def find_moments(self) -> None:
        """a u and a u²."""
        torch.mul(self._u, self._a, out=self._au)
        torch.mul(self._u, self._au, out=self._au2)

    def finish(self) -> None:
        """d joint / d log sigma = u² - 1; and what moves the draws, once a u has become a u / sigma."""
        self._grad_log_sigma.sub_(self._grad_lp_y)
        torch.sum(self._au, (3, 4), out=self._pull)
        self._grad_z.sub_(self._pull)


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
        self.inputs = MixtureInputs.in_arrays(theta, draws.logs, r, draws.weights[:, 1])
        self.gradients = MixtureGradients.empty(sizes, like)
        work = Workspace.empty(sizes, m, m, like)
        self.weigh = Weighing(self.inputs)
        self._own = _OwnOnDiagonal(self.inputs, draws, work, self.gradients)
        self._densities, self._posterior = Densities(self.inputs, draws, work), LabelPosterior(draws, work, tie_weight)
        self._components = ComponentGradients(draws, work, self.gradients)
        self._through_weights = _ThroughWeights(self.inputs, draws, self.gradients, tie_weight)

    def draw(self, e: Tensor, generators: Sequence[torch.Generator]) -> None:
        """A draw from the component of the observed label in every environment, whichever was observed."""
        self.draws.fill_noise(generators)
        self._own.draw()

    def weigh_rows(self, weight: Tensor) -> None:
        """Let each row count as much as its weight says, (S, B)."""
        torch.mul(self.inputs.r, weight[:, None], out=self._bound_weights)
        self.inputs.observed.mul_(weight[:, None])

    def differentiate(self, weight: Tensor | None = None) -> None:
        """Values at the draws, and the gradient; with the weights of rows that `weigh_rows` was given, if it was."""
        self._densities.find()
        self._own.keep_joint()
        self._densities.sum_over_environments()
        self._own.to_natural_logarithms()
        self._posterior()
        self._own.differentiate()
        self._components.find_moments()
        self._own.sum_over_draws()
        self._components.finish()
        self._own.move_draws()
        self._through_weights(weight)


class _OwnOnDiagonal:
    """Each draw under the components of its own environment, where draw c is environment c's."""

    def __init__(self, inputs: MixtureInputs, draws: Draws, work: Workspace, gradients: MixtureGradients) -> None:
        self._draws, self._work, self._sums = draws, work, gradients.sums
        self._tau, self._inv_sigma = inputs.tau, work.inv_sigma
        self._of_label = inputs.mu[:, :, 0], work.inv_sigma[:, :, 0], draws.noise, draws.from_mean, draws.z
        self._own = work.a.diagonal(dim1=1, dim2=3).mT  # (S, K, C, B)
        self._joints = draws.joints, draws.joints[:, 0], draws.joints[:, 1]
        self._mass, self._top, self._ln_2 = work.mass.transpose(1, 2), work.top[:, None], work.u.new_tensor(LN_2)
        self._grad_own = work.grad_joints[:, 1]
        mu, log_sigma = gradients.theta.chunk(2, 1)
        self._scaled = mu, work.au, work.inv_sigma[:, :, None], work.moments
        self._moved = mu[:, :, 0], log_sigma[:, :, 0], draws.grad_z, draws.from_mean

    def draw(self) -> None:
        """z_c = mu + sigma · noise, of the component of the observed label and the draw's environment."""
        mu, inv_sigma, noise, from_mean, z = self._of_label
        torch.exp2(self._tau, out=self._inv_sigma)
        torch.div(noise, inv_sigma, out=from_mean)
        torch.add(mu, from_mean, out=z)

    def keep_joint(self) -> None:
        """joint[c,k,e_c] of every draw, relative to top and in base 2."""
        self._joints[2].copy_(self._own)

    def to_natural_logarithms(self) -> None:
        """t from the sums over environments; t and own in natural logarithms."""
        both, t, _ = self._joints
        torch.log2(self._mass, out=t)
        both.add_(self._top).mul_(self._ln_2)

    def differentiate(self) -> None:
        """The gradient through own."""
        self._own.add_(self._grad_own)

    def sum_over_draws(self) -> None:
        """Sums of a, a u / sigma and a u² over the draws; a u becomes a u / sigma."""
        grad_mu, au, inv_sigma, moments = self._scaled
        torch.sum(moments, 2, out=self._sums)
        grad_mu.mul_(self._inv_sigma)
        au.mul_(inv_sigma)

    def move_draws(self) -> None:
        """What theta changes by moving the draws."""
        grad_mu, grad_log_sigma, grad_z, from_mean = self._moved
        grad_mu.add_(grad_z)
        grad_log_sigma.addcmul_(grad_z, from_mean)


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
