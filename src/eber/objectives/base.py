"""What every objective takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Rows of a minibatch.

    Attributes
    ----------
    x : (B, ...)
    y : (B,) int64, class index
    e : (B,) int64, index of the observed environment
    log_p_e_given_x : (m, B) or None
        Environment weights supplied in place of h.
    """

    x: Tensor
    y: Tensor
    e: Tensor
    log_p_e_given_x: Tensor | None = None


@dataclass(frozen=True)
class LossTerms:
    """The loss to be minimised, the terms it is made of by name, and how its gradient reaches the parameters.

    Calling `backward` adds the gradient to the parameters' `grad`.
    """

    loss: float
    terms: Mapping[str, float]
    backward: Callable[[], None]

    @classmethod
    def from_tensor(cls, loss: Tensor, **terms: Tensor) -> LossTerms:
        """Loss terms whose gradient autograd knows."""
        return cls(loss.item(), {name: value.item() for name, value in terms.items()}, loss.backward)


class Objective(Protocol):
    """One method: a rule from a module and a minibatch to named loss terms. It never sees an optimizer."""

    def __call__(self, module: Any, batch: Batch, step: int, generator: torch.Generator) -> LossTerms:
        """The loss of this batch at this step (counted from 0), with all randomness from `generator`."""
        ...


@dataclass(frozen=True)
class PenaltySchedule:
    """Weight of a penalty: `initial` before `anneal_steps` steps have been taken, `weight` from then on."""

    weight: float
    anneal_steps: int = 0
    initial: float = 1.0

    def at(self, step: int) -> float:
        """The weight at a step, counted from 0."""
        return self.weight if step >= self.anneal_steps else self.initial


def environment_matrix(e: Tensor, dtype: torch.dtype, *, minimum: int = 1) -> Tensor:
    """Averages over the environments of a batch, (E, B): row j averages the rows of the j-th environment present.

    Environments with fewer than `minimum` rows in the batch are left out, so a penalty that needs several rows of an
    environment never sees one that has too few.
    """
    present, counts = e.unique(return_counts=True)
    present, counts = present[counts >= minimum], counts[counts >= minimum]
    return (e == present[:, None]).to(dtype) / counts[:, None]
