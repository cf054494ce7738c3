"""The mixture terms of the stratified objective with their gradient by hand. Read `eber.py` first: it is the judge.

Tests compare this file with it, value and gradient. What is gained is time: autograd records some eighty small
operations there and none here, and all arrays and views are made once.

Axes: S models side by side first, the B rows of the batch last; K labels, m environments, L latent dimensions, C
draws of z for each row. Labels are counted from the observed one: slot k stands for class (y + k) mod K, so that slot
0 is always the observed label. With lp_y = log p(k|x,e), lp_e = log p(e|x), r = p(e|x,y), z_c a draw from q(z;x,y,e_c)
and the log-densities

    joint[c,k,e] = log p(k,e|x) q(z_c; x,k,e)
    t[c,k]       = log sum_e exp joint[c,k,e] = log q(z_c, k; x)
    own[c,k]     = joint[c,k,e_c]

the KL integrand log q(z;x,y) - log q(z;x) equals log_softmax_k(t)[0] - log p(y|x), so the bound of one row and L_e are

    L   = sum_e r_e v_e + log p(y|x),     v_c = log p(y|z_c) - log_softmax_k(t_c)[0]
    L_e = log p(y|z_e) - log_softmax_k(own_e)[0] + log p(y|x,e).

One draw for each environment makes the sum over e exact, at a cost of m² densities for each row; `sampled.py` draws a
few of many environments instead.

Densities are worked out in base 2, since torch's exp2 is several times as fast as its exp: tau = -log2 sigma, so that
1/sigma = exp2(tau).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

LOG2_E = math.log2(math.e)
LN_2 = math.log(2.0)
MIN_MASS = 2.0**-120
"""A sum of densities relative to the largest possible one is never taken to be less: it is zero beside one."""


class Sizes(NamedTuple):
    """Lengths of the axes: models, labels, environments, latent dimensions, rows."""

    S: int
    K: int
    m: int
    L: int
    B: int


class Mixture:
    """The mixtures of S models for batches of B rows, with a draw from every environment's component.

    Fill `theta`, `lp_y`, `lp_e` and `observed`, and call `weigh`; fill `noise`, and call `draw`; fill `log_lik` and
    `grad_points`, and call `differentiate`.

    Attributes
    ----------
    theta : (S, 2L, K, m, B)
        Means, then tau.
    lp_y, lp_e, r : (S, K, m, B), (S, m, B), (S, m, B)
    observed : (S, m, B)
        Weights of the components that stand for the observed environment: one for its own.
    weights : (S, 2, C, B)
        Weight of each draw in the bound, p(e|x,y) or one over the number of sampled draws, and in the tie: one for the
        observed environment's.
    noise : (S, L, C, B)
        Standard normal.
    points : (S, L + 1, C, B)
        The draws of z made from it, on top of a row of ones.
    log_lik, grad_points : (S, C, B), (S, L + 1, C, B)
        log p(y|z), and the gradient of its weighted sum, which is overwritten.
    grad_theta, grad_lp_y, grad_lp_e : as theta, lp_y, lp_e
        Gradient of the sum over rows of L + tie_weight · L_e of the observed e, with respect to means and *natural*
        logarithms of sigma, and to the logarithms of the weights.
    integrands : (S, n, C, B)
        What all terms of the loss are weighted sums of, in the order of `integrand_rows`.
    """

    def __init__(self, sizes: Sizes, tie_weight: float, like: Tensor) -> None:
        S, K, m, L, B = sizes
        (C, D), new = self.n_draws(m), like.new_empty
        self.sizes, self.tie_weight = sizes, tie_weight
        # Factors as arrays: a plain number is converted anew at every use, which costs more than the arithmetic.
        self._one, self._tie, self._ln_2 = like.new_tensor([1, tie_weight, LN_2])
        self.integrands = like.new_zeros(S, 5 * K + 4, C, B)
        log_post, joints, at_draws, rest = self.integrands.split([2 * K, 2 * K, K + 2, 2], 1)
        self.log_lik, self.log_p_observed = rest.unbind(1)
        self._log_post = log_post.unflatten(1, (2, K))  # of t and own: log q(k|z;x) and log q(k|z;x,e)
        self._joints = joints.unflatten(1, (2, K))  # t and own, up to the same constant

        self.weights = new(S, 2, C, B)
        self.logs, self.r, self.observed = self._of_environments(at_draws)  # logs: lp_y, lp_e, log r
        self.lp_y, self.lp_e, self._log_r = self.logs[:, :K], self.logs[:, K], self.logs[:, K + 1]
        self.theta, self._inv_sigma = new(S, 2 * L, K, m, B), new(S, L, K, m, B)
        self._mu, self._tau = self.theta[:, :L], self.theta[:, L:]
        self.noise, self._from_mean = new(2, S, L, C, B)
        self.points, self.grad_points = like.new_ones(2, S, L + 1, C, B)
        self._z, self._grad_z = self.points[:, :L], self.grad_points[:, :L]
        self._grad_z_in_bound = self._grad_z[:, :, :D]

        # Draws under every component (k, e): u = (z - mu) / sigma, and a = d L / d joint with a u and a u² beside it.
        # These are the only large arrays.
        self._u, self._moments = new(S, L, D, K, m, B), new(S, 1 + 2 * L, D, K, m, B)
        self._a, self._au, self._au2 = self._moments[:, 0], self._moments[:, 1 : 1 + L], self._moments[:, 1 + L :]
        self._offset, self._top, self._mass = new(S, K, m, B), new(S, K, 1, B), new(S, D, K, B)
        self._grads, self.grad_lp_e = new(S, 1 + 2 * L, K, m, B), new(S, m, B)
        self.grad_lp_y, self.grad_theta = self._grads[:, 0], self._grads[:, 1:]
        self._grad_joints, self._v, self._pull = new(S, 2, K, C, B), new(S, C, B), new(S, L, D, B)
        self._through_r = new(S, m, B)
        self._plan()

    @staticmethod
    def n_draws(m: int) -> tuple[int, int]:
        """C, the number of draws for each row, and how many of them, the first, the bound uses."""
        return m, m

    def _of_environments(self, at_draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Arrays for `logs`, `r` and `observed`. Draw c is environment c's: they hold for the draws as well."""
        return at_draws, self.weights[:, 0], self.weights[:, 1]

    def _plan(self) -> None:
        """Views, made once."""
        L, D = self.sizes.L, self._mass.shape[1]
        self._lp_label, self._grad_lp_label = self.lp_y[:, 0], self.grad_lp_y[:, 0]
        self._mu_label, self._inv_sigma_label = self._mu[:, :, 0], self._inv_sigma[:, :, 0]
        self._lp_e_for_labels, self._offset_for_draws = self.lp_e[:, None], self._offset[:, None]
        self._mu_for_draws, self._inv_sigma_for_draws = self._mu[:, :, None], self._inv_sigma[:, :, None]
        self._z_for_components = self._z[:, :, :D, None, None]
        self._u_alone, self._tau_alone = self._u[:, 0], self._tau[:, 0]  # where there is one latent dimension
        self._own = self._a.diagonal(dim1=1, dim2=3).mT  # (S, K, C, B): each draw with its own environment
        self._t, self._own_joint = self._joints[:, 0, :, :D], self._joints[:, 1]
        self._in_base_2, self._top_in_base_2 = self._joints, self._top[:, None]
        self._mass_by_label = self._mass.transpose(1, 2)
        self._grad_t, self._grad_own = self._grad_joints[:, 0, :, :D], self._grad_joints[:, 1]
        self._grad_t_for_components = self._grad_t.transpose(1, 2)[:, :, :, None]
        self._grad_log_post_label = self._grad_joints[:, :, 0]
        self._log_post_label, self._weights_for_labels = self._log_post[:, 0, 0], self.weights[:, :, None]
        self._grad_lp_y_for_latents = self.grad_lp_y[:, None]
        self._grad_mu, self._grad_log_sigma = self.grad_theta[:, :L], self.grad_theta[:, L:]
        self._grad_mu_label, self._grad_log_sigma_label = self._grad_mu[:, :, 0], self._grad_log_sigma[:, :, 0]
        self._a_for_latents = self._moments[:, :1]

    def weigh(self) -> None:
        """r = p(e|x,y), by Bayes' rule."""
        torch.add(self._lp_label, self.lp_e, out=self._through_r)
        torch.log_softmax(self._through_r, 1, out=self._log_r)
        torch.exp(self._log_r, out=self.r)

    def draw(self) -> None:
        """z_c = mu + sigma · noise, of the component of the observed label and the draw's environment."""
        torch.exp2(self._tau, out=self._inv_sigma)
        torch.div(self.noise, self._inv_sigma_label, out=self._from_mean)
        torch.add(self._mu_label, self._from_mean, out=self._z)

    def differentiate(self) -> None:
        """Values at the draws, and the gradient."""
        self._densities()
        torch.log_softmax(self._joints, 2, out=self._log_post)
        # d/dt of -log_softmax(t)[0], in the bound, and d/d own of -log_softmax(own)[0], in the tie.
        torch.exp(self._log_post, out=self._grad_joints)
        self._grad_log_post_label.sub_(self._one)
        self._grad_joints.mul_(self._weights_for_labels)
        self._grad_own.mul_(self._tie)
        self._grad_t.div_(self._mass_by_label)
        self._a.mul_(self._grad_t_for_components)
        self._through_own()
        torch.mul(self._u, self._a_for_latents, out=self._au)
        torch.mul(self._u, self._au, out=self._au2)
        self._sum_over_draws()
        self._grad_log_sigma.sub_(self._grad_lp_y_for_latents)
        torch.sum(self._au, (3, 4), out=self._pull)
        self._grad_z_in_bound.sub_(self._pull)
        self._add_through_draws()

        torch.sub(self.log_lik, self._log_post_label, out=self._v)
        self._add_through_posterior()
        torch.sum(self.grad_lp_y, 1, out=self.grad_lp_e)  # the part through own adds up to nothing over the labels
        self._grad_lp_label.add_(self.observed, alpha=self.tie_weight)  # log p(y|x,e) in L_e

    def _densities(self) -> None:
        """u; t and own; the densities exp(joint), not yet normalised, where a will be."""
        torch.sub(self._z_for_components, self._mu_for_draws, out=self._u).mul_(self._inv_sigma_for_draws)
        torch.add(self.lp_y, self._lp_e_for_labels, out=self._offset)  # log p(k,e|x)
        tau = self._tau_alone if self.sizes.L == 1 else self._tau.sum(1)
        torch.add(tau, self._offset, alpha=LOG2_E, out=self._offset)
        # No density of label k exceeds exp2(top): relative to it none overflows, and those of z's own label and of
        # environments with weight in r do not vanish.
        torch.amax(self._offset, 2, keepdim=True, out=self._top)
        self._offset.sub_(self._top)
        if self.sizes.L == 1:
            u = self._u_alone
            torch.addcmul(self._offset_for_draws, u, u, value=-0.5 * LOG2_E, out=self._a)
        else:
            torch.sum(torch.mul(self._u, self._u, out=self._au2), 1, out=self._a)
            torch.add(self._offset_for_draws, self._a, alpha=-0.5 * LOG2_E, out=self._a)
        self._find_own()
        torch.sum(self._a.exp2_(), 3, out=self._mass).clamp_(min=MIN_MASS)
        torch.log2(self._mass_by_label, out=self._t)
        self._in_base_2.add_(self._top_in_base_2).mul_(self._ln_2)

    def _find_own(self) -> None:
        """joint[c,k,e_c] of every draw."""
        self._own_joint.copy_(self._own)

    def _through_own(self) -> None:
        """The gradient through own."""
        self._own.add_(self._grad_own)

    def _sum_over_draws(self) -> None:
        """Sums of a, a u / sigma and a u² over the draws; a u becomes a u / sigma."""
        torch.sum(self._moments, 2, out=self._grads)
        self._grad_mu.mul_(self._inv_sigma)
        self._au.mul_(self._inv_sigma_for_draws)

    def _add_through_draws(self) -> None:
        """What theta changes by moving the draws."""
        self._grad_mu_label.add_(self._grad_z)
        self._grad_log_sigma_label.addcmul_(self._grad_z, self._from_mean)

    def _add_through_posterior(self) -> None:
        """Add the gradient of sum_e r_e v_e + log p(y|x) through log p(y,e|x) at the observed label."""
        torch._softmax_backward_data(self._v, self.r, 1, self.r.dtype, grad_input=self._through_r)
        self._grad_lp_label.add_(self._through_r.add_(self.r))


def integrand_rows(K: int) -> dict[str, int]:
    """Where each of the integrands that the terms need stands in `Mixture.integrands`."""
    return {
        "log_post": 0,
        "log_post_own": K,
        "log_joint": 2 * K,
        "log_joint_own": 3 * K,
        "lp_y": 4 * K,
        "lp_e": 5 * K,
        "log_r": 5 * K + 1,
        "log_lik": 5 * K + 2,
        "log_p_observed": 5 * K + 3,
    }
