"""Modules of one shape, trained side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

ALIGNMENT = 16
"""Entries: 64 bytes in float32."""


class ModuleStack:
    """S modules of one shape whose parameters lie in one vector, so that a step is a handful of operations.

    A stack of one is how a single module is trained. The vector holds the first parameter of all modules, then the
    second of all, and so on: a parameter of all modules is one array (S, *shape), which one operation serves. The
    modules keep their parameters' names and shapes; each is a view of the vector, and backward accumulates into views
    of `gradient`. Every parameter of every module begins at a multiple of ALIGNMENT entries: the rounding of a matrix
    product may depend on where in memory its result lies, and a fit should not depend on its neighbours.

    Attributes
    ----------
    modules : the S modules
    vector, gradient : (S·P,), with zeros between parameters
    owner : (S·P,) int64, the module that each entry belongs to
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.modules = list(modules)
        rows = [dict(_trained(module)) for module in self.modules]
        shapes = [{name: p.shape for name, p in row.items()} for row in rows]
        if any(other != shapes[0] for other in shapes[1:]):
            raise ValueError("Only modules with parameters of the same names and shapes can be stacked.")
        S, dtype = len(rows), next(iter(rows[0].values())).dtype
        widths = {name: -(-shape.numel() // ALIGNMENT) * ALIGNMENT for name, shape in shapes[0].items()}
        self.vector, self.gradient = torch.zeros(2, S * sum(widths.values()), dtype=dtype)
        self.owner = torch.cat([torch.arange(S).repeat_interleave(width) for width in widths.values()])
        self._parameters: dict[str, Tensor] = {}
        self._grads: dict[str, Tensor] = {}
        self._spans: dict[str, tuple[slice, torch.Size]] = {}
        start = 0
        for name, shape in shapes[0].items():
            stop = start + S * widths[name]
            self._spans[name] = slice(start, stop), shape
            values, grads = self._view(self.vector, name), self._view(self.gradient, name)
            self._parameters[name], self._grads[name] = values.detach().requires_grad_(), grads
            for row, value, grad in zip(rows, values, grads, strict=True):
                value.copy_(row[name].detach())
                row[name].data, row[name].grad = value, grad
            start = stop

    def _view(self, vector: Tensor, name: str) -> Tensor:
        """A parameter's entries of a vector, (S, *shape)."""
        span, shape = self._spans[name]
        return vector[span].view(len(self), -1)[:, : shape.numel()].view(-1, *shape)

    def __len__(self) -> int:
        """S, the number of modules."""
        return len(self.modules)

    def parameter(self, name: str) -> Tensor:
        """A parameter of all modules, (S, *shape): a leaf for autograd; see `backward`."""
        return self._parameters[name]

    def grad(self, name: str) -> Tensor:
        """Where the gradient of a parameter of all modules belongs, (S, *shape)."""
        return self._grads[name]

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss that autograd knows, whether of the modules' parameters or of `parameter`'s."""
        loss.backward()
        for name, leaf in self._parameters.items():
            if leaf.grad is not None:
                self._grads[name].add_(leaf.grad)
                leaf.grad = None

    def of_model(self, vector: Tensor, s: int) -> Tensor:
        """The entries of a vector that belong to one of the modules, (P,)."""
        return torch.cat([self._view(vector, name)[s].reshape(-1) for name in self._spans])

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
