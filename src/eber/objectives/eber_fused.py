"""The default objective (stratified, tied, one sample from a component) without autograd, for models side by side.

`eber.py` is the readable form; `stratified.py` has the mixture terms and their gradient; here they meet the networks.
Where a network has an extractor of its own, autograd serves that extractor and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from eber.conditional_mlp import StackedMLP
from eber.model import EBERNetworks
from eber.networks import ConditionalNetwork, stacked_features
from eber.objectives.base import Batch, LossTerms
from eber.objectives.decoder import StackedDecoder
from eber.objectives.eber import TERMS
from eber.objectives.stratified import N_SAMPLED, Draws, Posterior, mixture_gradient
from eber.stack import ModuleStack
from eber.workspace import Workspace


class FusedEBERObjective:
    """`EBERObjective` with reading ``"stratified"`` and one sample, for S models at once and without autograd.

    Parameters
    ----------
    env_loss_weight, tie_weight : float
        As for `EBERObjective`.
    sampled : bool
        Whether the couplings use a few environments drawn from p(e|x,y) instead of all; see `stratified`.
    """

    def __init__(self, env_loss_weight: float = 1.0, tie_weight: float = 0.0, sampled: bool = False) -> None:
        self.env_loss_weight, self.tie_weight, self.sampled = env_loss_weight, tie_weight, sampled
        self._workspace = Workspace()
        self._parts: _Parts | None = None
        self._combinations = _combinations(env_loss_weight, tie_weight)

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        if self._parts is None:
            self._parts = _Parts(stack)
        self._parts.see(batch.x)
        with torch.inference_mode():  # no operation below is recorded, which saves a seventh of their time
            values, backward = self._evaluate(self._parts, batch, generators)
        return LossTerms(("loss", *TERMS), values, backward)

    def _evaluate(
        self, parts: _Parts, batch: Batch, generators: Sequence[torch.Generator]
    ) -> tuple[Tensor, Callable[[], None]]:
        module, y, (S, B) = parts.module, batch.y, batch.y.shape
        # Slot k of a row stands for class (y + k) mod K, so that slot 0 is the observed label.
        slots = (y.unsqueeze(1) + module.class_index).remainder_(module.n_classes)  # (S, K, B)
        one_hot = (slots.view(S, 1, -1) == module.class_index).to(batch.x.dtype)  # (S, K, K·B)
        theta = parts.bound.forward(parts.g.forward(one_hot))  # (S, 2L, K, m, B)
        p_y = torch.log_softmax(parts.f0.forward(), 1)  # (S, K, m, B), classes in their own order
        lp_h = torch.log_softmax(parts.h.forward().mul_(module.environment_gain), 1)  # (S, m, B)
        slot_index = slots.unsqueeze(2).expand(p_y.shape)
        supplied = batch.log_p_e_given_x
        posterior = Posterior.of(p_y.gather(1, slot_index), lp_h if supplied is None else supplied)
        observed, log_p_observed = parts.membership.forward(lp_h, batch.e)  # (S, m, B), (S, B)
        draws = self._draw(module.latent_dim, posterior.r, batch.e, observed, generators)
        mu, log_sigma = draws.select(theta[:, :, 0]).split(module.latent_dim, 1)  # (S, L, C, B), of the observed label
        z = torch.addcmul(mu, torch.exp(log_sigma), draws.noise)
        weight = torch.add(draws.bound_weight, draws.tied, alpha=self.tie_weight)
        log_lik, grad_z = parts.f1(z, one_hot[:, :, :B], weight)
        result = mixture_gradient(theta, posterior, draws, z, log_lik, grad_z, self.tie_weight, self._workspace)

        def backward() -> None:
            with torch.inference_mode():
                grad_lp_h = parts.membership.backward(self.env_loss_weight)
                if supplied is None:
                    grad_lp_h.add_(result.lp_e)
                grad_lp_y = torch.empty_like(result.lp_y).scatter_(1, slot_index, result.lp_y)
                parts.g.backward(parts.bound.backward(result.theta))
                parts.f0.backward(_through_log_softmax(grad_lp_y, p_y))
                parts.h.backward(_through_log_softmax(grad_lp_h, lp_h).mul_(module.environment_gain))
            parts.through_extractors()
            parts.stack.gradient.mul_(-1 / B)  # all above is of the sum over rows that is maximised

        per_draw = (draws.select(values) for values in (posterior.lp_y[:, 0], posterior.lp_e))
        integrands = torch.stack([log_lik, *result.log_post, *result.log_joint, *per_draw], 1)  # INTEGRANDS
        weights = torch.stack([draws.bound_weight, draws.tied], 3).flatten(1, 2)  # (S, C·B, 2)
        sums = torch.bmm(integrands.flatten(2), weights).view(S, -1)  # (S, 2·INTEGRANDS)
        others = torch.stack([posterior.log_p_label, log_p_observed], 1).sum(2)
        sums = torch.cat([sums, others], 1)
        return (self._combinations.to(sums.dtype) @ sums.mT).mul_(1 / B), backward

    def _draw(
        self, latent_dim: int, r: Tensor, e: Tensor, observed: Tensor, generators: Sequence[torch.Generator]
    ) -> Draws:
        S, m, B = r.shape
        noise = r.new_empty(S, latent_dim, N_SAMPLED + 1 if self.sampled else m, B)
        for of_model, generator in zip(noise, generators, strict=True):
            of_model.normal_(generator=generator)
        if not self.sampled:
            return Draws(noise, r, observed)
        uniform = torch.stack(
            [torch.rand(N_SAMPLED, B, generator=generator, dtype=r.dtype) for generator in generators]
        )
        return Draws.sampled(r, e, uniform, noise)


class _Parts:
    """The networks of S models, each with its gradient by hand."""

    def __init__(self, stack: ModuleStack) -> None:
        module = stack.modules[0]
        assert isinstance(module, EBERNetworks)
        self.stack, self.module = stack, module
        self.g, self.f0, self.h = (_Network(stack, name) for name in ("g", "f0", "h"))
        self.f1 = StackedDecoder(stack, module.f1)
        self.bound = _SoftBound(module.bounds)
        self.membership = _Own(module) if module.membership is None else _Shared(stack, module.environment_gain)

    def see(self, x: Tensor) -> None:
        """Work out what enters the networks in place of x."""
        for network in (self.g, self.f0, self.h):
            network.features = stacked_features(network.networks, x)

    def through_extractors(self) -> None:
        """Hand the gradient of the features on to autograd."""
        found = [
            (n.features, n.grad_features.clone()) for n in (self.g, self.f0, self.h) if n.grad_features is not None
        ]
        if found:
            torch.autograd.backward([features for features, _ in found], [grad for _, grad in found])


class _Network:
    """One of the networks of S models: its output for a batch, and the gradient of its parameters."""

    def __init__(self, stack: ModuleStack, name: str) -> None:
        self.networks: list[ConditionalNetwork] = [getattr(module, name) for module in stack.modules]
        names = [f"{name}.{parameter}" for parameter in self.networks[0].parameter_names]
        parameters = [stack.parameter(parameter).detach() for parameter in names]
        self.mlp = StackedMLP(self.networks[0].layout, parameters, [stack.grad(parameter) for parameter in names])
        self.features: Tensor  # (S, B, in_features)
        self.grad_features: Tensor | None = None

    def forward(self, one_hot: Tensor | None = None) -> Tensor:
        """The output, (S, out, *contexts, B)."""
        return self.mlp.forward(self.features, one_hot)

    def backward(self, grad_out: Tensor) -> None:
        """Put the gradient of the parameters where it belongs; keep that of an extractor's features."""
        self.grad_features = self.mlp.backward(grad_out, features_too=self.features.requires_grad)


class _Own:
    """Every environment is its own component."""

    def __init__(self, module: EBERNetworks) -> None:
        self.index = module.environment_index

    def forward(self, lp_h: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of the components for the observed environment (S, m, B), and its log-probability (S, B)."""
        self.weights = (self.index == e.unsqueeze(1)).to(lp_h.dtype)
        return self.weights, (self.weights * lp_h).sum(1)

    def backward(self, weight: float) -> Tensor:
        """Gradient of the weighted sum of log-probabilities with respect to lp_h."""
        return self.weights * weight


class _Shared:
    """Environments share pseudo-environments; see `EBERNetworks.components_of`."""

    def __init__(self, stack: ModuleStack, gain: float) -> None:
        self.table, self.grad, self.gain = stack.parameter("membership").detach(), stack.grad("membership"), gain

    def forward(self, lp_h: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        """As `_Own`'s."""
        self.log_p = torch.log_softmax(self.table * self.gain, 2)  # (S, m, n_observed)
        self.index = e.unsqueeze(1).expand(lp_h.shape)
        joint = self.log_p.gather(2, self.index).add_(lp_h)
        self.weights = torch.softmax(joint, 1)
        return self.weights, torch.logsumexp(joint, 1)

    def backward(self, weight: float) -> Tensor:
        """As `_Own`'s; puts the gradient of the table where it belongs."""
        grad = self.weights * weight
        into = torch.zeros_like(self.log_p).scatter_add_(2, self.index, grad)
        torch.mul(torch.ops.aten._log_softmax_backward_data(into, self.log_p, 2, into.dtype), self.gain, out=self.grad)
        return grad


class _SoftBound:
    """b·tanh(theta/b) = 2b·sigmoid(2·theta/b) - b, whose sigmoid is four times as fast as torch's tanh."""

    def __init__(self, bounds: Tensor | None) -> None:
        if bounds is not None:
            self.minus, self.twice, self.inverse = -bounds, 2 * bounds, 2 / bounds
        self.bounded = bounds is not None

    def forward(self, raw: Tensor) -> Tensor:
        if not self.bounded:
            return raw
        self.s = torch.sigmoid(raw.mul_(self.inverse))
        return torch.addcmul(self.minus, self.s, self.twice)

    def backward(self, grad: Tensor) -> Tensor:
        return torch.ops.aten.sigmoid_backward(grad, self.s).mul_(4) if self.bounded else grad


def _through_log_softmax(grad: Tensor, log_p: Tensor) -> Tensor:
    """Gradient with respect to logits, given that with respect to their log-softmax over axis 1."""
    return torch.ops.aten._log_softmax_backward_data(grad, log_p, 1, grad.dtype)


INTEGRANDS = ("lik", "log_post", "log_post_own", "log_joint", "log_joint_own", "lp_y", "lp_e")
"""What is summed over draws and rows, with the weights of the bound and with those of the tie."""


def _combinations(env_loss_weight: float, tie_weight: float) -> Tensor:
    """The loss and its TERMS as combinations of the sums, (7, 2·INTEGRANDS + 2).

    The last two sums are those of log p(y|x) and of log p(observed environment|x).
    """
    unit = torch.eye(2 * len(INTEGRANDS) + 2, dtype=torch.float64)
    bound, tied = ({name: unit[2 * i + j] for i, name in enumerate(INTEGRANDS)} for j in range(2))
    log_p_label, log_p_observed = unit[-2:]
    kl = bound["log_post_own"] - bound["lp_y"]  # log q(z;x,y,e) - log q(z;x,e)
    # log q(z;x,y,e) - log q(z;x,y)
    posterior = bound["log_joint_own"] - bound["lp_y"] - bound["lp_e"] - bound["log_joint"] + log_p_label
    total = bound["log_post"] - log_p_label  # KL(q(z;x,y) || q(z;x)) = kl - posterior + prior coupling
    environment, tie = -log_p_observed, tied["lik"] - tied["log_post_own"] + tied["lp_y"]
    loss = total - bound["lik"] + env_loss_weight * environment - tie_weight * tie
    return torch.stack([loss, bound["lik"], kl, posterior, total - kl + posterior, environment, tie])
