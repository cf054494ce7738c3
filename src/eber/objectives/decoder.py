"""f1, the decoder p(y|z), with its gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eber.stack import ModuleStack


class StackedDecoder:
    """The decoders of S models; their gradients are put where they belong in the stack.

    Parameters
    ----------
    stack : ModuleStack
    f1 : nn.Sequential
        One of the decoders, for their common shape.
    """

    def __init__(self, stack: ModuleStack, f1: nn.Sequential) -> None:
        self.stack = stack
        names = [f"f1.{i}" for i, layer in enumerate(f1) if isinstance(layer, nn.Linear)]
        self.layers = [(stack.parameter(f"{name}.weight"), stack.parameter(f"{name}.bias")) for name in names]
        weight, bias = (parameter.detach() for parameter in self.layers[0])
        self.weight, self.transposed, self.bias = weight, weight.mT, bias.unsqueeze(2)
        self.grad_weight, self.grad_bias = (stack.grad(f"{names[0]}.{part}") for part in ("weight", "bias"))

    def __call__(self, z: Tensor, label: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """log p(y|z), (S, C, B), and the gradient of its weighted sum with respect to z, (S, L, C, B).

        Parameters
        ----------
        z : (S, L, C, B)
        label : (S, K, B)
            One-hot.
        weight : (S, C, B)
        """
        if len(self.layers) > 1:
            return self._by_autograd(z, label, weight)
        S, _, C, B = z.shape
        points, label = z.flatten(2), label.unsqueeze(2)  # (S, L, C·B), (S, K, 1, B)
        logits = torch.baddbmm(self.bias, self.weight, points).view(S, -1, C, B)
        log_lik = torch.log_softmax(logits, 1).mul_(label).sum(1)
        grad = torch.sub(label, torch.softmax(logits, 1)).mul_(weight.unsqueeze(1))  # weight · (1[k=y] - p(k|z))
        # A product with a single row rounds differently in stacks of one and of many, where a sum does not.
        torch.sum(grad.unsqueeze(2) * z.unsqueeze(1), (3, 4), out=self.grad_weight)
        torch.sum(grad, (2, 3), out=self.grad_bias)
        return log_lik, torch.bmm(self.transposed, grad.flatten(2)).view(z.shape)

    def _by_autograd(self, z: Tensor, label: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        S, _, C, B = z.shape
        with torch.inference_mode(False), torch.enable_grad():
            label, weight = label.clone(), weight.clone()
            leaf = z.flatten(2).clone().requires_grad_()
            hidden = leaf
            for i, (w, b) in enumerate(self.layers):
                hidden = torch.baddbmm(b.unsqueeze(2), w, torch.relu(hidden) if i else hidden)  # (S, width, C·B)
            log_p = torch.log_softmax(hidden, 1).view(S, -1, C, B)
            log_lik = (log_p * label.unsqueeze(2)).sum(1)  # (S, C, B)
            self.stack.backward((log_lik * weight).sum())
        assert leaf.grad is not None
        return log_lik.detach(), leaf.grad.view(z.shape)
