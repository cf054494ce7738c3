"""The mixture terms of `mixture.py` at a cost that is linear in the number of environments.

Two environments are drawn from r = p(e|x,y) in place of all: the mean of v over the draws estimates sum_e r_e v_e
without bias, and so does its gradient, where the part through r is the score function with the other draw's v as
baseline. log p(y|x) stays exact. One more draw is the observed environment's, which the tie has a use for and the
bound has not; where environments share components it is one component's, drawn from the weights that the tie holds
fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

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

N_SAMPLED = 2
"""Environments drawn for each row."""


class SampledMixture:
    """As `ExactMixture`, with N_SAMPLED draws from environments that are drawn from p(e|x,y), and one observed.

    Attributes
    ----------
    inputs, draws, gradients : MixtureInputs, Draws, MixtureGradients
    choice : Choice

    Parameters
    ----------
    shared : bool
        Whether environments are mixtures of the components, with the weights `inputs.observed`.
    """

    def __init__(self, sizes: Sizes, tie_weight: float, like: Tensor, shared: bool = False) -> None:
        S, K, m, L, B = sizes
        C, D, new = N_SAMPLED + 1, N_SAMPLED, like.new_empty
        self.draws = draws = Draws.empty(sizes, C, D, like)
        self._shares = like.new_tensor([[1 / N_SAMPLED] * N_SAMPLED + [0], [0] * N_SAMPLED + [1]])[:, :, None]
        draws.weights.copy_(self._shares)
        logs = new(S, K + 2, m, B)
        self.inputs = MixtureInputs.in_arrays(new(S, 2 * L, K, m, B), logs, new(S, m, B), new(S, m, B))
        self.gradients = MixtureGradients.empty(sizes, like)
        work = Workspace.empty(sizes, C, D, like)
        self.weigh, self.choice = Weighing(self.inputs), Choice(self.inputs, logs, draws, shared)
        self._own = _OwnGathered(self.inputs, draws, work, self.gradients, self.choice)
        self._offset = Offset(self.inputs, work.top)
        self._densities = Densities(self.inputs, draws, work, self._offset)
        self._posterior = LabelPosterior(draws, work, tie_weight)
        self._sums = _SumsOverDraws(draws, work, self.gradients)
        self._components = ComponentGradients(draws, work)
        self._through_weights = _ThroughSampledWeights(self.inputs, draws, self.gradients, self.choice, tie_weight)

    def draw(self, e: Tensor, generators: Sequence[torch.Generator]) -> None:
        """Draws from the component of the observed label in environments drawn from r, and in the observed e (S, B)."""
        self.draws.fill_noise(generators)
        self.choice.fill_uniform(generators)
        self.choice.choose(e)
        self._own.draw()

    def weigh_rows(self, weight: Tensor) -> None:
        """Let each row count as much as its weight says, (S, B)."""
        torch.mul(self._shares, weight[:, None, None], out=self.draws.weights)
        self.inputs.r.mul_(weight[:, None])  # the environments are drawn by now
        self.inputs.observed.mul_(weight[:, None])

    def differentiate(self, weight: Tensor | None = None) -> None:
        """Values at the draws, and the gradient; with the weights of rows that `weigh_rows` was given, if it was."""
        self._offset.find()
        self._densities.find()
        self._own.find_joint()
        self._densities.sum_over_environments()
        self._sums.to_natural_logarithms()
        self._posterior()
        self._own.differentiate()
        self._components.find_moments()
        self._sums()
        from_squares(self.gradients)
        self._components.pull_draws()
        self._own.move_draws()
        self._through_weights(weight)


class Choice:
    """The environments of the draws.

    Attributes
    ----------
    uniform, of_observed : (S, B, N_SAMPLED), (S, B, 1)
        Numbers between zero and one, by which those from p(e|x,y) are drawn, and the observed environment's component.
    environments : (S, C, B)
        The environment whose component each draw is from.
    drawn : (S, N_SAMPLED, B)
        Of them those that were drawn.
    """

    def __init__(self, inputs: MixtureInputs, logs: Tensor, draws: Draws, shared: bool) -> None:
        (S, m, B), C = inputs.r.shape, draws.noise.shape[2]
        self.uniform, self.of_observed = inputs.r.new_empty(S, B, N_SAMPLED), inputs.r.new_empty(S, B, 1)
        self._uniform_of_models = list(zip(self.uniform.unbind(), self.of_observed.unbind(), strict=True))
        self.environments = torch.zeros(S, C, B, dtype=torch.int64)
        self.drawn, self._observed = self.environments[:, :N_SAMPLED], self.environments[:, N_SAMPLED:]
        self._r, self._weights, self._shared = inputs.r, inputs.observed, shared
        self._cumulative = inputs.r.new_empty(S, B, m)
        self._logs, self._logs_at_draws = logs, draws.logs
        self._index = self.environments[:, None].expand(draws.logs.shape)

    def fill_uniform(self, generators: Sequence[torch.Generator]) -> None:
        """Each model's from its own generator."""
        for (of_model, of_observed), generator in zip(self._uniform_of_models, generators, strict=True):
            of_model.uniform_(generator=generator)
            if self._shared:
                of_observed.uniform_(generator=generator)

    def choose(self, e: Tensor) -> None:
        """Environments of the draws, with the observed e (S, B), and the logarithms of their weights."""
        self._draw(self._r, self.uniform, self.drawn)
        if self._shared:
            self._draw(self._weights, self.of_observed, self._observed)
        else:
            self._observed.copy_(e[:, None])
        torch.gather(self._logs, 2, self._index, out=self._logs_at_draws)

    def _draw(self, weights: Tensor, uniform: Tensor, out: Tensor) -> None:
        torch.cumsum(weights.mT, 2, out=self._cumulative)
        places = torch.searchsorted(self._cumulative, uniform)
        torch.clamp(places.mT, max=weights.shape[1] - 1, out=out)  # rounded, weights may sum to less than one


class _OwnGathered:
    """Each draw under the components of its own environment, for all labels, which are gathered."""

    def __init__(
        self, inputs: MixtureInputs, draws: Draws, work: Workspace, gradients: MixtureGradients, choice: Choice
    ) -> None:
        S, L, C, B = draws.noise.shape
        K, new = inputs.lp_y.shape[1], inputs.theta.new_empty
        index = choice.environments[:, None, None]
        theta, u, inv_sigma = new(S, 2 * L, K, C, B), new(S, L, K, C, B), new(S, L, K, C, B)
        mu, tau = theta.chunk(2, 1)
        self._all = inputs.tau, work.inv_sigma
        self._gathered = inputs.theta, index.expand(theta.shape), theta, tau, inv_sigma
        self._of_label = mu[:, :, 0], inv_sigma[:, :, 0], draws.noise, draws.from_mean, draws.z
        self._lp_y, self._lp_e, self._joint = draws.logs[:, :K], draws.logs[:, K : K + 1], draws.joints[:, 1]
        self._residual = draws.z[:, :, None], mu, inv_sigma, u
        self._by_dimension = list(zip(tau.unbind(1), u.unbind(1), strict=True))
        self._grads = new(S, 1 + 2 * L, K, C, B)
        lp_y, grad_mu, grad_log_sigma = self._grads.split([1, L, L], 1)
        self._grad_parts = work.grad_joints[:, 1][:, None], lp_y, grad_mu, grad_log_sigma, draws.grad_z
        self._moved = grad_mu[:, :, 0], grad_log_sigma[:, :, 0], draws.grad_z, draws.from_mean
        self._sums, self._sums_index = gradients.sums, index.expand(self._grads.shape)

    def draw(self) -> None:
        """z_c = mu + sigma · noise, of the component of the observed label and the draw's environment."""
        theta, index, theta_own, tau_own, inv_sigma_own = self._gathered
        mu, inv_sigma, noise, from_mean, z = self._of_label
        tau, all_inv_sigma = self._all
        torch.exp2(tau, out=all_inv_sigma)
        torch.gather(theta, 3, index, out=theta_own)
        torch.exp2(tau_own, out=inv_sigma_own)
        torch.div(noise, inv_sigma, out=from_mean)
        torch.add(mu, from_mean, out=z)

    def find_joint(self) -> None:
        """own[c,k] = log p(k,e|x) - sum_l log sigma - u²/2."""
        z, mu, inv_sigma, u = self._residual
        torch.sub(z, mu, out=u).mul_(inv_sigma)
        torch.add(self._lp_y, self._lp_e, out=self._joint)
        for tau, u_of_dimension in self._by_dimension:
            self._joint.add_(tau, alpha=LN_2).addcmul_(u_of_dimension, u_of_dimension, value=-0.5)

    def differentiate(self) -> None:
        """d own/d mu = u/sigma and d own/d log sigma = u² - 1; `move_draws` puts it where it belongs."""
        grad_own, lp_y, grad_mu, grad_log_sigma, grad_z = self._grad_parts
        _, _, inv_sigma, u = self._residual
        lp_y.copy_(grad_own)
        torch.mul(u, lp_y, out=grad_log_sigma)
        torch.mul(grad_log_sigma, inv_sigma, out=grad_mu)
        grad_log_sigma.mul_(u).sub_(lp_y)
        grad_z.sub_(grad_mu.sum(2))

    def move_draws(self) -> None:
        """What theta changes by moving the draws, and all that goes through own."""
        grad_mu, grad_log_sigma, grad_z, from_mean = self._moved
        grad_mu.add_(grad_z)
        grad_log_sigma.addcmul_(grad_z, from_mean)
        self._sums.scatter_add_(3, self._sums_index, self._grads)


class _SumsOverDraws:
    """Sums of a, a u / sigma and a u² over the draws of the bound; a u becomes a u / sigma."""

    def __init__(self, draws: Draws, work: Workspace, gradients: MixtureGradients) -> None:
        self._au, self._inv_sigma, self._sums = work.au, work.inv_sigma[:, :, None], gradients.sums
        self._of_draws = work.moments.unbind(2)
        self._t, self._mass = draws.joints[:, 0, :, : draws.n_in_bound], work.mass.transpose(1, 2)
        self._top, self._ln_2 = work.top, work.u.new_tensor(LN_2)

    def to_natural_logarithms(self) -> None:
        """t from the sums over environments."""
        torch.log2(self._mass, out=self._t)
        self._t.add_(self._top).mul_(self._ln_2)

    def __call__(self) -> None:
        """Fill them in."""
        self._au.mul_(self._inv_sigma)
        first, second = self._of_draws
        torch.add(first, second, out=self._sums)  # torch.sum takes three times as long over two


class _ThroughSampledWeights:
    """The gradient through log p(y,e|x) at the observed label, estimated, and those of lp_y and lp_e."""

    def __init__(
        self, inputs: MixtureInputs, draws: Draws, gradients: MixtureGradients, choice: Choice, tie_weight: float
    ) -> None:
        self._log_lik, self._log_post_label = draws.log_lik, draws.log_post[:, 0, 0]
        self._v = contiguous(self._log_lik)
        self._v_drawn = self._v[:, :N_SAMPLED]
        self._advantage, self._total = contiguous(self._v_drawn), contiguous(self._v[:, :1])
        self._r, self._drawn = inputs.r, choice.drawn
        self._observed, self._tie_weight = inputs.observed, tie_weight
        self._grad_lp_y, self._grad_lp_label, self._grad_lp_e = gradients.lp_y, gradients.lp_y[:, 0], gradients.lp_e

    def __call__(self, weight: Tensor | None) -> None:
        """Add them to the gradients."""
        torch.sub(self._log_lik, self._log_post_label, out=self._v)
        if weight is not None:
            self._v.mul_(weight[:, None])
        # E[v dlog r] over the two draws, each with the other's v as its baseline: half of their difference is what v
        # is above the mean. Such differences add up to zero, so that the normalisation of r needs no term of its own.
        torch.sum(self._v_drawn, 1, keepdim=True, out=self._total)
        torch.sub(self._v_drawn, self._total, alpha=1 / N_SAMPLED, out=self._advantage)
        self._grad_lp_label.add_(self._r).scatter_add_(1, self._drawn, self._advantage)
        torch.sum(self._grad_lp_y, 1, out=self._grad_lp_e)  # the part through own adds up to nothing over the labels
        self._grad_lp_label.add_(self._observed, alpha=self._tie_weight)  # log p(y|x,e) in L_e
