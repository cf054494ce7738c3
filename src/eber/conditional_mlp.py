"""ReLU networks on [x; y; e] for all y and e at once, several of one shape side by side, with the gradient by hand.

Their meaning is that of plain layers on the concatenation of x with one-hot contexts, which is what the tests compare
them with. Written this way the first layer is a broadcast sum instead of K·m copies of x,

    W [x; y; e] = W_x x + W_y[y] + W_e[e],

and a linear representation followed by the linear head is one small matrix. Every array begins with the axis of the S
networks and ends with the batch. `ConditionalMLP` is the operation for autograd; an objective that computes its own
gradients uses `StackedMLP`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from eber.workspace import Workspace


@dataclass(frozen=True)
class MLPLayout:
    """How a flat list of parameters is to be read: first weight and bias, the tables, the further layers, the head.

    Attributes
    ----------
    n_tables : number of contexts
    linear_representation : whether the layer before the head is linear and not followed by a ReLU
    n_layers : layers before the head, the first among them; zero for heads alone
    heads : sizes of the contexts where there are heads alone, one for each combination; empty otherwise
    """

    n_tables: int
    linear_representation: bool
    n_layers: int
    heads: tuple[int, ...] = ()

    @property
    def first_is_linear(self) -> bool:
        """Whether the first layer is the linear representation itself, so that there is no ReLU at all."""
        return self.linear_representation and self.n_layers == 1

    @property
    def collapses(self) -> bool:
        """Whether a linear representation of its own stands before the head, so that the two can act as one matrix."""
        return self.linear_representation and self.n_layers > 1


class StackedMLP:
    """S networks of one layout, with their parameters and the places of their gradients.

    Parameters
    ----------
    layout : MLPLayout
    parameters, grads : lists of tensors, (S, *shape) each
        `forward` reads the first, `backward` writes the second.
    """

    def __init__(self, layout: MLPLayout, parameters: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
        n = layout.n_tables
        self.layout, self.workspace = layout, Workspace()
        self.first, self.tables = _Affine(parameters[:2], grads[:2]), parameters[2 : 2 + n]
        self.table_grads = grads[2 : 2 + n]
        rest = [_Affine(*pair) for pair in zip(_pairs(parameters[2 + n :]), _pairs(grads[2 + n :]), strict=True)]
        # Where a network answers for many contexts, a linear representation and the head act as one small matrix.
        self.collapsed = _Collapsed(rest[-2], rest[-1]) if layout.collapses and n else None
        self.hidden, self.head = rest[: -2 if self.collapsed else -1], rest[-1] if rest else None
        # Layers after the first that are followed by a ReLU; a linear representation is not.
        self.n_relu = len(self.hidden) - (layout.collapses and not self.collapsed)

    def forward(self, features: Tensor, one_hot: Tensor | None = None) -> Tensor:
        """``head(representation(relu(... relu(W_x x + W_y[y] + W_e[e] + b))))``, (S, B, D) -> (S, out, *contexts, B).

        With `one_hot` (S, size, slots·B), the first context counts slots whose category differs from row to row.
        """
        self.features, self.one_hot = features, one_hot
        x_term = self.first.forward(features.mT)  # (S, H, B)
        if self.head is None:
            out = x_term.view(len(x_term), -1, *self.layout.heads, x_term.shape[2])
            return out if one_hot is None else torch.einsum("soc...b,sctb->sot...b", out, self._slots(one_hot))
        hidden = self._spread(x_term)
        if not self.layout.first_is_linear:
            hidden.relu_()
        self.shape = hidden.shape[2:]  # (*contexts, B)
        hidden = hidden.flatten(2)  # (S, H, K·m·B)
        self.activations = [hidden]
        for i, layer in enumerate(self.hidden):
            size = (hidden.shape[0], layer.width, hidden.shape[2])
            hidden = layer.forward(hidden, self.workspace.take(f"hidden {i}", size, hidden))
            if i < self.n_relu:
                hidden.relu_()
            self.activations.append(hidden)
        out = (self.collapsed or self.head).forward(hidden)
        return out.view(*out.shape[:2], *self.shape)

    def backward(self, grad_out: Tensor, features_too: bool = False) -> Tensor | None:
        """Write the gradients of the parameters; return that of the features, (S, B, D), if asked for."""
        if self.head is None:
            if self.one_hot is not None:
                grad_out = torch.einsum("sot...b,sctb->soc...b", grad_out, self._slots(self.one_hot))
            grad = grad_out.reshape(len(grad_out), -1, grad_out.shape[-1])
        else:
            grad = grad_out.flatten(2)
            inputs = self.activations
            grad = self._back((self.collapsed or self.head), grad, inputs[-1], len(self.hidden), self.n_relu)
            for i in range(len(self.hidden) - 1, -1, -1):
                grad = self._back(self.hidden[i], grad, inputs[i], i, self.n_relu)
            grad = self._gather(grad.view(*grad.shape[:2], *self.shape))
        self.first.backward(grad, self.features.mT)
        return torch.bmm(grad.mT, self.first.weight) if features_too else None

    def _slots(self, one_hot: Tensor) -> Tensor:
        """Which category each slot of each row has, (S, size, slots, B)."""
        return one_hot.view(*one_hot.shape[:2], -1, self.features.shape[1])

    def _back(self, layer: _Affine | _Collapsed, grad: Tensor, inputs: Tensor, i: int, n_relu: int) -> Tensor:
        """Through a layer and the ReLU before it, if there is one."""
        layer.backward(grad, inputs)
        grad = torch.bmm(layer.transposed, grad, out=self.workspace.take(f"grad {i}", tuple(inputs.shape), grad))
        if i <= n_relu and not self.layout.first_is_linear:
            torch.ops.aten.threshold_backward(grad, inputs, 0, grad_input=grad)
        return grad

    def _spread(self, x_term: Tensor) -> Tensor:
        """Broadcast sum of (S, H, B) and one (S, H, size) table for each context into (S, H, *contexts, B)."""
        S, H, B = x_term.shape
        term, last = x_term, len(self.tables) - 1
        for i, table in enumerate(self.tables):
            if i == 0 and self.one_hot is not None:
                addend = torch.bmm(table, self.one_hot).view(S, H, -1, B)
            else:
                addend = table.view(S, H, *[1] * i, -1, 1)
            shape = (*term.shape[:-1], addend.shape[-2], B)
            out = self.workspace.take("hidden", shape, x_term) if i == last else None
            term = torch.add(term.unsqueeze(-2), addend, out=out)
        return term

    def _gather(self, grad: Tensor) -> Tensor:
        """Undo `_spread`, last context first: (S, H, *contexts, B) -> (S, H, B), and the gradients of the tables."""
        for i in range(len(self.tables) - 1, -1, -1):
            if i == 0 and self.one_hot is not None:
                torch.bmm(grad.flatten(2), self.one_hot.mT, out=self.table_grads[0])
            else:
                others = [axis for axis in range(2, grad.dim()) if axis != i + 2]
                torch.sum(grad, others, out=self.table_grads[i])
            grad = grad.sum(i + 2)
        return grad


class _Affine:
    """A linear layer of S networks on columns: W v + b."""

    def __init__(self, parameters: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
        self.weight, self.bias = parameters
        self.grad_weight, self.grad_bias = grads
        self.width = self.weight.shape[1]
        # Views that stay valid, since parameters are changed in place.
        self.transposed, self._bias_column = self.weight.mT, self.bias.unsqueeze(2)

    def forward(self, columns: Tensor, out: Tensor | None = None) -> Tensor:
        return torch.baddbmm(self._bias_column, self.weight, columns, out=out)

    def backward(self, grad: Tensor, columns: Tensor) -> None:
        torch.bmm(grad, columns.mT, out=self.grad_weight)
        torch.sum(grad, 2, out=self.grad_bias)


class _Collapsed:
    """Two linear layers in a row as one: the small matrices are multiplied, not the large activations."""

    def __init__(self, inner: _Affine, outer: _Affine) -> None:
        self.inner, self.outer = inner, outer
        self._inner_bias_row = inner.bias.unsqueeze(1)

    def forward(self, columns: Tensor) -> Tensor:
        weight = torch.bmm(self.outer.weight, self.inner.weight)
        # A product with a single column rounds differently in stacks of one and of many, where a sum does not.
        bias = (self.outer.weight * self._inner_bias_row).sum(2).add_(self.outer.bias).unsqueeze(2)
        self.transposed = weight.mT
        return torch.baddbmm(bias, weight, columns)

    def backward(self, grad: Tensor, columns: Tensor) -> None:
        grad_weight, grad_bias = torch.bmm(grad, columns.mT), grad.sum(2, keepdim=True)
        torch.bmm(self.outer.transposed, grad_weight, out=self.inner.grad_weight)
        torch.sum(self.outer.weight * grad_bias, 1, out=self.inner.grad_bias)
        torch.bmm(grad_weight, self.inner.transposed, out=self.outer.grad_weight)
        self.outer.grad_weight.addcmul_(grad_bias, self._inner_bias_row)
        self.outer.grad_bias.copy_(grad_bias.squeeze(2))


def _pairs(tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    return [tensors[i : i + 2] for i in range(0, len(tensors), 2)]


class ConditionalMLP(torch.autograd.Function):
    """One such network as an operation that autograd can differentiate: ``apply(features, layout, *parameters)``."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, layout: MLPLayout, *parameters: Tensor) -> Tensor:
        ctx.grads = [torch.empty_like(p) for p in parameters]
        ctx.mlp = StackedMLP(layout, [p[None] for p in parameters], [grad[None] for grad in ctx.grads])
        out: Tensor = ctx.mlp.forward(features[None])[0]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        grad_features = ctx.mlp.backward(grad_out[None], features_too=ctx.needs_input_grad[0])
        return None if grad_features is None else grad_features[0], None, *ctx.grads
