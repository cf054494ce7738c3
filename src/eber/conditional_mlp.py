"""ReLU networks on [x; y; e] for all y and e at once, several of one shape side by side, with the gradient by hand.

Their meaning is that of plain layers on the concatenation of x with one-hot contexts, which is what the tests compare
them with. Written this way the first layer is a broadcast sum instead of K·m copies of x,

    W [x; y; e] + b = [W_x b] [x; 1] + W_y[y] + W_e[e],

and a linear representation followed by the linear head is one small matrix. Activations carry a row of ones, so that
weight and bias are one matrix [W b], and one product gives the gradient of both. Every array begins with the axis of
the S networks and ends with the batch. All arrays of a pass are made once: on small networks an allocation or a
view costs as much as the arithmetic. `ConditionalMLP` is the operation for autograd; an objective that computes its
own gradients uses `StackedMLP`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from eber.stack import Learned, Product

threshold_backward = torch.ops.aten.threshold_backward.grad_input  # one overload: choosing among them takes longer
add_relu = torch.ops.aten._add_relu.out  # sum and ReLU of the largest arrays in one go


@dataclass(frozen=True)
class MLPLayout:
    """How the layers of a network are to be read: the first one, further ones, the head.

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
    def collapses(self) -> bool:
        """Whether a linear representation and the head act as one matrix.

        They do where a network answers for many contexts, so that it is the small matrices that are multiplied and not
        the large activations.
        """
        return self.linear_representation and self.n_layers > 1 and self.n_tables > 0

    def has_relu(self, layer: int) -> bool:
        """Whether a ReLU follows a layer, counted from zero."""
        return not (self.linear_representation and layer == self.n_layers - 1)


class StackedMLP:
    """S networks of one layout on batches of B rows.

    Parameters
    ----------
    layout : MLPLayout
    layers : sequence of Learned
        [W b] of the first layer, of the further ones, of the head; (S, out, in + 1) each.
    tables : sequence of Learned
        W_y and W_e as far as there are such contexts, (S, width, size) each.
    inputs : (S, B, D + 1)
        The caller keeps x in it, with ones in the last column.
    one_hot : (S, size, slots·B), optional
        Kept by the caller, too: the first context then counts slots whose category differs from row to row.
    """

    def __init__(
        self,
        layout: MLPLayout,
        layers: Sequence[Learned],
        tables: Sequence[Learned],
        inputs: Tensor,
        one_hot: Tensor | None = None,
    ) -> None:
        S, B = inputs.shape[:2]
        self.layers, self.tables, self.inputs = layers, tables, inputs
        self.first, self._columns, self._first_grad = layers[0], inputs.mT, Product(layers[0].grad)
        width = self.first.value.shape[1]
        self._layers: list[_Layer] = []
        self._spread: _Spread | None = None
        if layout.n_layers == 0:
            self._x_term = inputs.new_empty(S, width, B)
            self._to_x_term = Product(self._x_term)
            self.out = self._x_term.view(S, -1, *layout.heads, B)
            return
        if tables:
            self._x_term = inputs.new_empty(S, width, B)
            self._spread = _Spread(self._x_term, tables, one_hot)
            contexts, activations = self._spread.contexts, self._spread.activations
        else:
            contexts, activations = (), _Activations(inputs, width, B)
            self._x_term = activations.body
        self._to_x_term = Product(self._x_term)
        activations.relu = layout.has_relu(0)
        rest: list[_Affine | _Collapsed] = [_Affine(*layer) for layer in layers[1:]]
        if layout.collapses:
            rest[-2:] = [_Collapsed(layers[-2], layers[-1])]
        self._start = activations
        for i, weights in enumerate(rest, start=1):
            out = _Activations(inputs, weights.width, activations.size) if weights is not rest[-1] else None
            if out is not None:
                out.relu = layout.has_relu(i)
            self._layers.append(_Layer(weights, activations, out))
            activations = out or activations
        self.out = self._layers[-1].out.view(S, -1, *contexts, B)

    def forward(self) -> Tensor:
        """``head(representation(relu(... relu(W [x; y; e] + b))))``, (S, out, *contexts, B); overwritten next time."""
        self._to_x_term.of(self.first.value, self._columns)
        if self._spread is not None:
            self._spread.forward()
        elif self._layers:
            self._start.finish()
        for layer in self._layers:
            layer.forward()
        return self.out

    def backward(self, grad_out: Tensor) -> None:
        """Write the gradients of the parameters, given that of the output."""
        grad = grad_out.reshape(self._layers[-1].out.shape if self._layers else self._x_term.shape)
        for layer in reversed(self._layers):
            grad = layer.backward(grad)
        self._grad_x_term = grad if self._spread is None else self._spread.backward()
        self._first_grad.of(self._grad_x_term, self.inputs)

    def grad_inputs(self) -> Tensor:
        """Gradient of the rows of the last `backward`, (S, B, D)."""
        return torch.bmm(self._grad_x_term.mT, self.first.value[:, :, :-1])


class _Activations:
    """What a layer puts out, (S, width, size), on top of a row of ones."""

    def __init__(self, like: Tensor, width: int, size: int) -> None:
        self.size, self.relu = size, False
        self.full = like.new_empty(len(like), width + 1, size)
        self.full[:, -1] = 1
        self.body, self.transposed = self.full[:, :-1], self.full.mT
        self._grad: Tensor | None = None

    def finish(self) -> None:
        """Apply the ReLU, if there is one, to what was written into `body`."""
        if self.relu:
            self.full.relu_()  # the ones stay ones

    @property
    def grad(self) -> Tensor:
        """Where the gradient of `body` is worked out."""
        if self._grad is None:
            self._grad = self.full.new_empty(self.body.shape)
        return self._grad


class _Layer:
    """Activations through a matrix, into further activations or the output."""

    def __init__(self, weights: _Affine | _Collapsed, inputs: _Activations, target: _Activations | None) -> None:
        self.weights, self.inputs, self.target = weights, inputs, target
        shape = (len(inputs.full), weights.width, inputs.size)
        self.out = inputs.full.new_empty(shape) if target is None else target.body
        self._to_out, self._to_grad = Product(self.out), Product(weights.grad)

    def forward(self) -> None:
        self.weights.refresh()
        self._to_out.of(self.weights.value, self.inputs.full)
        if self.target is not None:
            self.target.finish()

    def backward(self, grad: Tensor) -> Tensor:
        """Gradient of what the inputs were before their ReLU."""
        self._to_grad.of(grad, self.inputs.transposed)
        self.weights.settle()
        grad = torch.bmm(self.weights.transposed, grad, out=self.inputs.grad)
        if self.inputs.relu:
            threshold_backward(grad, self.inputs.body, 0, grad_input=grad)
        return grad


class _Affine:
    """[W b] of one layer."""

    def __init__(self, value: Tensor, grad: Tensor) -> None:
        self.value, self.grad, self.width = value, grad, value.shape[1]
        self.transposed = value[:, :, :-1].mT

    def refresh(self) -> None:
        """The parameters themselves need no refreshing."""

    def settle(self) -> None:
        """Their gradient is already where it belongs."""


class _Collapsed:
    """Two linear layers in a row as one: U [W b] with U's own bias added."""

    def __init__(self, inner: Learned, outer: Learned) -> None:
        self.inner, self.outer, self.width = inner, outer, outer.value.shape[1]
        self._matrix, self._bias = outer.value[:, :, :-1], outer.value[:, :, -1]
        self._matrix_transposed, self._inner_transposed = self._matrix.mT, inner.value.mT
        self._grad_bias = outer.grad[:, :, -1]
        shape = (len(inner.value), self.width, inner.value.shape[2])
        self.value, self.grad = inner.value.new_empty(shape), inner.value.new_empty(shape)
        self._inner_grad, self._matrix_grad = Product(inner.grad), Product(outer.grad[:, :, :-1])
        self._value_bias, self._grad_value_bias = self.value[:, :, -1], self.grad[:, :, -1]
        self.transposed = self.value[:, :, :-1].mT

    def refresh(self) -> None:
        """Work out the product from the parameters as they are now."""
        torch.bmm(self._matrix, self.inner.value, out=self.value)
        self._value_bias.add_(self._bias)

    def settle(self) -> None:
        """Hand the gradient of the product on to the two layers."""
        self._inner_grad.of(self._matrix_transposed, self.grad)
        self._matrix_grad.of(self.grad, self._inner_transposed)
        self._grad_bias.copy_(self._grad_value_bias)


class _Spread:
    """Activations from the sum of (S, H, B) and one table (S, H, size) for each context, (S, H, *contexts, B)."""

    def __init__(self, x_term: Tensor, tables: Sequence[Learned], one_hot: Tensor | None) -> None:
        S, H, B = x_term.shape
        self.tables, self.one_hot = tables, one_hot
        sizes = [table.value.shape[2] for table in tables]
        if one_hot is not None:
            sizes[0] = one_hot.shape[2] // B
            self._slots = x_term.new_empty(S, H, one_hot.shape[2])  # W_y[y] of every slot
            self._one_hot_transposed, self._slotted_grad = one_hot.mT, Product(tables[0].grad)
        self.contexts = tuple(sizes)
        self.activations = _Activations(x_term, H, B * torch.Size(sizes).numel())
        whole = self.activations.body.unflatten(2, (*sizes, B))
        self._terms: list[tuple[Tensor, Tensor, Tensor]] = []
        term = x_term
        for i, table in enumerate(tables):
            slotted = i == 0 and one_hot is not None
            addend = self._slots.view(S, H, -1, B) if slotted else table.value.view(S, H, *[1] * i, -1, 1)
            out = whole if i == len(tables) - 1 else x_term.new_empty(S, H, *sizes[: i + 1], B)
            self._terms.append((term.unsqueeze(-2), addend, out))
            term = out
        self._steps_back: list[_StepBack] = []

    def forward(self) -> None:
        if self.one_hot is not None:
            torch.bmm(self.tables[0].value, self.one_hot, out=self._slots)
        *first, last = self._terms
        for term, addend, out in first:
            torch.add(term, addend, out=out)
        term, addend, out = last
        (add_relu if self.activations.relu else torch.add)(term, addend, out=out)

    def backward(self) -> Tensor:
        """Undo the sums, last context first; write the gradients of the tables, return that of (S, H, B)."""
        if not self._steps_back:
            self._plan_backward()
        for step in self._steps_back:
            if step.axis == 2 and self.one_hot is not None:
                self._slotted_grad.of(step.grad.flatten(2), self._one_hot_transposed)
            else:
                torch.sum(step.grad, -1, out=step.over_rows)  # rows first: torch is slow at axes that do not adjoin
                if step.other_contexts:
                    torch.sum(step.over_rows, step.other_contexts, out=self.tables[step.axis - 2].grad)
            torch.sum(step.grad, step.axis, out=step.out)
        return self._steps_back[-1].out

    def _plan_backward(self) -> None:
        grad = self.activations.grad.unflatten(2, (*self.contexts, -1))
        for axis in range(len(self.tables) + 1, 1, -1):
            out = grad.new_empty(*grad.shape[:axis], *grad.shape[axis + 1 :])
            others = [other for other in range(2, grad.dim() - 1) if other != axis]
            over_rows = grad.new_empty(grad.shape[:-1]) if others else self.tables[axis - 2].grad
            self._steps_back.append(_StepBack(axis, grad, over_rows, others, out))
            grad = out


class _StepBack(NamedTuple):
    """One context taken off: its axis, the gradient with it, that summed over rows, the other contexts, without it."""

    axis: int
    grad: Tensor
    over_rows: Tensor
    other_contexts: list[int]
    out: Tensor


def single_mlp(layout: MLPLayout, features: Tensor, parameters: Sequence[Tensor]) -> StackedMLP:
    """A stack of one network: features (B, D), and as parameters the tables, then weight and bias of each layer."""
    tables, layers = parameters[: layout.n_tables], parameters[layout.n_tables :]
    joined = [torch.cat([weight, bias[:, None]], 1) for weight, bias in zip(layers[::2], layers[1::2], strict=True)]
    learned = [Learned(value.detach()[None], torch.empty_like(value)[None]) for value in (*tables, *joined)]
    inputs = torch.cat([features, features.new_ones(len(features), 1)], 1)
    return StackedMLP(layout, learned[layout.n_tables :], learned[: layout.n_tables], inputs[None])


class ConditionalMLP(torch.autograd.Function):
    """One such network as an operation that autograd can differentiate: ``apply(features, layout, *parameters)``.

    The parameters are the tables, then weight and bias of each layer.
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor, layout: MLPLayout, *parameters: Tensor) -> Tensor:
        ctx.mlp = single_mlp(layout, features, parameters)
        out: Tensor = ctx.mlp.forward()[0]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        ctx.mlp.backward(grad_out[None])
        grads = [table.grad[0] for table in ctx.mlp.tables]
        for layer in ctx.mlp.layers:
            grads += [layer.grad[0, :, :-1], layer.grad[0, :, -1]]
        return ctx.mlp.grad_inputs()[0] if ctx.needs_input_grad[0] else None, None, *grads
