"""The mixture terms of `stratified.py` at a cost that is linear in the number of environments.

Two environments are drawn from r = p(e|x,y) in place of all: the mean of v over the draws estimates sum_e r_e v_e
without bias, and so does its gradient, where the part through r is the score function with the other draw's v as
baseline. log p(y|x) stays exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eber.objectives.fused.mixture import LN_2, Mixture

N_SAMPLED = 2
"""Environments drawn for each row."""


class SampledMixture(Mixture):
    """A mixture with N_SAMPLED draws from environments that are drawn from p(e|x,y), and one from the observed one's.

    Fill `uniform` with numbers between zero and one, and call `choose`, after `weigh`.

    Attributes
    ----------
    uniform : (S, B, N_SAMPLED)
    environments : (S, C, B)
        The environment whose component each draw is from.
    """

    @staticmethod
    def n_draws(m: int) -> tuple[int, int]:
        """As `Mixture.n_draws`: the bound has no use for the draw from the observed environment, which is the tie's."""
        return N_SAMPLED + 1, N_SAMPLED

    def _of_environments(self, at_draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        S, K, m, _, B = self.sizes
        self._at_draws, new = at_draws, at_draws.new_empty
        self.weights.copy_(torch.tensor([[1 / N_SAMPLED] * N_SAMPLED + [0], [0] * N_SAMPLED + [1]])[:, :, None])
        self.uniform, self._cumulative = new(S, B, N_SAMPLED), new(S, B, m)
        return new(S, K + 2, m, B), new(S, m, B), new(S, m, B)

    def _plan(self) -> None:
        super()._plan()
        S, K, _, L, B = self.sizes
        C = N_SAMPLED + 1
        self._sorted_in = torch.empty(S, B, N_SAMPLED, dtype=torch.int64)
        self.environments = torch.zeros(S, C, B, dtype=torch.int64)
        self._drawn, self._observed_environment = self.environments[:, :N_SAMPLED], self.environments[:, N_SAMPLED]
        self._logs_index = self.environments[:, None].expand(S, K + 2, C, B)
        # The components of the draws' own environments, for all labels: mu and tau, u, and the gradient.
        index = self.environments[:, None, None]
        self._theta_index, self._grads_index = index.expand(S, 2 * L, K, C, B), index.expand(S, 1 + 2 * L, K, C, B)
        self._theta_own, self._u_own = self.theta.new_empty(S, 2 * L, K, C, B), self.theta.new_empty(S, L, K, C, B)
        self._mu_own, self._tau_own = self._theta_own.chunk(2, 1)
        self._tau_and_u_own = list(zip(self._tau_own.unbind(1), self._u_own.unbind(1), strict=True))  # by dimension
        self._inv_sigma_own = torch.empty_like(self._u_own)
        self._mu_drawn, self._inv_sigma_drawn = self._mu_own[:, :, 0], self._inv_sigma_own[:, :, 0]
        self._lp_y_own, self._lp_e_own = self._at_draws[:, :K], self._at_draws[:, K : K + 1]
        self._grads_own = self.theta.new_empty(S, 1 + 2 * L, K, C, B)
        self._grad_lp_y_own, self._grad_mu_own, self._grad_log_sigma_own = self._grads_own.split([1, L, L], 1)
        self._grad_mu_drawn, self._grad_log_sigma_drawn = self._grad_mu_own[:, :, 0], self._grad_log_sigma_own[:, :, 0]
        self._z_own, self._grad_own_for_latents = self._z[:, :, None], self._grad_own[:, None]
        self._in_base_2, self._top_in_base_2 = self._t, self._top
        self._moments_of_draws = self._moments.unbind(2)
        self._v_drawn, self._advantage = self._v[:, :N_SAMPLED], self._v.new_empty(S, N_SAMPLED, B)
        self._total = self._v.new_empty(S, 1, B)

    def choose(self, e: Tensor) -> None:
        """Environments of the draws, with the observed e (S, B)."""
        torch.cumsum(self.r.mT, 2, out=self._cumulative)
        torch.searchsorted(self._cumulative, self.uniform, out=self._sorted_in)
        torch.clamp(self._sorted_in.mT, max=self.sizes.m - 1, out=self._drawn)  # r may sum to a little less than one
        self._observed_environment.copy_(e)
        torch.gather(self.logs, 2, self._logs_index, out=self._at_draws)

    def draw(self) -> None:
        """As `Mixture.draw`."""
        torch.exp2(self._tau, out=self._inv_sigma)
        torch.gather(self.theta, 3, self._theta_index, out=self._theta_own)
        torch.exp2(self._tau_own, out=self._inv_sigma_own)
        torch.div(self.noise, self._inv_sigma_drawn, out=self._from_mean)
        torch.add(self._mu_drawn, self._from_mean, out=self._z)

    def _find_own(self) -> None:
        # log p(k,e|x) - sum_l log sigma - u²/2
        torch.sub(self._z_own, self._mu_own, out=self._u_own).mul_(self._inv_sigma_own)
        torch.add(self._lp_y_own, self._lp_e_own, out=self._own_joint)
        for tau, u in self._tau_and_u_own:
            self._own_joint.add_(tau, alpha=LN_2).addcmul_(u, u, value=-0.5)

    def _through_own(self) -> None:
        # d own/d mu = u/sigma and d own/d log sigma = u² - 1; `_add_through_draws` puts it where it belongs.
        self._grad_lp_y_own.copy_(self._grad_own_for_latents)
        torch.mul(self._u_own, self._grad_lp_y_own, out=self._grad_log_sigma_own)
        torch.mul(self._grad_log_sigma_own, self._inv_sigma_own, out=self._grad_mu_own)
        self._grad_log_sigma_own.mul_(self._u_own).sub_(self._grad_lp_y_own)
        self._grad_z.sub_(self._grad_mu_own.sum(2))

    def _sum_over_draws(self) -> None:
        self._au.mul_(self._inv_sigma_for_draws)
        first, second = self._moments_of_draws
        torch.add(first, second, out=self._grads)  # torch.sum takes three times as long over two

    def _add_through_draws(self) -> None:
        self._grad_mu_drawn.add_(self._grad_z)
        self._grad_log_sigma_drawn.addcmul_(self._grad_z, self._from_mean)
        self._grads.scatter_add_(3, self._grads_index, self._grads_own)

    def _add_through_posterior(self) -> None:
        # E[v dlog r] over the two draws, each with the other's v as its baseline: half of their difference is what v
        # is above the mean. Such differences add up to zero, so that the normalisation of r needs no term of its own.
        torch.sum(self._v_drawn, 1, keepdim=True, out=self._total)
        torch.sub(self._v_drawn, self._total, alpha=1 / N_SAMPLED, out=self._advantage)
        self._grad_lp_label.add_(self.r).scatter_add_(1, self._drawn, self._advantage)
