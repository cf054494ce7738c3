"""Modules of one shape, trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

ALIGNMENT = 16
"""Entries: 64 bytes in float32."""


class Learned(NamedTuple):
    """An array of parameters of all S modules, (S, *shape), and where its gradient belongs."""

    value: Tensor
    grad: Tensor


class Product:
    """Where a product of S matrices goes, whatever its place in memory.

    torch multiplies stacks of small matrices several times as fast into an array without gaps, which parameters that
    begin at multiples of ALIGNMENT do not form: there the product is worked out beside its place and copied.
    """

    def __init__(self, place: Tensor) -> None:
        self.place = place
        self._dense = place if place.is_contiguous() else torch.empty_like(place, memory_format=torch.contiguous_format)

    def of(self, a: Tensor, b: Tensor, add: bool = False) -> Tensor:
        """Write (S, i, j) times (S, j, k), or add it to the last product; returns its place."""
        if add:
            torch.baddbmm(self._dense, a, b, out=self._dense)
        else:
            torch.bmm(a, b, out=self._dense)
        return self.place if self._dense is self.place else self.place.copy_(self._dense)


class ModuleStack:
    """S modules of one shape whose parameters lie in one vector, so that a step is a handful of operations.

    A stack of one is how a single module is trained. The vector holds the first parameter of all modules, then the
    second of all, and so on: a parameter of all modules is one array (S, *shape), which one operation serves. The
    modules keep their parameters' names and shapes; each is a view of the vector, and backward accumulates into views
    of `gradient`. Every parameter of every module begins at a multiple of ALIGNMENT entries: the rounding of a matrix
    product may depend on where in memory its result lies, and a fit should not depend on its neighbours.

    Weight and bias of the linear layers that a module names in `affine_layers` lie side by side as one matrix [W b],
    which acts on [v; 1]: one product then serves both.

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
        blocks = _blocks(shapes[0], getattr(self.modules[0], "affine_layers", ()))
        S, dtype = len(rows), next(iter(rows[0].values())).dtype
        widths = {name: -(-shape.numel() // ALIGNMENT) * ALIGNMENT for name, shape in blocks.items()}
        self.vector, self.gradient = torch.zeros(2, S * sum(widths.values()), dtype=dtype)
        self.owner = torch.cat([torch.arange(S).repeat_interleave(width) for width in widths.values()])
        self._spans: dict[str, tuple[slice, torch.Size]] = {}
        start = 0
        for name, shape in blocks.items():
            self._spans[name] = slice(start, start + S * widths[name]), shape
            start += S * widths[name]
        self._parameters: dict[str, Tensor] = {}
        self._leaves: list[tuple[Tensor, Tensor]] = []
        for name in shapes[0]:
            values, grads = self._view(self.vector, name), self._view(self.gradient, name)
            self._parameters[name] = values.detach().requires_grad_()
            self._leaves.append((self._parameters[name], grads))
            for row, value, grad in zip(rows, values, grads, strict=True):
                value.copy_(row[name].detach())
                row[name].data, row[name].grad = value, grad
                self._leaves.append((row[name], grad))

    def _view(self, vector: Tensor, name: str) -> Tensor:
        """The entries of a vector that a parameter or a block has, (S, *shape)."""
        if name not in self._spans:
            layer, _, part = name.rpartition(".")
            joined = self._view(vector, layer)
            return joined[..., :-1] if part == "weight" else joined[..., -1]
        span, shape = self._spans[name]
        return vector[span].view(len(self), -1)[:, : shape.numel()].view(-1, *shape)

    def __len__(self) -> int:
        """S, the number of modules."""
        return len(self.modules)

    def parameter(self, name: str) -> Tensor:
        """A parameter of all modules, (S, *shape): a leaf for autograd; see `backward`."""
        return self._parameters[name]

    def learned(self, name: str) -> Learned:
        """A parameter, or [W b] of one of the `affine_layers`, out of autograd's sight."""
        return Learned(self._view(self.vector, name), self._view(self.gradient, name))

    def backward(self, loss: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        """Add the gradient of a loss that autograd knows, whether of the modules' parameters or of `parameter`'s.

        Returns the gradients of other leaves, if any are given.
        """
        leaves = [leaf for leaf, _ in self._leaves]
        found = torch.autograd.grad(loss, [*others, *leaves], allow_unused=True)
        for (_, into), grad in zip(self._leaves, found[len(others) :], strict=True):
            if grad is not None:
                into.add_(grad)
        return found[: len(others)]

    def gradients(self, losses: Tensor, *, at_once: bool, differentiable: bool = False) -> Tensor:
        """Gradient of each of n losses of each module, (S, n) -> (n, S, P), with P as in `of_model`.

        The modules share no parameter, so that one pass backward serves all of them. `at_once`, a single pass serves
        the n losses as well, which needs parameters that are all read by `parameter` and operations that torch knows
        how to vectorise; otherwise there is a pass for each. With `differentiable`, autograd knows the gradients.
        """
        leaves = [leaf for leaf, _ in self._leaves]
        outputs = torch.eye(losses.shape[1], dtype=losses.dtype)[:, None].expand(-1, *losses.shape)  # (n, S, n)
        options = {"retain_graph": True, "create_graph": differentiable}
        if at_once:
            joint = list(self._parameters.values())
            found = torch.autograd.grad(losses, joint, outputs, is_grads_batched=True, **options)
            return torch.cat([grad.flatten(2) for grad in found], 2)
        passes = [torch.autograd.grad(losses, leaves, output, allow_unused=True, **options) for output in outputs]
        return torch.stack([self._joined(found) for found in passes])

    def _joined(self, found: Sequence[Tensor | None]) -> Tensor:
        """Gradients of all leaves, some of which were not read, as (S, P)."""
        pieces, of_leaf = [], iter(found)
        for values in self._parameters.values():
            together, alone = next(of_leaf), [next(of_leaf) for _ in self.modules]
            if together is None:
                zero = torch.zeros_like(values[0])
                together = torch.stack([zero if grad is None else grad for grad in alone])
            pieces.append(together.flatten(1))
        return torch.cat(pieces, 1)

    def add_gradient(self, rows: Tensor) -> None:
        """Add a gradient of each module, (S, P) as `gradients` gives them, to what the parameters have."""
        places = [grad for _, grad in self._leaves[:: 1 + len(self)]]
        for place, piece in zip(places, rows.split([place[0].numel() for place in places], 1), strict=True):
            place.add_(piece.view(place.shape))

    @cached_property
    def tensor_of_entry(self) -> Tensor:
        """The parameter that each of a module's P entries belongs to, as a number, (P,) int64."""
        return torch.cat([torch.full((p[0].numel(),), i) for i, p in enumerate(self._parameters.values())])

    def of_model(self, vector: Tensor, s: int) -> Tensor:
        """The entries of a vector that belong to one of the modules, (P,)."""
        return torch.cat([self._view(vector, name)[s].reshape(-1) for name in self._parameters])

    def on_weights(self, values: Tensor) -> Tensor:
        """A vector with each module's value, of (S,), at all its parameters but biases, and zeros there."""
        vector = torch.zeros_like(self.vector)
        for name in self._parameters:
            if name.rpartition(".")[2] != "bias":
                entries = self._view(vector, name)  # (S, *shape)
                entries.copy_(values.view(-1, *[1] * (entries.ndim - 1)).expand_as(entries))
        return vector

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
                p.data = p.data.clone(memory_format=torch.contiguous_format)


def _trained(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in module.named_parameters() if p.requires_grad]


def _blocks(shapes: dict[str, torch.Size], affine_layers: Sequence[str]) -> dict[str, torch.Size]:
    """What lies in one piece: parameters by their names, joined weights and biases by that of their layer."""
    blocks: dict[str, torch.Size] = {}
    for name, shape in shapes.items():
        layer, _, part = name.rpartition(".")
        if layer not in affine_layers:
            blocks[name] = shape
        elif part == "weight":
            blocks[layer] = torch.Size([shape[0], shape[1] + 1])
    return blocks
