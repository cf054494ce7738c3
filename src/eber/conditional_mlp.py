"""A ReLU network on [x; y; e] for all y and e at once, with its backward pass written by hand.

Its meaning is that of plain layers on the concatenation of x with one-hot contexts, which is what the tests compare
it with. Written this way the first layer is a broadcast sum instead of K·m copies of x, and a linear representation
followed by the linear head is one small matrix. `ConditionalMLP` is the operation for autograd; an objective that
computes its own gradients calls `forward` and `backward` directly.
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
    """

    n_tables: int
    linear_representation: bool


@dataclass(frozen=True)
class MLPCache:
    """What the backward pass needs of the forward pass."""

    features: Tensor  # (B, D)
    activations: list[Tensor]  # (H_i, K·m·B) each
    head_weight: Tensor  # (out, H), with a linear representation already multiplied in
    shape: tuple[int, ...]  # (*contexts, B)


def spread(x_term: Tensor, tables: Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """Broadcast sum of (H, B) and one (H, size) table for each context into (H, *contexts, B)."""
    if not tables:
        return x_term
    table = tables[0]
    for other in tables[1:]:
        table = table[..., None] + other.view(other.shape[0], *[1] * (table.dim() - 1), -1)
    return torch.add(x_term.view(x_term.shape[0], *[1] * len(tables), -1), table[..., None], out=out)


def forward(
    layout: MLPLayout, parameters: Sequence[Tensor], features: Tensor, workspace: Workspace
) -> tuple[Tensor, MLPCache]:
    """``head(representation(relu(... relu(W_x x + W_y[y] + W_e[e] + b))))``, (B, D) -> (out, *contexts, B)."""
    first_weight, first_bias = parameters[0], parameters[1]
    tables, rest = parameters[2 : 2 + layout.n_tables], parameters[2 + layout.n_tables :]
    head_weight, head_bias = rest[-2], rest[-1]
    relu_layers = rest[:-2]
    if layout.linear_representation:
        weight, bias = relu_layers[-2], relu_layers[-1]
        relu_layers = relu_layers[:-2]
        # Two linear maps in a row act as one: multiply the small matrices, not the large activations.
        head_bias = torch.addmv(head_bias, head_weight, bias)
        head_weight = head_weight @ weight
    x_term = torch.addmm(first_bias[:, None], first_weight, features.T)  # (H, B)
    shape = (*(table.shape[1] for table in tables), x_term.shape[1])
    hidden = spread(x_term, tables, out=workspace.take("hidden", (x_term.shape[0], *shape), x_term)).relu_()
    hidden = hidden.flatten(1)  # (H, K·m·B)
    activations = [hidden]
    for i in range(0, len(relu_layers), 2):
        size = (relu_layers[i].shape[0], hidden.shape[1])
        out = workspace.take(f"hidden {i}", size, x_term)
        hidden = torch.addmm(relu_layers[i + 1][:, None], relu_layers[i], hidden, out=out).relu_()
        activations.append(hidden)
    out = torch.addmm(head_bias[:, None], head_weight, hidden).view(-1, *shape)
    return out, MLPCache(features, activations, head_weight, shape)


def backward(
    layout: MLPLayout,
    parameters: Sequence[Tensor],
    cache: MLPCache,
    grad_out: Tensor,
    workspace: Workspace,
    features_too: bool = False,
) -> tuple[Tensor | None, list[Tensor]]:
    """Gradient with respect to the features (if asked for) and to each parameter, given that of the output."""
    rest = parameters[2 + layout.n_tables :]
    activations, n = cache.activations, layout.n_tables
    grad = grad_out.reshape(grad_out.shape[0], -1)
    grad_weight, grad_bias = grad @ activations[-1].T, grad.sum(1)
    grads = [grad_weight, grad_bias]
    if layout.linear_representation:
        inner_weight, inner_bias, head_weight = rest[-4], rest[-3], rest[-2]
        transposed = head_weight.T
        grads = [
            transposed @ grad_weight,
            transposed @ grad_bias,
            torch.addr(grad_weight @ inner_weight.T, grad_bias, inner_bias),
            grad_bias,
        ]
    weight = cache.head_weight
    for i in range(len(activations) - 1, -1, -1):
        out = workspace.take(f"grad {i}", tuple(activations[i].shape), grad)
        grad = torch.mm(weight.T, grad, out=out)
        torch.ops.aten.threshold_backward(grad, activations[i], 0, grad_input=grad)  # no gradient where ReLU is zero
        if i > 0:
            grads = [grad @ activations[i - 1].T, grad.sum(1), *grads]
            weight = rest[2 * (i - 1)]
    grad = grad.view(-1, *cache.shape)  # (H, *contexts, B)
    grad_x = grad.sum(tuple(range(1, 1 + n))) if n else grad  # (H, B)
    tables: list[Tensor] = []
    if n:
        over_rows = grad.sum(-1)  # (H, *contexts)
        others = [[axis for axis in range(1, 1 + n) if axis != 1 + i] for i in range(n)]
        tables = [over_rows.sum(axes) if axes else over_rows for axes in others]
    grad_features = grad_x.T @ parameters[0] if features_too else None
    return grad_features, [grad_x @ cache.features, grad_x.sum(1), *tables, *grads]


class ConditionalMLP(torch.autograd.Function):
    """`forward` as an operation that autograd can differentiate: ``apply(features, layout, *parameters)``."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, layout: MLPLayout, *parameters: Tensor) -> Tensor:
        out, cache = forward(layout, parameters, features, Workspace())
        ctx.save_for_backward(*parameters)
        ctx.layout, ctx.cache = layout, cache
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        features_too = ctx.needs_input_grad[0]
        grad_features, grads = backward(ctx.layout, ctx.saved_tensors, ctx.cache, grad_out, Workspace(), features_too)
        return grad_features, None, *grads
