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

One draw for each environment makes the sum over e exact, at a cost of m² densities for each row (`exact_mixture.py`);
`sampled_mixture.py` draws a few of many environments instead.

A step goes through three stages, each of which is given what the one before has filled in:

    weigh           MixtureInputs -> r                          `Weighing`
    draw            MixtureInputs, noise -> points              `draw` of the kind of mixture
    differentiate   points, log p(y|z) -> MixtureGradients      `Offset`, `Densities`, `LabelPosterior`,
                                                                `ComponentGradients`

Rows that have weights w are weighed between the last two (`weigh_rows`): the sum over rows is then of w L + w tie L_e.
Every gradient is a sum over draws, whose weights carry w from there on; only that through r, which is not linear in the
draws' weights, takes r as it is and w times v.

Densities are worked out in base 2, since torch's exp2 is several times as fast as its exp: tau = -log2 sigma, so that
1/sigma = exp2(tau).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from eber.objectives.fused.mixture_arrays import Draws, MixtureGradients, MixtureInputs, Workspace, contiguous

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


class Offset:
    """What the base-2 log-densities of a row's draws under a component have in common, relative to `top`."""

    def __init__(self, inputs: MixtureInputs, top: Tensor) -> None:
        self._lp_y, self._lp_e, self._top, self.values = inputs.lp_y, inputs.lp_e[:, None], top, contiguous(inputs.lp_y)
        self._tau, self._one_dimension = inputs.tau, inputs.tau[:, 0] if inputs.tau.shape[1] == 1 else None

    def find(self) -> None:
        """log2 p(k,e|x) - sum log2 sigma, (S, K, m, B)."""
        torch.add(self._lp_y, self._lp_e, out=self.values)  # log p(k,e|x)
        tau = self._tau.sum(1) if self._one_dimension is None else self._one_dimension
        torch.add(tau, self.values, alpha=LOG2_E, out=self.values)
        # No density of label k exceeds exp2(top): relative to it none overflows, and those of z's own label and of
        # environments with weight in r do not vanish.
        torch.amax(self.values, 2, keepdim=True, out=self._top)
        self.values.sub_(self._top)


class Densities:
    """Base-2 log-densities of the draws under every component, where a will be, and their sums over environments."""

    def __init__(self, inputs: MixtureInputs, draws: Draws, work: Workspace, offset: Offset) -> None:
        self._z = draws.z[:, :, : draws.n_in_bound, None, None]
        self._mu, self._inv_sigma = inputs.mu[:, :, None], work.inv_sigma[:, :, None]
        self._u, self._a, self._squares = work.u, work.a, work.au2
        self._one_dimension = work.u[:, 0] if work.u.shape[1] == 1 else None
        self._mass, self._offset = work.mass, offset.values[:, None]

    def find(self) -> None:
        """log2 p(k,e|x) q(z; x,k,e) in place of a, relative to `top`."""
        torch.sub(self._z, self._mu, out=self._u).mul_(self._inv_sigma)
        if self._one_dimension is not None:
            u = self._one_dimension
            torch.addcmul(self._offset, u, u, value=-0.5 * LOG2_E, out=self._a)
        else:
            torch.sum(torch.mul(self._u, self._u, out=self._squares), 1, out=self._a)
            torch.add(self._offset, self._a, alpha=-0.5 * LOG2_E, out=self._a)

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

    def __init__(self, draws: Draws, work: Workspace) -> None:
        self._u, self._au, self._au2, self._a = work.u, work.au, work.au2, work.moments[:, :1]
        self._grad_z = draws.grad_z[:, :, : draws.n_in_bound]
        self._pull = contiguous(self._grad_z)

    def find_moments(self) -> None:
        """a u and a u²."""
        torch.mul(self._u, self._a, out=self._au)
        torch.mul(self._u, self._au, out=self._au2)

    def pull_draws(self) -> None:
        """What moves the draws, once a u has become a u / sigma."""
        torch.sum(self._au, (3, 4), out=self._pull)
        self._grad_z.sub_(self._pull)


def from_squares(gradients: MixtureGradients) -> None:
    """d joint / d log sigma = u² - 1, where sums of a u² are."""
    L = gradients.theta.shape[1] // 2
    gradients.theta[:, L:].sub_(gradients.lp_y[:, None])
