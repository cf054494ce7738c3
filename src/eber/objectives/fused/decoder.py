"""f1, the decoder p(y|z), with its gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eber.nn.stack import ModuleStack, Product


class StackedDecoder:
    """The decoders of S models at C draws of z for each of B rows; their gradients are put where they belong.

    Parameters
    ----------
    stack : ModuleStack
    f1 : nn.Sequential
        One of the decoders, for their common shape.
    points : (S, L + 1, C, B)
        z on top of a row of ones.
    label, weight : (S, K, B), (S, C, B)
        One-hot, and the weight of each draw.
    log_lik, grad_points : (S, C, B), as points
        Where log p(y|z) goes, and the gradient of its weighted sum.
    """

    def __init__(
        self,
        stack: ModuleStack,
        f1: nn.Sequential,
        points: Tensor,
        label: Tensor,
        weight: Tensor,
        log_lik: Tensor,
        grad_points: Tensor,
    ) -> None:
        self.stack, self.names = stack, [f"f1.{i}" for i, layer in enumerate(f1) if isinstance(layer, nn.Linear)]
        S, _, C, B = points.shape
        K = label.shape[1]
        self.points, self.grad_points = points.view(S, -1, C * B), grad_points.view(S, -1, C * B)
        self.label, self.weight, self.log_lik = label[:, :, None], weight[:, None], log_lik
        self.first = stack.learned(self.names[0])
        self._first_grad = Product(self.first.grad)
        self._points_transposed, self._transposed = self.points.mT, self.first.value.mT
        self._logits, self._grad = points.new_empty(2, S, K, C * B)
        self._log_p = points.new_empty(S, K, C, B)
        self._logits_by_draw, self._grad_by_draw = (array.view(S, K, C, B) for array in (self._logits, self._grad))

    def __call__(self) -> None:
        """Work out log p(y|z), and the gradient of its weighted sum."""
        if len(self.names) > 1:
            self._by_autograd()
            return
        torch.bmm(self.first.value, self.points, out=self._logits)
        torch.log_softmax(self._logits_by_draw, 1, out=self._log_p)
        # weight · (1[k=y] - p(k|z))
        torch.sub(self.label, torch.exp(self._log_p, out=self._grad_by_draw), out=self._grad_by_draw)
        self._grad_by_draw.mul_(self.weight)
        torch.sum(self._log_p.mul_(self.label), 1, out=self.log_lik)
        self._first_grad.of(self._grad, self._points_transposed)
        # The row of ones takes part: a product with a single row rounds differently in stacks of one and of many.
        torch.bmm(self._transposed, self._grad, out=self.grad_points)

    def _by_autograd(self) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            leaf = self.points[:, :-1].clone().requires_grad_()  # (S, L, C·B)
            hidden = leaf
            for i, name in enumerate(self.names):
                w, b = self.stack.parameter(f"{name}.weight"), self.stack.parameter(f"{name}.bias")
                hidden = torch.baddbmm(b.unsqueeze(2), w, torch.relu(hidden) if i else hidden)  # (S, width, C·B)
            log_p = torch.log_softmax(hidden, 1).view(self._log_p.shape)
            log_lik = (log_p * self.label.clone()).sum(1)  # (S, C, B)
            (grad,) = self.stack.backward((log_lik * self.weight[:, 0].clone()).sum(), leaf)
        self.log_lik.copy_(log_lik.detach())
        self.grad_points[:, :-1] = grad
