"""What every objective takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from eber.nn.networks import row_losses
from eber.nn.stack import ModuleStack


@dataclass(frozen=True)
class Batch:
    """Rows of a minibatch; those of S models trained side by side where every array has a leading axis S.

    Attributes
    ----------
    x : (B, ...)
    y : (B,) int64, class index
    e : (B,) int64, index of the observed environment
    log_p_e_given_x : (m, B) or None
        Environment weights supplied in place of h.
    weight : (B,) or None
        How much each row counts; the mean over the whole table is one. None: all alike.
    """

    x: Tensor
    y: Tensor
    e: Tensor
    log_p_e_given_x: Tensor | None = None
    weight: Tensor | None = None

    def of_model(self, s: int) -> Batch:
        """The rows of one of the S models."""
        log_p_e, weight = self.log_p_e_given_x, self.weight
        return Batch(
            self.x[s],
            self.y[s],
            self.e[s],
            None if log_p_e is None else log_p_e[s],
            None if weight is None else weight[s],
        )

    def mean(self, values: Tensor) -> Tensor:
        """Mean over rows, (..., B) -> (...): sum_i w_i v_i / B, whose mean over batches is that over the table."""
        return values.mean(-1) if self.weight is None else (self.weight * values).mean(-1)


@dataclass(frozen=True)
class LossTerms:
    """The loss to be minimised, the terms it is made of by name, and how its gradient reaches the parameters.

    Attributes
    ----------
    names : ``"loss"``, then the names of the terms
    values : (len(names), S), of each of the S models
    backward : adds the gradient to the parameters' `grad`
    """

    names: tuple[str, ...]
    values: Tensor
    backward: Callable[[], object]

    @classmethod
    def from_tensors(cls, stack: ModuleStack, loss: Tensor, **terms: Tensor) -> LossTerms:
        """Loss terms, (S,) each, whose gradient autograd knows; the models share no parameter, so losses add up."""
        values = torch.stack([loss, *terms.values()]).detach()
        return cls(("loss", *terms), values, lambda: stack.backward(loss.sum()))

    def of(self, name: str, s: int = 0) -> float:
        """One of the terms of one of the models."""
        return float(self.values[self.names.index(name), s])


class Objective(Protocol):
    """One method: a rule from models and a minibatch for each to named loss terms. It never sees an optimizer."""

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """The loss of this batch at this step (counted from 0), with each model's randomness from its own generator."""
        ...


class ModelObjective(Protocol):
    """A rule for one module and its minibatch, without the axis of models: loss and terms that autograd knows."""

    def terms(self, module: Any, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        """``"loss"`` and its terms by name, scalars."""
        ...


class ModelByModel:
    """An objective that is written for one model, applied to each of a stack in turn."""

    def __init__(self, objective: ModelObjective) -> None:
        self.objective = objective

    def __call__(self, stack: ModuleStack, batch: Batch, step: int, generators: Sequence[torch.Generator]) -> LossTerms:
        """See `Objective`."""
        models = [
            self.objective.terms(module, batch.of_model(s), generators[s]) for s, module in enumerate(stack.modules)
        ]
        return LossTerms.from_tensors(
            stack, **{name: torch.stack([terms[name] for terms in models]) for name in models[0]}
        )


@dataclass(frozen=True)
class PenaltySchedule:
    """Weight of a penalty: `initial` before `anneal_steps` steps have been taken, `weight` from then on.

    `weights` holds one weight for each of the S models trained side by side.
    """

    weights: tuple[float, ...]
    anneal_steps: int = 0
    initial: float = 1.0

    def at(self, step: int, like: Tensor) -> Tensor:
        """The weights at a step, counted from 0; (S,)."""
        weights = self.weights if step >= self.anneal_steps else (self.initial,) * len(self.weights)
        return like.new_tensor(weights)


def environment_averages(
    e: Tensor, n_environments: int, dtype: torch.dtype, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Averages over the environments of a batch: (S, m, B), whose row j averages the rows of environment j, and counts.

    The row of an environment that is missing from the batch is zero, and so is its count, (S, m). With weights, (S, B),
    averages are weighted, rows of weight zero are missing, and the count is Kish's effective number of rows,
    (sum w)^2 / sum w^2: it is one where a single row counts, and does not depend on the weights' scale.
    """
    member = (e[:, None] == torch.arange(n_environments)[:, None]).to(dtype)  # (S, m, B)
    if weight is None:
        counts = member.sum(2)
        return member / counts.clamp(min=1)[:, :, None], counts
    member = member * weight[:, None]
    total = member.sum(2)
    return member / one_for_zero(total)[:, :, None], total.square() / one_for_zero(member.square().sum(2))


def one_for_zero(total: Tensor) -> Tensor:
    """A sum of weights to divide by, with one where it is zero, and so is what is divided."""
    return torch.where(total > 0, total, 1.0)


def degrees_of_freedom(counts: Tensor) -> Tensor:
    """n - 1 of n rows, or of their effective number, which a variance is divided by; one where there is no variance."""
    return torch.where(counts > 1, counts - 1, 1.0)


def mean_where(values: Tensor, present: Tensor) -> Tensor:
    """Mean over the environments that are present: (S, m) and (S, m) of zeros and ones -> (S,); zero where none is."""
    return (values * present).sum(1) / present.sum(1).clamp(min=1)


class EnvironmentRisks(NamedTuple):
    """Risks of the environments of a batch.

    Attributes
    ----------
    risks : (S, m), R_e, the mean of -log p(y|x) over the rows of environment e; zero where it is missing
    present : (S, m), one where environment e has rows in the batch, zero where it has none
    average : (S, m, B), whose row e averages the rows of environment e
    counts : (S, m), rows of each environment, or their effective number (`environment_averages`)
    """

    risks: Tensor
    present: Tensor
    average: Tensor
    counts: Tensor

    @property
    def mean(self) -> Tensor:
        """mean_e R_e over the environments present, (S,)."""
        return mean_where(self.risks, self.present)


def environment_risks(logits: Tensor, batch: Batch, n_environments: int) -> EnvironmentRisks:
    """The risk of each environment, from logits (S, B, K)."""
    average, counts = environment_averages(batch.e, n_environments, logits.dtype, batch.weight)
    risks = torch.bmm(average, row_losses(logits, batch.y)[:, :, None])[:, :, 0]
    return EnvironmentRisks(risks, (counts > 0).to(logits.dtype), average, counts)


def centred_within(rows: Tensor, average: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Means of rows (S, B, R) over each environment, (S, m, R), and each row less the mean of its own, (S, B, R)."""
    means = torch.bmm(average, rows)
    return means, rows - means.gather(1, e[:, :, None].expand_as(rows))
