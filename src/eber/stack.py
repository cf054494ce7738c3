"""Modules of one shape, trained side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ModuleStack:
    """S modules of one shape whose parameters lie in one vector, so that a step is a handful of operations.

    A stack of one is how a single module is trained. The vector holds the first parameter of all modules, then the
    second of all, and so on: a parameter of all modules is one array (S, *shape), which one operation serves. The
    modules keep their parameters' names and shapes; each is a view of the vector, and backward accumulates into views
    of `gradient`.

    Attributes
    ----------
    modules : the S modules
    vector, gradient : (S·P,)
    owner : (S·P,) int64, the module that each entry belongs to
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.modules = list(modules)
        rows = [dict(_trained(module)) for module in self.modules]
        shapes = [{name: p.shape for name, p in row.items()} for row in rows]
        if any(other != shapes[0] for other in shapes[1:]):
            raise ValueError("Only modules with parameters of the same names and shapes can be stacked.")
        S = len(rows)
        blocks = {name: torch.stack([row[name].detach() for row in rows]) for name in shapes[0]}
        self.vector = torch.cat([block.reshape(-1) for block in blocks.values()])
        self.gradient = torch.zeros_like(self.vector)
        self.owner = torch.cat([torch.arange(S).repeat_interleave(block[0].numel()) for block in blocks.values()])
        self._parameters: dict[str, Tensor] = {}
        start = 0
        for name, block in blocks.items():
            stop = start + block.numel()
            leaf = self.vector[start:stop].view_as(block).detach().requires_grad_()
            grads = leaf.grad = self.gradient[start:stop].view_as(block)
            self._parameters[name] = leaf
            for row, value, grad in zip(rows, leaf.detach(), grads, strict=True):
                row[name].data, row[name].grad = value, grad
            start = stop

    def __len__(self) -> int:
        """S, the number of modules."""
        return len(self.modules)

    def parameter(self, name: str) -> Tensor:
        """A parameter of all modules, (S, *shape): a leaf for autograd, whose `grad` is a view of `gradient`."""
        return self._parameters[name]

    def grad(self, name: str) -> Tensor:
        """Where the gradient of a parameter of all modules belongs, (S, *shape)."""
        grad = self._parameters[name].grad
        assert grad is not None
        return grad

    def of_model(self, vector: Tensor, s: int) -> Tensor:
        """The entries of a vector that belong to one of the modules, (P,)."""
        return vector[self.owner == s]

    def clip(self, norm: float) -> None:
        """Scale each module's gradient down to `norm` if it is longer."""
        squares = self.gradient.double().square()  # in float64, since squares of float32 overflow early
        lengths = torch.zeros(len(self), dtype=torch.float64).index_add_(0, self.owner, squares).sqrt()
        factors = (norm / (lengths + 1e-6)).clamp(max=1.0)
        self.gradient.mul_(factors[self.owner])

    def all_finite(self, vector: Tensor) -> list[bool]:
        """Whether all entries of a vector that belong to each of the modules are finite."""
        unfit = set(self.owner[~torch.isfinite(vector)].tolist())
        return [s not in unfit for s in range(len(self))]

    def release(self) -> None:
        """Give the modules memory of their own again, free of gradients."""
        for module in self.modules:
            for _, p in _trained(module):
                p.grad = None
                p.data = p.data.clone()


def _trained(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in module.named_parameters() if p.requires_grad]
