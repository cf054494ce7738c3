"""The default objective (stratified, tied, one sample from a component) without autograd, for models side by side.

`eber.py` is the readable form; `stratified.py` has the mixture terms and their gradient; here they meet the networks.
Where a network has an extractor of its own, autograd serves that extractor and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.method.model import EBERNetworks
from eber.nn.conditional_mlp import StackedMLP
from eber.nn.networks import ConditionalNetwork, stacked_features
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms
from eber.objectives.eber import TERMS
from eber.objectives.fused.decoder import StackedDecoder
from eber.objectives.fused.label_order import LabelOrder
from eber.objectives.fused.mixture import LOG2_E, Mixture, Sizes, integrand_rows
from eber.objectives.fused.sampled_mixture import SampledMixture

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input  # one overload: choosing among them takes longer


class FusedEBERObjective:
    """`EBERObjective` with reading ``"stratified"`` and one sample, for S models at once and without autograd.

    Parameters
    ----------
    env_loss_weight, tie_weight : float
        As for `EBERObjective`.
    sampled : bool
        Whether the couplings use a few environments drawn from p(e|x,y) instead of all; see `sampled`.
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
        new = stack.vector.new_empty
        self.stack, self.module, self.objective, self.n_rows = stack, module, objective, B
        self.slots = LabelOrder(S, K, B, stack.vector)
        self.supplied = batch.log_p_e_given_x is not None

        kind = SampledMixture if objective.sampled else Mixture
        self.mixture = mixture = kind(Sizes(S, K, m, module.latent_dim, B), objective.tie_weight, stack.vector)
        self._noise = mixture.noise.unbind()
        self._uniform = mixture.uniform.unbind() if isinstance(mixture, SampledMixture) else ()
        inputs = None if module.f0.extractor else stack.vector.new_ones(S, B, batch.x.shape[2] + 1)
        self._rows = None if inputs is None else inputs[..., :-1]
        self.g = _Network(stack, "g", B, inputs, self.slots.one_hot)
        self.f0, self.h = (_Network(stack, name, B, inputs) for name in ("f0", "h"))
        if not self.g.slotted:
            self._theta_index = self.slots.classes[:, None, :, None].expand(mixture.theta.shape)
        self.bound = _SoftBound(module.bounds, mixture.theta)
        self._draw_weights = torch.empty_like(mixture.log_lik)
        self.f1 = StackedDecoder(
            stack,
            module.f1,
            mixture.points,
            self.slots.one_hot[:, :, :B],
            self._draw_weights,
            mixture.log_lik,
            mixture.grad_points,
        )
        self._lp_h = new(S, m, B) if self.supplied else mixture.lp_e
        self.membership = (_Own if module.membership is None else _Shared)(stack, module, mixture, self._lp_h)
        self._lp_y_by_class, self._grad_y, self._grad_logits_y = new(3, S, K, m, B)
        self._lp_y_into_slots = self.slots.into(self._lp_y_by_class, mixture.lp_y)
        self._grad_y_out_of_slots = self.slots.out_of(self._grad_y, self._grad_logits_y)
        self._grad_lp_h, self._grad_logits_h = new(2, S, m, B)
        self._bound_weights, self._tie_weights = mixture.weights.unbind(1)
        self._mixing = _mixing(K, objective, self.membership.has_own_row).to(stack.vector) / B
        self._integrands = mixture.integrands.flatten(2)
        self._weights_transposed = mixture.weights.flatten(2).mT
        # Factors as arrays: a plain number is converted anew at every use.
        self._gain, self._env_loss_weight, self._scale = stack.vector.new_tensor(
            [module.environment_gain, objective.env_loss_weight, -1 / B]
        )
        self._sums = new(S, self._integrands.shape[1], 2)
        self._sums_by_model = self._sums.view(S, -1).mT

    def see(self, x: Tensor) -> None:
        """Work out what enters the networks in place of x."""
        if self._rows is not None:
            self._rows.copy_(x)
        else:
            for network in (self.g, self.f0, self.h):
                network.extract(x)

    def forward(self, batch: Batch, generators: Sequence[torch.Generator]) -> Tensor:
        """The loss and its terms, (7, S)."""
        mixture = self.mixture
        self.slots.see(batch.y)
        self.bound.forward(self._in_slots(self.g.forward()))
        torch.log_softmax(self.f0.forward(), 1, out=self._lp_y_by_class)  # (S, K, m, B), classes in their own order
        self._lp_y_into_slots()
        torch.log_softmax(self.h.forward().mul_(self._gain), 1, out=self._lp_h)
        if batch.log_p_e_given_x is not None:
            mixture.lp_e.copy_(batch.log_p_e_given_x)
        mixture.weigh()
        self.membership.forward(batch.e)
        self._draw(batch.e, generators)
        torch.add(self._bound_weights, self._tie_weights, alpha=mixture.tie_weight, out=self._draw_weights)
        self.f1()
        mixture.differentiate()
        torch.bmm(self._integrands, self._weights_transposed, out=self._sums)
        return torch.mm(self._mixing, self._sums_by_model)

    def _draw(self, e: Tensor, generators: Sequence[torch.Generator]) -> None:
        mixture = self.mixture
        for of_model, generator in zip(self._noise, generators, strict=True):
            of_model.normal_(generator=generator)
        if isinstance(mixture, SampledMixture):
            for of_model, generator in zip(self._uniform, generators, strict=True):
                of_model.uniform_(generator=generator)
            mixture.choose(e)
        mixture.draw()

    def backward(self) -> None:
        """Put the gradient of the loss where it belongs."""
        mixture = self.mixture
        with torch.inference_mode():
            torch.mul(mixture.observed, self._env_loss_weight, out=self._grad_lp_h)
            self.membership.backward(self._grad_lp_h)
            if not self.supplied:
                self._grad_lp_h.add_(mixture.grad_lp_e)
            self.g.backward(self._out_of_slots(self.bound.backward(mixture.grad_theta)))
            _through_log_softmax(mixture.grad_lp_y, mixture.lp_y, self._grad_y)
            self._grad_y_out_of_slots()
            self.f0.backward(self._grad_logits_y)
            _through_log_softmax(self._grad_lp_h, self._lp_h, self._grad_logits_h)
            self.h.backward(self._grad_logits_h.mul_(self._gain))
        self._through_extractors()
        self.stack.gradient.mul_(self._scale)  # all above is of the sum over rows that is maximised

    def _in_slots(self, theta: Tensor) -> Tensor:
        """g's output with the labels counted from the observed one; heads of their own know classes only."""
        return theta if self.g.slotted else theta.gather(2, self._theta_index)

    def _out_of_slots(self, grad: Tensor) -> Tensor:
        return grad if self.g.slotted else torch.empty_like(grad).scatter_(2, self._theta_index, grad)

    def _through_extractors(self) -> None:
        """Hand the gradient of the features on to autograd."""
        found = [
            (network.features, network.mlp.grad_inputs())
            for network in (self.g, self.f0, self.h)
            if network.features is not None and network.features.requires_grad  # it may be frozen
        ]
        if found:
            torch.autograd.backward([features for features, _ in found], [grad for _, grad in found])


class _Network:
    """One of the networks of S models."""

    def __init__(
        self, stack: ModuleStack, name: str, n_rows: int, x: Tensor | None, one_hot: Tensor | None = None
    ) -> None:
        self.networks: list[ConditionalNetwork] = [getattr(module, name) for module in stack.modules]
        network = self.networks[0]
        layers = [stack.learned(f"{name}.{layer}") for layer in network.layer_names]
        tables = [stack.learned(f"{name}.{table}") for table in network.table_names]
        self.inputs = stack.vector.new_ones(len(stack), n_rows, layers[0].value.shape[2]) if x is None else x
        self.slotted = one_hot is not None and bool(tables)
        self.mlp = StackedMLP(network.layout, layers, tables, self.inputs, one_hot if self.slotted else None)
        self.features: Tensor | None = None
        self.forward, self.backward = self.mlp.forward, self.mlp.backward

    def extract(self, x: Tensor) -> None:
        """What enters the first layer in place of x, recorded by autograd."""
        self.features = stacked_features(self.networks, x)
        self.inputs[..., :-1] = self.features.detach()


class _Own:
    """Every environment is its own component."""

    def __init__(self, stack: ModuleStack, module: EBERNetworks, mixture: Mixture, lp_h: Tensor) -> None:
        self.mixture, self.lp_h = mixture, lp_h
        self.has_own_row = lp_h is not mixture.lp_e
        """Whether log p(observed environment|x) is not simply lp_e of the observed one."""

    def forward(self, e: Tensor) -> None:
        """Fill in the weights of the components for the observed environment, and its log-probability if need be."""
        observed = self.mixture.observed.zero_().scatter_(1, e[:, None], 1.0)
        if self.has_own_row:
            self.mixture.log_p_observed.copy_((observed * self.lp_h).sum(1, keepdim=True))

    def backward(self, grad_lp_h: Tensor) -> None:
        """No parameters."""


class _Shared:
    """Environments share pseudo-environments; see `EBERNetworks.components_of`."""

    has_own_row = True

    def __init__(self, stack: ModuleStack, module: EBERNetworks, mixture: Mixture, lp_h: Tensor) -> None:
        self.table, self.gain, self.mixture, self.lp_h = (
            stack.learned("membership"),
            module.environment_gain,
            mixture,
            lp_h,
        )

    def forward(self, e: Tensor) -> None:
        """As `_Own`'s."""
        self.log_p = torch.log_softmax(self.table.value * self.gain, 2)  # (S, m, n_observed)
        self.index = e[:, None].expand(self.lp_h.shape)
        joint = self.log_p.gather(2, self.index).add_(self.lp_h)
        torch.softmax(joint, 1, out=self.mixture.observed)
        self.mixture.log_p_observed.copy_(torch.logsumexp(joint, 1, keepdim=True))

    def backward(self, grad_lp_h: Tensor) -> None:
        """Put the gradient of the table where it belongs, given that of the environment loss."""
        into = torch.zeros_like(self.log_p).scatter_add_(2, self.index, grad_lp_h)
        grad = torch._log_softmax_backward_data(into, self.log_p, 2, into.dtype)
        torch.mul(grad, self.gain, out=self.table.grad)


class _SoftBound:
    """theta = (b·tanh(raw/b) for means, and for log sigma in the form of tau), where there are bounds.

    b·tanh(raw/b) = 2b·sigmoid(2·raw/b) - b, whose sigmoid is four times as fast as torch's tanh.
    """

    def __init__(self, bounds: Tensor | None, theta: Tensor) -> None:
        self.theta = theta
        scale = torch.ones_like(theta[0, :, :1, :1, :1])  # (2L, 1, 1, 1)
        scale[len(scale) // 2 :] = -LOG2_E  # from log sigma to tau
        self.bounded, self.scale = bounds is not None, scale
        if bounds is not None:
            self.minus, self.twice, self.inverse = -bounds * scale, 2 * bounds * scale, 2 / bounds
            self.s, self.four = torch.empty_like(theta), theta.new_tensor(4)

    def forward(self, raw: Tensor) -> None:
        """Fill in theta; `raw` is overwritten."""
        if self.bounded:
            torch.sigmoid(raw.mul_(self.inverse), out=self.s)
            torch.addcmul(self.minus, self.s, self.twice, out=self.theta)
        else:
            torch.mul(raw, self.scale, out=self.theta)

    def backward(self, grad: Tensor) -> Tensor:
        """From the gradient of means and log sigma to that of `raw`; `grad` is overwritten."""
        return sigmoid_backward(grad, self.s, grad_input=grad).mul_(self.four) if self.bounded else grad


def _through_log_softmax(grad: Tensor, log_p: Tensor, out: Tensor) -> None:
    """Gradient with respect to logits, given that with respect to their log-softmax over axis 1."""
    torch._log_softmax_backward_data(grad, log_p, 1, grad.dtype, out=out)


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
