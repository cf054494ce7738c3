"""Operations that torch has without promising them, each with public ones that do the same where it is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def operation(name: str, overload: str, instead: Callable[..., Any]) -> Callable[..., Any]:
    """One overload of one of torch's internal operations: to choose among them at each call takes longer."""
    found: Callable[..., Any] = getattr(getattr(torch.ops.aten, name, None), overload, instead)
    return found


def add_then_relu(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    """max(a + b, 0), in two steps; infinity becomes the largest number, as it does in torch's own."""
    return torch.add(a, b, out=out).clamp_(0, torch.finfo(out.dtype).max)


def masked_gradient(grad_output: Tensor, activations: Tensor, threshold: float, *, grad_input: Tensor) -> Tensor:
    """The gradient, and zero where activations are at the threshold or below it."""
    return grad_input.copy_(grad_output).masked_fill_(activations <= threshold, 0)


def gradient_through_sigmoid(grad_output: Tensor, output: Tensor, *, grad_input: Tensor) -> Tensor:
    """g s (1 - s), with s the sigmoid's output."""
    return torch.mul(grad_output, output * (1 - output), out=grad_input)


def gradient_through_log_softmax(
    grad: Tensor, log_p: Tensor, axis: int, dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """g - p sum g over the axis."""
    return torch.sub(grad, log_p.exp() * grad.sum(axis, keepdim=True), out=out)


def gradient_through_softmax(grad: Tensor, p: Tensor, axis: int, dtype: torch.dtype, *, grad_input: Tensor) -> Tensor:
    """p (g - sum p g) over the axis."""
    return torch.mul(p, grad - (p * grad).sum(axis, keepdim=True), out=grad_input)


add_relu = operation("_add_relu", "out", add_then_relu)
"""Sum and ReLU of the largest arrays in one go."""
threshold_backward = operation("threshold_backward", "grad_input", masked_gradient)
sigmoid_backward = operation("sigmoid_backward", "grad_input", gradient_through_sigmoid)
log_softmax_backward: Callable[..., Tensor] = getattr(torch, "_log_softmax_backward_data", gradient_through_log_softmax)
softmax_backward: Callable[..., Tensor] = getattr(torch, "_softmax_backward_data", gradient_through_softmax)
