"""The mixture terms of `stratified.py` at a cost that is linear in the number of environments.

Two environments are drawn from r = p(e|x,y) in place of all: the mean of v over the draws estimates sum_e r_e v_e
without bias, and so does its gradient, where the part through r is the score function with the other draw's v as
baseline. log p(y|x) stays exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eber.objectives.stratified import Mixture

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
    def n_draws(m: int) -> int:
        """C, the number of draws for each row."""
        return N_SAMPLED + 1

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
        self._theta_index = self.environments[:, None].expand(S, 2 * L, C, B)
        self._own_index = self.environments[:, :, None, None].expand(S, C, K, 1, B)
        self._own_joint_pairs, self._grad_own_pairs = (
            array.transpose(1, 2)[:, :, :, None] for array in (self._own_joint, self._grad_own)
        )
        self._theta_label, self._grad_theta_label = self.theta[:, :, 0], self.grad_theta[:, :, 0]
        self._theta_drawn, self._through_theta = self.theta.new_empty(2, S, 2 * L, C, B)
        self._mu_drawn, self._tau_drawn = self._theta_drawn.chunk(2, 1)
        self._through_mu, self._through_log_sigma = self._through_theta.chunk(2, 1)
        self._v_drawn, self._advantage = self._v[:, :N_SAMPLED], self._v.new_empty(S, N_SAMPLED, B)
        self._baseline, self._share = self._v.new_empty(S, 1, B), self._v.new_tensor(1 / (N_SAMPLED - 1))

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
        torch.gather(self._theta_label, 2, self._theta_index, out=self._theta_drawn)
        torch.div(self.noise, self._tau_drawn.exp2_(), out=self._from_mean)
        torch.add(self._mu_drawn, self._from_mean, out=self._z)

    def _copy_own(self) -> None:
        torch.gather(self._a, 3, self._own_index, out=self._own_joint_pairs)

    def _add_to_own(self) -> None:
        self._a.scatter_add_(3, self._own_index, self._grad_own_pairs)

    def _add_through_draws(self) -> None:
        self._through_mu.copy_(self._grad_z)
        torch.mul(self._grad_z, self._from_mean, out=self._through_log_sigma)
        self._grad_theta_label.scatter_add_(2, self._theta_index, self._through_theta)

    def _through_posterior(self) -> Tensor:
        # E[v dlog r] over the draws, each with the mean of the others as its baseline; such differences add up to zero,
        # so that the normalisation of r needs no term of its own.
        torch.mean(self._v_drawn, 1, keepdim=True, out=self._baseline)
        torch.sub(self._v_drawn, self._baseline, out=self._advantage).mul_(self._share)
        return self._through_r.copy_(self.r).scatter_add_(1, self._drawn, self._advantage)
