"""The default objective (stratified, tied, one sample from a component) without autograd, for models side by side.

`eber.py` is the readable form; `mixture.py` has the mixture terms and their gradient; here they meet the networks.
Where a network has an extractor of its own, autograd serves that extractor and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.method.model import EBERNetworks
from eber.nn.networks import stacked_features
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms
from eber.objectives.eber import TERMS
from eber.objectives.fused.decoder import StackedDecoder
from eber.objectives.fused.exact_mixture import ExactMixture
from eber.objectives.fused.label_order import LabelOrder
from eber.objectives.fused.mixture_arrays import Sizes, integrand_rows
from eber.objectives.fused.networks import EnvironmentNetwork, LabelNetwork, PosteriorNetwork
from eber.objectives.fused.sampled_mixture import SampledMixture


class FusedEBERObjective:
    """`EBERObjective` with reading ``"stratified"`` and one sample, for S models at once and without autograd.

    Parameters
    ----------
    env_loss_weight, tie_weight : float
        As for `EBERObjective`.
    sampled : bool
        Whether the couplings use a few environments drawn from p(e|x,y) instead of all; see `sampled_mixture`.
    """

    def __init__(self, env_loss_weight: float = 1.0, tie_weight: float = 0.0, sampled: bool = False) -> None:
        self.env_loss_weight, self.tie_weight, self.sampled = env_loss_weight, tie_weight, sampled
        self._plans: dict[int, _Plan] = {}

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        size = batch.y.shape[1]
        plan = self._plans.get(size)
        if plan is None:
            plan = self._plans[size] = _Plan(self, stack, batch)
        plan.see(batch.x)
        with torch.inference_mode():  # no operation below is recorded, which saves a seventh of their time
            values = plan.forward(batch, generators)
        return LossTerms(("loss", *TERMS), values, plan.backward)


class _Plan:
    """Everything that a step on batches of B rows needs: networks, mixture and the arrays between them, made once."""

    def __init__(self, objective: FusedEBERObjective, stack: ModuleStack, batch: Batch) -> None:
        module = stack.modules[0]
        assert isinstance(module, EBERNetworks)
        (S, B), K, m = batch.y.shape, module.n_classes, module.n_environments
        width = (module.f0.first or module.f0.head).in_features
        sizes, tie, like = Sizes(S, K, m, module.latent_dim, B), objective.tie_weight, stack.vector
        self.mixture = mixture = (
            SampledMixture(sizes, tie, like, shared=module.membership is not None)
            if objective.sampled
            else ExactMixture(sizes, tie, like, weighted_rows=batch.weight is not None)
        )
        self.stack, self.order = stack, LabelOrder(S, K, B, stack.vector)
        inputs = None if module.f0.extractor else stack.vector.new_ones(S, B, width + 1)
        self._rows = None if inputs is None else inputs[..., :-1]
        self.g = PosteriorNetwork(stack, B, inputs, self.order, mixture)
        self.f0 = LabelNetwork(stack, B, inputs, self.order, mixture)
        supplied = batch.log_p_e_given_x is not None
        self.h = EnvironmentNetwork(stack, B, inputs, mixture, objective.env_loss_weight, supplied)
        self._loss = _Loss(objective, mixture, self.h.membership.has_own_row)
        label, draws = self.order.one_hot[:, :, :B], mixture.draws
        self.f1 = StackedDecoder(
            stack, module.f1, draws.points, label, self._loss.draw_weights, draws.log_lik, draws.grad_points
        )
        self._scale = stack.vector.new_tensor(-1 / B)

    def see(self, x: Tensor) -> None:
        """Work out what enters the networks in place of x."""
        if self._rows is not None:
            self._rows.copy_(stacked_features(self.f0.networks, x))
        else:
            for network in (self.g, self.f0, self.h):
                network.extract(x)

    def forward(self, batch: Batch, generators: Sequence[torch.Generator]) -> Tensor:
        """The loss and its terms, (7, S)."""
        mixture = self.mixture
        self.order.see(batch.y)
        self.g.forward()
        self.f0.forward()
        self.h.forward(batch.log_p_e_given_x)
        mixture.weigh()
        self.h.membership.forward(batch.e)
        mixture.draw(batch.e, generators)
        if batch.weight is not None:
            mixture.weigh_rows(batch.weight)
        self._loss.weigh_draws()
        self.f1()
        mixture.differentiate(batch.weight)
        return self._loss.terms()

    def backward(self) -> None:
        """Put the gradient of the loss where it belongs."""
        networks = (self.h, self.g, self.f0)
        with torch.inference_mode():
            for network in networks:
                network.backward()
        # Hand the gradient of the features on to autograd.
        found = [network.through_features() for network in networks if network.has_trained_features]
        if found:
            torch.autograd.backward([features for features, _ in found], [grad for _, grad in found])
        self.stack.gradient.mul_(self._scale)  # all above is of the sum over rows that is maximised


class _Loss:
    """The loss and its terms as weighted sums of what the mixture has worked out at the draws."""

    def __init__(
        self, objective: FusedEBERObjective, mixture: ExactMixture | SampledMixture, has_own_row: bool
    ) -> None:
        draws, (S, K, _, B) = mixture.draws, mixture.inputs.lp_y.shape
        self.draw_weights, self._tie_weight = torch.empty_like(draws.log_lik), objective.tie_weight
        self._bound_weights, self._tie_weights = draws.weights.unbind(1)
        self._mixing = _mixing(K, objective, has_own_row).to(draws.weights) / B
        self._integrands, self._weights = draws.integrands.flatten(2), draws.weights.flatten(2).mT
        self._sums = draws.weights.new_empty(S, self._integrands.shape[1], 2)
        self._sums_by_model = self._sums.view(S, -1).mT

    def weigh_draws(self) -> None:
        """The weight of each draw's log p(y|z), in bound and tie together."""
        torch.add(self._bound_weights, self._tie_weights, alpha=self._tie_weight, out=self.draw_weights)

    def terms(self) -> Tensor:
        """(7, S)."""
        torch.bmm(self._integrands, self._weights, out=self._sums)
        return torch.mm(self._mixing, self._sums_by_model)


def _mixing(K: int, objective: FusedEBERObjective, own_row: bool) -> Tensor:
    """The loss and its TERMS as combinations of the integrands' sums over draws and rows, (7, 2·integrands).

    Each integrand has two sums: with the weights of the bound, and with those of the tie.
    """
    rows = integrand_rows(K)
    unit = torch.eye(2 * (max(rows.values()) + 1), dtype=torch.float64)
    bound, tied = ({name: unit[2 * row + j] for name, row in rows.items()} for j in range(2))
    log_p_label = bound["lp_y"] + bound["lp_e"] - bound["log_r"]  # log p(y|x), by Bayes' rule at any environment
    kl = bound["log_post_own"] - bound["lp_y"]  # log q(z;x,y,e) - log q(z;x,e)
    # log q(z;x,y,e) - log q(z;x,y)
    posterior = bound["log_joint_own"] - bound["lp_y"] - bound["lp_e"] - bound["log_joint"] + log_p_label
    total = bound["log_post"] - log_p_label  # KL(q(z;x,y) || q(z;x)) = kl - posterior + prior coupling
    environment = -tied["log_p_observed" if own_row else "lp_e"]
    tie = tied["log_lik"] - tied["log_post_own"] + tied["lp_y"]
    loss = total - bound["log_lik"] + objective.env_loss_weight * environment - objective.tie_weight * tie
    return torch.stack([loss, bound["log_lik"], kl, posterior, total - kl + posterior, environment, tie])
