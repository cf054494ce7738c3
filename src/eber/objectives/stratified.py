"""The mixture terms of the stratified objective with their gradient by hand. Read `eber.py` first: it is the judge.

Tests compare this file with it, value and gradient. What is gained is time: autograd records some eighty small
operations there, and none here.

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

One draw for each environment makes the sum over e exact, at a cost of m² densities for each row. With many
environments, two are drawn from r instead (`Draws.sampled`): the mean of v over the draws estimates sum_e r_e v_e
without bias, and so does its gradient, where the part through r is the score function with the other draw's v as
baseline. log p(y|x) stays exact, and the cost is linear in m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from eber.workspace import Workspace

LOG2_E = math.log2(math.e)
LN_2 = math.log(2.0)
EXP_FLOOR = -120.0
"""Two to the power of anything lower is zero beside one in float32, and many times slower to compute."""
N_SAMPLED = 2
"""Environments drawn for each row where not all are used."""


@dataclass(frozen=True)
class Draws:
    """Draws of z for each row, and what each is used for.

    Attributes
    ----------
    noise : (S, L, C, B) standard normal
    bound_weight : (S, C, B)
        Weight of each draw in the bound: p(e|x,y), or one over the number of sampled draws.
    tied : (S, C, B)
        Weight of each draw in the tie: one for the observed environment's.
    environments : (S, C, B) int64, or None
        The environment whose component each draw is from; None where C = m and draw c is environment c's.
    """

    noise: Tensor
    bound_weight: Tensor
    tied: Tensor
    environments: Tensor | None = None

    @classmethod
    def sampled(cls, r: Tensor, e: Tensor, uniform: Tensor, noise: Tensor) -> Draws:
        """N_SAMPLED draws from r = p(e|x,y), (S, m, B), by `uniform` (S, N_SAMPLED, B), and one of the observed e."""
        below = r.cumsum(1)[:, None] < uniform[:, :, None]  # (S, N_SAMPLED, m, B)
        drawn = below.sum(2).clamp_(max=r.shape[1] - 1)
        bound_weight, tied = torch.zeros_like(noise[:, 0]), torch.zeros_like(noise[:, 0])
        bound_weight[:, :N_SAMPLED] = 1 / N_SAMPLED
        tied[:, N_SAMPLED] = 1
        return cls(noise, bound_weight, tied, torch.cat([drawn, e[:, None]], 1))

    def select(self, values: Tensor) -> Tensor:
        """Entries of the environment axis that the draws are from: (S, m, B) -> (S, C, B), (S, n, m, B) -> ..."""
        return values if self.environments is None else values.gather(-2, self._index(values))

    def add_to(self, out: Tensor, values: Tensor) -> None:
        """Add (..., C, B) to the entries of `out`, (..., m, B), that `select` picks."""
        if self.environments is None:
            out.add_(values)
        else:
            out.scatter_add_(-2, self._index(values), values)

    def own(self, pairs: Tensor) -> Tensor:
        """Each draw with its own environment: (S, C, K, m, B) -> (S, C, K, B)."""
        if self.environments is None:
            return pairs.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2)
        S, C, K, _, B = pairs.shape
        return pairs.gather(3, self.environments[:, :, None, None].expand(S, C, K, 1, B))[:, :, :, 0]

    def add_to_own(self, pairs: Tensor, values: Tensor) -> None:
        """Add (S, C, K, B) to the entries that `own` picks."""
        if self.environments is None:
            self.own(pairs).add_(values)
        else:
            S, C, K, B = values.shape
            index = self.environments[:, :, None, None].expand(S, C, K, 1, B)
            pairs.scatter_add_(3, index, values[:, :, :, None])

    def _index(self, values: Tensor) -> Tensor:
        assert self.environments is not None
        if values.dim() == 3:
            return self.environments
        S, C, B = self.environments.shape
        return self.environments[:, None].expand(S, values.shape[1], C, B)


@dataclass(frozen=True)
class Posterior:
    """p(e|x,y) and what it is made of.

    Attributes
    ----------
    lp_y : (S, K, m, B) log p(k|x,e), slot 0 the observed label
    lp_e : (S, m, B) log p(e|x), h's or supplied
    r : (S, m, B) p(e|x,y)
    log_p_label : (S, B) log p(y|x)
    """

    lp_y: Tensor
    lp_e: Tensor
    r: Tensor
    log_p_label: Tensor

    @classmethod
    def of(cls, lp_y: Tensor, lp_e: Tensor) -> Posterior:
        """Bayes' rule."""
        joint = lp_y[:, 0] + lp_e
        log_r = torch.log_softmax(joint, 1)
        return cls(lp_y, lp_e, torch.softmax(joint, 1), joint[:, 0] - log_r[:, 0])


@dataclass(frozen=True)
class MixtureGradient:
    """Gradient of the sum over rows of the bound and the weighted tie, and what their terms are made of.

    Attributes
    ----------
    theta : (S, 2L, K, m, B), lp_y : (S, K, m, B), lp_e : (S, m, B)
        Gradients with respect to the components and to the logarithms of the weights.
    log_post : (2, S, C, B)
        log q(y|z;x) and log q(y|z;x,e) at every draw.
    log_joint : (2, S, C, B)
        log q(z,y;x) and log p(y,e|x) q(z;x,y,e) at every draw, up to the same constant.
    """

    theta: Tensor
    lp_y: Tensor
    lp_e: Tensor
    log_post: Tensor
    log_joint: Tensor


def mixture_gradient(
    theta: Tensor,
    posterior: Posterior,
    draws: Draws,
    z: Tensor,
    log_lik: Tensor,
    grad_z: Tensor,
    tie_weight: float,
    workspace: Workspace,
) -> MixtureGradient:
    """Gradient of ``sum_rows L + tie_weight · L_e`` for the observed e.

    Parameters
    ----------
    theta : (S, 2L, K, m, B)
        Means, then log standard deviations of q(z;x,k,e).
    z : (S, L, C, B)
        The draws.
    log_lik : (S, C, B)
        log p(y|z).
    grad_z : (S, L, C, B)
        The gradient through it; overwritten.
    """
    L = z.shape[1]
    mu, log_sigma = theta[:, :L], theta[:, L:]
    inv_sigma = torch.exp2(log_sigma * -LOG2_E)  # torch's exp2 is several times as fast as its exp

    # Every draw under every component (k, e), in base 2 and up to a constant. These are the only large arrays.
    u = workspace.take("u", (*z.shape[:3], *mu.shape[2:]), z)  # (S, L, C, K, m, B)
    torch.sub(z[:, :, :, None, None], mu.unsqueeze(2), out=u).mul_(inv_sigma.unsqueeze(2))
    log_p = posterior.lp_y + posterior.lp_e.unsqueeze(1)  # (S, K, m, B), log p(k,e|x)
    offset = log_p.sub_(log_sigma[:, 0] if L == 1 else log_sigma.sum(1)).mul_(LOG2_E).unsqueeze(1)
    joint = workspace.take("joint", (u.shape[0], *u.shape[2:]), z)  # (S, C, K, m, B)
    if L == 1:
        torch.addcmul(offset, u[:, 0], u[:, 0], value=-0.5 * LOG2_E, out=joint)
    else:
        torch.add(offset, u.square().sum(1), alpha=-0.5 * LOG2_E, out=joint)
    both = joint.new_empty(2, *joint.shape[:3], joint.shape[4])  # t and own, (2, S, C, K, B)
    t, own = both
    own.copy_(draws.own(joint))
    top = joint.amax(3, keepdim=True)
    responsibility = joint.sub_(top).clamp_(min=EXP_FLOOR).exp2_()  # not yet normalised over e
    mass = responsibility.sum(3)  # (S, C, K, B)
    torch.add(top.squeeze(3), mass.log2(), out=t)
    both.mul_(LN_2)
    log_post = torch.log_softmax(both, 3)[:, :, :, 0]  # (2, S, C, B)
    v = log_lik - log_post[0]

    # Of -log_softmax(t)[0] and -log_softmax(own)[0].
    grad_both = torch.softmax(both, 3)
    grad_both[:, :, :, 0].sub_(1)
    grad_t, grad_own = grad_both
    tied = draws.tied * tie_weight
    grad_t.mul_(draws.bound_weight.unsqueeze(2)).div_(mass)
    grad_own.mul_(tied.unsqueeze(2))
    a = responsibility.mul_(grad_t.unsqueeze(3))  # d / d joint
    draws.add_to_own(a, grad_own)
    grad_lp_y = a.sum(1)  # (S, K, m, B)
    grad_lp_e = grad_lp_y.sum(1)  # the part through own adds up to nothing over the labels
    # With one latent dimension a u takes the place of a, to touch less memory.
    au = a.mul_(u[:, 0]).unsqueeze(1) if L == 1 else torch.mul(u, a.unsqueeze(1), out=workspace.take("au", u.shape, z))
    grad_theta = torch.empty_like(theta)
    torch.mul(au.sum(2), inv_sigma, out=grad_theta[:, :L])
    torch.sub(u.mul_(au).sum(2), grad_lp_y.unsqueeze(1), out=grad_theta[:, L:])
    grad_z.sub_(au.mul_(inv_sigma.unsqueeze(2)).sum((3, 4)))
    through_scale = (z - draws.select(mu[:, :, 0])).mul_(grad_z)
    draws.add_to(grad_theta[:, :, 0], torch.cat([grad_z, through_scale], 1))  # through the draws themselves

    through_r = _through_posterior(draws, posterior.r, v)
    grad_lp_e.add_(through_r)
    grad_lp_label = grad_lp_y[:, 0].add_(through_r)
    draws.add_to(grad_lp_label, tied)  # log p(y|x,e) in L_e
    return MixtureGradient(grad_theta, grad_lp_y, grad_lp_e, log_post, both[:, :, :, 0])


def _through_posterior(draws: Draws, r: Tensor, v: Tensor) -> Tensor:
    """Gradient of ``sum_e r_e v_e + log p(y|x)`` through log p(y,e|x) at the observed label, (S, m, B)."""
    if draws.environments is None:
        return (v - (r * v).sum(1, keepdim=True)).add_(1).mul_(r)
    # E[v dlog r] over the draws, each with the mean of the others as its baseline; such differences add up to zero,
    # so that the normalisation of r needs no term of its own.
    v = v[:, :N_SAMPLED]
    advantage = (v - v.mean(1, keepdim=True)).mul_(1 / (N_SAMPLED - 1))
    return r.scatter_add(1, draws.environments[:, :N_SAMPLED], advantage)
