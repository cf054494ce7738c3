"""g, f0 and h of S models between the mixture's inputs and its gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from eber.method.model import EBERNetworks
from eber.nn.conditional_mlp import StackedMLP
from eber.nn.networks import ConditionalNetwork, stacked_features
from eber.nn.stack import ModuleStack
from eber.nn.torch_operations import log_softmax_backward, sigmoid_backward
from eber.objectives.fused.exact_mixture import ExactMixture
from eber.objectives.fused.label_order import LabelOrder
from eber.objectives.fused.mixture import LOG2_E
from eber.objectives.fused.sampled_mixture import SampledMixture

Mixture = ExactMixture | SampledMixture


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
        self.labels_in_order = one_hot is not None and bool(tables)
        self.mlp = StackedMLP(network.layout, layers, tables, self.inputs, one_hot if self.labels_in_order else None)
        self.features: Tensor | None = None

    def extract(self, x: Tensor) -> None:
        """What enters the first layer in place of x, recorded by autograd."""
        self.features = stacked_features(self.networks, x)
        self.inputs[..., :-1] = self.features.detach()

    @property
    def has_trained_features(self) -> bool:
        """Whether there is an extractor that autograd has to reach; it may be frozen."""
        return self.features is not None and self.features.requires_grad

    def through_features(self) -> tuple[Tensor, Tensor]:
        """What the extractor gave, and its gradient."""
        assert self.features is not None
        return self.features, self.mlp.grad_inputs()


class PosteriorNetwork(_Network):
    """g(x, y, e), whose answers are means and log sigma of the components."""

    def __init__(self, stack: ModuleStack, n_rows: int, x: Tensor | None, order: LabelOrder, mixture: Mixture) -> None:
        super().__init__(stack, "g", n_rows, x, order.one_hot)
        theta, module = mixture.inputs.theta, stack.modules[0]
        assert isinstance(module, EBERNetworks)
        self.bound, self._gradient = _SoftBound(module.bounds, theta), mixture.gradients.theta
        # Heads of their own know classes only; other networks answer with the labels in order.
        self._index = None if self.labels_in_order else order.classes[:, None, :, None].expand(theta.shape)

    def forward(self) -> None:
        """Fill in theta."""
        theta = self.mlp.forward()
        self.bound.forward(theta if self._index is None else theta.gather(2, self._index))

    def backward(self) -> None:
        """Put the gradient where it belongs."""
        grad = self.bound.backward(self._gradient)
        self.mlp.backward(grad if self._index is None else torch.empty_like(grad).scatter_(2, self._index, grad))


class LabelNetwork(_Network):
    """f0(x, e), whose answer is log p(y|x,e)."""

    def __init__(self, stack: ModuleStack, n_rows: int, x: Tensor | None, order: LabelOrder, mixture: Mixture) -> None:
        super().__init__(stack, "f0", n_rows, x)
        self._lp_y, self._gradient = mixture.inputs.lp_y, mixture.gradients.lp_y
        self._by_class, self._grad_in_order, self._grad_by_class = stack.vector.new_empty(3, *self._lp_y.shape)
        self._to_order = order.from_classes(self._by_class, self._lp_y)
        self._to_classes = order.to_classes(self._grad_in_order, self._grad_by_class)

    def forward(self) -> None:
        """Fill in log p(y|x,e)."""
        torch.log_softmax(self.mlp.forward(), 1, out=self._by_class)  # (S, K, m, B), classes in their own order
        self._to_order()

    def backward(self) -> None:
        """Put the gradient where it belongs."""
        _through_log_softmax(self._gradient, self._lp_y, self._grad_in_order)
        self._to_classes()
        self.mlp.backward(self._grad_by_class)


class EnvironmentNetwork(_Network):
    """h(x), whose answer is log p(e|x), and the environment loss; `supplied` weights may take its place elsewhere."""

    def __init__(
        self,
        stack: ModuleStack,
        n_rows: int,
        x: Tensor | None,
        mixture: Mixture,
        env_loss_weight: float,
        supplied: bool,
    ) -> None:
        super().__init__(stack, "h", n_rows, x)
        module, self._mixture, lp_e = stack.modules[0], mixture, mixture.inputs.lp_e
        assert isinstance(module, EBERNetworks)
        self._lp_h = stack.vector.new_empty(lp_e.shape) if supplied else lp_e
        self.membership = (_Own if module.membership is None else _Shared)(stack, module, mixture, self._lp_h)
        self._grad_lp_h, self._grad_logits = stack.vector.new_empty(2, *lp_e.shape)
        # Factors as arrays: a plain number is converted anew at every use.
        self._gain, self._env_loss_weight = stack.vector.new_tensor([module.environment_gain, env_loss_weight])

    def forward(self, supplied: Tensor | None) -> None:
        """Fill in log p(e|x), or what is supplied in its place."""
        torch.log_softmax(self.mlp.forward().mul_(self._gain), 1, out=self._lp_h)
        if supplied is not None:
            self._mixture.inputs.lp_e.copy_(supplied)

    def backward(self) -> None:
        """Put the gradient where it belongs, that of the environment loss included."""
        inputs = self._mixture.inputs
        torch.mul(inputs.observed, self._env_loss_weight, out=self._grad_lp_h)
        self.membership.backward(self._grad_lp_h)
        if self._lp_h is inputs.lp_e:
            self._grad_lp_h.add_(self._mixture.gradients.lp_e)
        _through_log_softmax(self._grad_lp_h, self._lp_h, self._grad_logits)
        self.mlp.backward(self._grad_logits.mul_(self._gain))


class _Own:
    """Every environment is its own component."""

    def __init__(self, stack: ModuleStack, module: EBERNetworks, mixture: Mixture, lp_h: Tensor) -> None:
        self.mixture, self.lp_h = mixture, lp_h
        self.has_own_row = lp_h is not mixture.inputs.lp_e
        """Whether log p(observed environment|x) is not simply lp_e of the observed one."""

    def forward(self, e: Tensor) -> None:
        """Fill in the weights of the components for the observed environment, and its log-probability if need be."""
        observed = self.mixture.inputs.observed.zero_().scatter_(1, e[:, None], 1.0)
        if self.has_own_row:
            self.mixture.draws.log_p_observed.copy_((observed * self.lp_h).sum(1, keepdim=True))

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
        torch.softmax(joint, 1, out=self.mixture.inputs.observed)
        self.mixture.draws.log_p_observed.copy_(torch.logsumexp(joint, 1, keepdim=True))

    def backward(self, grad_lp_h: Tensor) -> None:
        """Put the gradient of the table where it belongs, given that of the environment loss."""
        into = torch.zeros_like(self.log_p).scatter_add_(2, self.index, grad_lp_h)
        grad = log_softmax_backward(into, self.log_p, 2, into.dtype)
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
    log_softmax_backward(grad, log_p, 1, grad.dtype, out=out)
