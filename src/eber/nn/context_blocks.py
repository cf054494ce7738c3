"""The first layer's sum over contexts and what follows it, in blocks of categories of the last context.

Activations for all combinations of contexts are the only large arrays of a network. Where they outgrow the processor's
cache they are worked out block by block in one small array, and once more for the gradient: that is faster than to send
them to memory and back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from eber.nn.stack import Learned, Product
from eber.nn.stacked_layers import Activations, Chain, Matrix
from eber.nn.torch_operations import add_relu

BLOCK = 1 << 17
"""Most activations of one network in a block, unless those of a single category are more. How many networks are side
by side does not enter: it would change the order of sums, and a fit should not depend on its neighbours."""


class Blocks:
    """Networks from the first layer's sum over contexts to the output, (S, out, *contexts, B).

    Parameters
    ----------
    x_term : (S, H, B)
    tables, one_hot : as `StackedMLP`'s
    matrices, relu : as `Chain`'s
    """

    def __init__(
        self,
        x_term: Tensor,
        tables: Sequence[Learned],
        one_hot: Tensor | None,
        matrices: Sequence[Matrix],
        relu: Sequence[bool],
    ) -> None:
        *first, last = tables
        self._sum = _Sum(x_term, first, one_hot)
        S, H, *others, B = self._sum.out.shape
        m, n_others = last.value.shape[2], math.prod(others)
        widest = max(H, *(matrix.width for matrix in matrices))
        n_blocks = math.ceil(m / max(1, BLOCK // (widest * n_others * B)))
        self._n = math.ceil(m / n_blocks)
        chains: dict[int, Chain] = {}  # two at most: the last block may be smaller
        self._blocks: list[_Block] = []
        for values, grads in zip(last.value.split(self._n, 2), last.grad.split(self._n, 2), strict=True):
            n = values.shape[2]
            if n not in chains:
                chains[n] = Chain(Activations(x_term, H, n_others * n * B, relu[0]), matrices, relu)
            self._blocks.append(_Block(self._sum, Learned(values, grads), chains[n]))
        self._several = len(self._blocks) > 1
        self.out = x_term.new_empty(S, matrices[-1].width, *others, m, B) if self._several else self._blocks[0].out
        self._places = self.out.split(self._n, -2)

    def forward(self) -> None:
        """Fill in the output."""
        self._sum.forward()
        for block, place in zip(self._blocks, self._places, strict=True):
            block.activate()
            block.chain.forward()
            if self._several:
                place.copy_(block.out)

    def backward(self, grad_out: Tensor) -> Tensor:
        """Write the gradients of tables and matrices, given that of the output; returns that of `x_term`."""
        if not self._several:
            self._blocks[0].backward(grad_out, add=False)
            return self._sum.backward()
        for i, (block, grad) in enumerate(zip(self._blocks, grad_out.split(self._n, -2), strict=True)):
            block.activate()  # another block's activations have taken the place of this one's
            block.chain.activate()
            block.backward(grad, add=i > 0)
        return self._sum.backward()


class _Sum:
    """Sum of (S, H, B) and one table (S, H, size) for each context but the last, (S, H, *contexts, B)."""

    def __init__(self, x_term: Tensor, tables: Sequence[Learned], one_hot: Tensor | None) -> None:
        S, H, B = x_term.shape
        self._tables, self._one_hot, self._x_term, self.out = tables, one_hot, x_term, x_term
        self._terms: list[tuple[Tensor, Tensor, Tensor]] = []
        for i, table in enumerate(tables):
            if i == 0 and one_hot is not None:
                self._in_order = x_term.new_empty(S, H, one_hot.shape[2])  # W_y[y] of every label in order
                self._one_hot_transposed, self._in_order_grad = one_hot.mT, Product(table.grad)
                addend = self._in_order.view(S, H, -1, B)
            else:
                addend = table.value.view(S, H, *[1] * i, -1, 1)
            out = x_term.new_empty(*self.out.shape[:-1], addend.shape[-2], B)
            self._terms.append((self.out.unsqueeze(-2), addend, out))
            self.out = out
        self._grads: list[Tensor] = []

    @property
    def grad(self) -> Tensor:
        """Where the gradient of `out` is worked out."""
        if not self._grads:  # of x_term, then of it and one more context each time
            self._grads = [torch.empty_like(self._x_term), *(torch.empty_like(out) for _, _, out in self._terms)]
        return self._grads[-1]

    def forward(self) -> None:
        """Fill in `out`."""
        if self._one_hot is not None:
            torch.bmm(self._tables[0].value, self._one_hot, out=self._in_order)
        for term, addend, out in self._terms:
            torch.add(term, addend, out=out)

    def backward(self) -> Tensor:
        """Undo the sums, last context first; write the gradients of the tables, return that of (S, H, B)."""
        for i in reversed(range(len(self._tables))):
            without, grad = self._grads[i : i + 2]
            if i == 0 and self._one_hot is not None:
                self._in_order_grad.of(grad.flatten(2), self._one_hot_transposed)
            else:
                torch.sum(grad, (*range(2, 2 + i), -1), out=self._tables[i].grad)
            torch.sum(grad, 2 + i, out=without)
        return self._grads[0]


class _Block:
    """The activations for some categories of the last context, and what follows them."""

    def __init__(self, others: _Sum, table: Learned, chain: Chain) -> None:
        self._others, self._table, self.chain = others, table, chain
        (S, H, *contexts, B), n = others.out.shape, table.value.shape[2]
        self._shape = (*contexts, n, B)
        self._term, self._addend = others.out.unsqueeze(-2), table.value.view(S, H, *[1] * len(contexts), n, 1)
        self._hidden, self.out = (array.unflatten(2, self._shape) for array in (chain.start.body, chain.out))
        self._plan: _BackwardPlan | None = None

    def activate(self) -> None:
        """Work out the activations."""
        (add_relu if self.chain.start.relu else torch.add)(self._term, self._addend, out=self._hidden)

    def backward(self, grad_out: Tensor, add: bool) -> None:
        """Write the gradients of table, matrices and the sum over the other contexts; the last two may be added to."""
        if self._plan is None:
            self._plan = self._plan_backward()
        self.chain.backward(grad_out.reshape(self.chain.out.shape), add)
        grad, axis, over_rows, contexts, over_categories = self._plan
        torch.sum(grad, -1, out=over_rows)  # rows first: torch is slow at axes that do not adjoin
        if contexts:
            torch.sum(over_rows, contexts, out=self._table.grad)
        if add:
            self._others.grad.add_(torch.sum(grad, axis, out=over_categories))
        else:
            torch.sum(grad, axis, out=self._others.grad)

    def _plan_backward(self) -> _BackwardPlan:
        grad = self.chain.start.grad.unflatten(2, self._shape)
        contexts = list(range(2, grad.dim() - 2))
        over_rows = grad.new_empty(grad.shape[:-1]) if contexts else self._table.grad
        return _BackwardPlan(grad, grad.dim() - 2, over_rows, contexts, torch.empty_like(self._others.grad))


class _BackwardPlan(NamedTuple):
    """What a block's sums of gradients need.

    The gradient of the activations, its axis of categories, where sums over rows go, the axes of other contexts, and
    where sums over categories go.
    """

    grad: Tensor
    axis: int
    over_rows: Tensor
    contexts: list[int]
    over_categories: Tensor
