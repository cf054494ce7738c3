"""Labels counted from the observed one: label k of a row stands for class (y + k) mod K, so that label 0 is its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

FEW_CLASSES = 4
"""Up to so many, sums of products with zeros and ones are faster than torch's gather."""


class LabelOrder:
    """The order of the labels of S·B rows.

    Attributes
    ----------
    one_hot : (S, K, K·B), whether each class is that of each label
    """

    def __init__(self, n_models: int, n_classes: int, n_rows: int, like: Tensor) -> None:
        S, K, B = n_models, n_classes, n_rows
        numbers = torch.arange(K)
        self._numbers, self._classes = numbers[:, None], torch.zeros(S, K, B, dtype=torch.int64)
        self._labels = (numbers[:, None, None] - numbers[:, None]) % K  # whose label k is class c, (c, k, 1)
        self._uses_classes = False
        self.one_hot = like.new_empty(S, K, K * B)
        self._table = self.one_hot.view(S, K, K, B)
        # For each class, the labels that are it, and for each label, the classes that it is; (S, K, 1, B) each.
        self._of_class, self._of_label = (self._table[:, :, :, None].unbind(axis) for axis in (1, 2))

    def see(self, y: Tensor) -> None:
        """Take the labels of a batch, (S, B)."""
        torch.eq(y[:, None, None], self._labels, out=self._table)
        if self._uses_classes:
            torch.add(y[:, None], self._numbers, out=self._classes).remainder_(len(self._numbers))

    @property
    def classes(self) -> Tensor:
        """The class of each label, (S, K, B) int64, filled in from the next `see` on."""
        self._uses_classes = True
        return self._classes

    def from_classes(self, by_class: Tensor, in_order: Tensor) -> Callable[[], object]:
        """What fills in (S, K, n, B), labels in this order, from the same with classes in their own."""
        if len(self._numbers) <= FEW_CLASSES:
            return _SumOfProducts(self._of_class, by_class, in_order)
        index = self.classes[:, :, None].expand(by_class.shape)
        return lambda: torch.gather(by_class, 1, index, out=in_order)

    def to_classes(self, in_order: Tensor, by_class: Tensor) -> Callable[[], object]:
        """What does the reverse."""
        if len(self._numbers) <= FEW_CLASSES:
            return _SumOfProducts(self._of_label, in_order, by_class)
        index = self.classes[:, :, None].expand(by_class.shape)
        return lambda: by_class.scatter_(1, index, in_order)


class _SumOfProducts:
    """Sum over i of factor i and (S, 1, n, B) number i of an array."""

    def __init__(self, factors: Sequence[Tensor], array: Tensor, out: Tensor) -> None:
        self._first, *self._others = zip(factors, array.split(1, 1), strict=True)
        self._out = out

    def __call__(self) -> None:
        torch.mul(*self._first, out=self._out)
        for factor, part in self._others:
            self._out.addcmul_(factor, part)
