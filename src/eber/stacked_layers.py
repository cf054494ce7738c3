"""What `StackedMLP` is made of: activations, layers between them, and the first layer's sum over contexts.

Each part keeps the arrays and views that it needs from step to step, and writes gradients where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from eber.stack import Learned, Product

threshold_backward = torch.ops.aten.threshold_backward.grad_input  # one overload: choosing among them takes longer
add_relu = torch.ops.aten._add_relu.out  # sum and ReLU of the largest arrays in one go


class Activations:
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


class Layer:
    """Activations through a matrix, into further activations or the output."""

    def __init__(self, weights: Affine | Collapsed, inputs: Activations, target: Activations | None) -> None:
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


class Affine:
    """[W b] of one layer."""

    def __init__(self, value: Tensor, grad: Tensor) -> None:
        self.value, self.grad, self.width = value, grad, value.shape[1]
        self.transposed = value[:, :, :-1].mT

    def refresh(self) -> None:
        """The parameters themselves need no refreshing."""

    def settle(self) -> None:
        """Their gradient is already where it belongs."""


class Collapsed:
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


class Spread:
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
        self.activations = Activations(x_term, H, B * torch.Size(sizes).numel())
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
