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
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from eber.nn.context_blocks import Blocks
from eber.nn.stack import Learned, Product
from eber.nn.stacked_layers import Activations, Affine, Chain, Collapsed, Matrix


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
    one_hot : (S, size, size·B), optional
        Kept by the caller, too: the categories of the first context then come in an order of each row's own.
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
        self._matrices: list[Matrix] = [Affine(*layer) for layer in layers[1:]]
        if layout.collapses:
            self._matrices[-2:] = [Collapsed(layers[-2], layers[-1])]
        relu = [layout.has_relu(i) for i in range(len(self._matrices))]
        self._rest: Blocks | Chain | None = None
        if layout.n_layers == 0:
            self._x_term = inputs.new_empty(S, width, B)
            self.out = self._x_term.view(S, -1, *layout.heads, B)
        elif tables:
            self._x_term = inputs.new_empty(S, width, B)
            self._rest = Blocks(self._x_term, tables, one_hot, self._matrices, relu)
            self.out = self._rest.out
        else:
            start = Activations(inputs, width, B, relu[0])
            self._x_term, self._rest = start.body, Chain(start, self._matrices, relu)
            self.out = self._rest.out
        self._to_x_term = Product(self._x_term)

    def forward(self) -> Tensor:
        """``head(representation(relu(... relu(W [x; y; e] + b))))``, (S, out, *contexts, B); overwritten next time."""
        self._to_x_term.of(self.first.value, self._columns)
        for matrix in self._matrices:
            matrix.refresh()
        if isinstance(self._rest, Chain):
            self._rest.start.finish()
        if self._rest is not None:
            self._rest.forward()
        return self.out

    def backward(self, grad_out: Tensor) -> None:
        """Write the gradients of the parameters, given that of the output."""
        if self._rest is None:
            self._grad_x_term = grad_out.reshape(self._x_term.shape)
        else:
            self._grad_x_term = self._rest.backward(grad_out)
        for matrix in self._matrices:
            matrix.settle()
        self._first_grad.of(self._grad_x_term, self.inputs)

    def grad_inputs(self) -> Tensor:
        """Gradient of the rows of the last `backward`, (S, B, D)."""
        return torch.bmm(self._grad_x_term.mT, self.first.value[:, :, :-1])


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
