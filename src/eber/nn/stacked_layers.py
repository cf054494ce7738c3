"""What `StackedMLP` is made of: activations and the layers between them.

Each part keeps the arrays and views that it needs from step to step, and writes gradients where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eber.nn.stack import Learned, Product
from eber.nn.torch_operations import threshold_backward


class Activations:
    """What a layer puts out, (S, width, size), on top of a row of ones."""

    def __init__(self, like: Tensor, width: int, size: int, relu: bool) -> None:
        self.size, self.relu = size, relu
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


class Chain:
    """Activations, and matrices one after the other from there to the output.

    Parameters
    ----------
    start : Activations
    matrices : sequence of Affine or Collapsed
    relu : sequence of bool
        Whether what enters each of the matrices has been through a ReLU.
    """

    def __init__(self, start: Activations, matrices: Sequence[Matrix], relu: Sequence[bool]) -> None:
        self.start = start
        self._layers: list[Layer] = []
        inputs = start
        for matrix, has_relu in zip(matrices[:-1], relu[1:], strict=True):
            target = Activations(start.full, matrix.width, start.size, has_relu)
            self._layers.append(Layer(matrix, inputs, target))
            inputs = target
        self._layers.append(Layer(matrices[-1], inputs, None))
        self.out = self._layers[-1].out

    def activate(self) -> None:
        """Work out further activations from those at the start."""
        for layer in self._layers[:-1]:
            layer.forward()

    def forward(self) -> None:
        """Work out further activations and the output."""
        self.activate()
        self._layers[-1].forward()

    def backward(self, grad: Tensor, add: bool = False) -> Tensor:
        """Write the gradients of the matrices, or add to them; returns that of the start before its ReLU."""
        for layer in reversed(self._layers):
            grad = layer.backward(grad, add)
        return grad


class Layer:
    """Activations through a matrix, into further activations or the output."""

    def __init__(self, weights: Matrix, inputs: Activations, target: Activations | None) -> None:
        self.weights, self.inputs, self.target = weights, inputs, target
        shape = (len(inputs.full), weights.width, inputs.size)
        self.out = inputs.full.new_empty(shape) if target is None else target.body
        self._to_out = Product(self.out)

    def forward(self) -> None:
        self._to_out.of(self.weights.value, self.inputs.full)
        if self.target is not None:
            self.target.finish()

    def backward(self, grad: Tensor, add: bool) -> Tensor:
        """Gradient of what the inputs were before their ReLU; that of the matrix is written, or added to what it is."""
        self.weights.to_grad.of(grad, self.inputs.transposed, add)
        grad = torch.bmm(self.weights.transposed, grad, out=self.inputs.grad)
        if self.inputs.relu:
            threshold_backward(grad, self.inputs.body, 0, grad_input=grad)
        return grad


class Affine:
    """[W b] of one layer."""

    def __init__(self, value: Tensor, grad: Tensor) -> None:
        self.value, self.width, self.to_grad = value, value.shape[1], Product(grad)
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
        self.to_grad = Product(self.grad)
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


Matrix = Affine | Collapsed
