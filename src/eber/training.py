"""The one loop that every method uses."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from eber.exceptions import NonFiniteLossError
from eber.objectives.base import Batch, Objective

AVERAGE_WARM_UP = 10
"""The moving average of the weights forgets its start: at step t its decay is at most t / (t + AVERAGE_WARM_UP)."""


@dataclass(frozen=True)
class TrainingSettings:
    """How a module is trained.

    Attributes
    ----------
    epochs, batch_size, learning_rate
        Passes over the data, rows a step, Adam's step size.
    clip_norm : float or None
        Largest norm of the gradient; a longer one is scaled down to it.
    average_decay : float or None
        Decay of the exponential moving average of the weights that prediction uses; None keeps the last weights.
    reset_optimizer_at : int or None
        Step at which Adam's moments are forgotten.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    clip_norm: float | None = None
    average_decay: float | None = None
    reset_optimizer_at: int | None = None


@contextmanager
def isolated_torch(seed: int, threads: int) -> Iterator[torch.Generator]:
    """A generator of one's own, with torch's global generator and thread count put back afterwards.

    The global generator is seeded too while the block runs, for modules that draw from it (initialisation, dropout).
    Denormal numbers are flushed to zero meanwhile: the tails of mixtures are full of them, arithmetic on them is tens
    of times slower, and nothing in float32 depends on values below 1e-38.
    """
    threads_before = torch.get_num_threads()
    denormals_before = bool(torch.tensor(1e-40) * 1 != 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)
        try:
            yield torch.Generator().manual_seed(seed)
        finally:
            torch.set_flush_denormal(not denormals_before)
            torch.set_num_threads(threads_before)


class FlatParameters:
    """All parameters of a module as views of one vector, so that a step is a handful of operations.

    Works for any module: parameters keep their shapes and names, and backward accumulates into views of `vector.grad`.
    """

    def __init__(self, module: nn.Module) -> None:
        parameters = [p for p in module.parameters() if p.requires_grad]
        self.vector = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in parameters]))
        self.gradient = torch.zeros_like(self.vector)
        self.vector.grad = self.gradient
        start = 0
        for p in parameters:
            stop = start + p.numel()
            p.data = self.vector.data[start:stop].view_as(p)
            p.grad = self.gradient[start:stop].view_as(p)
            start = stop

    def clip(self, norm: float) -> None:
        """Scale the gradient down to `norm` if it is longer."""
        length = torch.linalg.vector_norm(self.gradient, dtype=torch.float64)  # squares of float32 overflow early
        self.gradient.mul_((norm / (length + 1e-6)).clamp(max=1.0))


def shuffled_batches(data: Batch, batch_size: int, generator: torch.Generator) -> Iterator[Batch]:
    """Minibatches of one pass: one shuffled index, one gather, then slices. The last batch may be smaller."""
    order = torch.randperm(len(data.y), generator=generator)
    x, y, e = data.x[order], data.y[order], data.e[order]
    weights = None if data.log_p_e_given_x is None else data.log_p_e_given_x[:, order]
    for start in range(0, len(order), batch_size):
        rows = slice(start, start + batch_size)
        yield Batch(x[rows], y[rows], e[rows], None if weights is None else weights[:, rows])


def steps_in(n_rows: int, settings: TrainingSettings) -> int:
    """Number of optimizer steps that a fit takes."""
    return settings.epochs * math.ceil(n_rows / settings.batch_size)


class Trainer:
    """Adam on one module and one objective, a step at a time."""

    def __init__(
        self, module: nn.Module, objective: Objective, settings: TrainingSettings, generator: torch.Generator
    ) -> None:
        self.module, self.objective, self.settings, self.generator = module, objective, settings, generator
        self.parameters = FlatParameters(module)
        self.average = self.parameters.vector.detach().clone()
        self.steps = 0
        self._start_optimizer()

    def _start_optimizer(self) -> None:
        self.optimizer = torch.optim.Adam([self.parameters.vector], lr=self.settings.learning_rate, fused=True)

    def step(self, batch: Batch) -> dict[str, float]:
        """One minibatch: loss, gradient, Adam, average. Returns the loss and its terms by name."""
        if self.steps == self.settings.reset_optimizer_at:
            self._start_optimizer()
        self.parameters.gradient.zero_()
        result = self.objective(self.module, batch, self.steps, self.generator)
        if not math.isfinite(result.loss):
            raise NonFiniteLossError(
                f"The loss became {result.loss} at step {self.steps + 1}. Standardise the features, "
                f"lower learning_rate (now {self.settings.learning_rate:g}), or set clip_norm."
            )
        result.backward()
        if self.settings.clip_norm is not None:
            self.parameters.clip(self.settings.clip_norm)
        self.optimizer.step()
        if self.settings.average_decay is not None:
            decay = min(self.settings.average_decay, (self.steps + 1) / (self.steps + 1 + AVERAGE_WARM_UP))
            self.average.lerp_(self.parameters.vector.data, 1 - decay)
        self.steps += 1
        return {"loss": result.loss, **result.terms}

    def finish(self) -> None:
        """Leave the module with the weights that prediction uses, free of gradients and of the flat vector."""
        if self.settings.average_decay is not None:
            self.parameters.vector.data.copy_(self.average)
        if not torch.isfinite(self.parameters.vector).all():
            raise NonFiniteLossError(
                f"The weights stopped being finite at the last step ({self.steps}). Standardise the features or lower "
                f"learning_rate (now {self.settings.learning_rate:g})."
            )
        if not all(torch.isfinite(moments["exp_avg_sq"]).all() for moments in self.optimizer.state.values()):
            raise NonFiniteLossError(
                f"The square of the gradient overflowed before step {self.steps + 1}, so the weights could not move. "
                "Standardise the features or set clip_norm."
            )
        for p in self.module.parameters():
            p.grad = None
            p.data = p.data.clone()


def train(
    module: nn.Module,
    objective: Objective,
    data: Batch,
    settings: TrainingSettings,
    generator: torch.Generator,
    on_epoch: Callable[[int, dict[str, float]], None] | None = None,
) -> list[dict[str, float]]:
    """Train a module in place and return the mean of every loss term in each pass.

    Parameters
    ----------
    data : Batch
        All training rows.
    on_epoch : callable, optional
        Told the number of passes done and the terms of the last one.
    """
    trainer = Trainer(module, objective, settings, generator)
    module.train()
    history: list[dict[str, float]] = []
    for epoch in range(settings.epochs):
        totals: dict[str, float] = defaultdict(float)
        for batch in shuffled_batches(data, settings.batch_size, generator):
            for name, value in trainer.step(batch).items():
                totals[name] += value * len(batch.y)
        history.append({name: total / len(data.y) for name, total in totals.items()})
        if on_epoch is not None:
            on_epoch(epoch + 1, history[-1])
    trainer.finish()
    module.eval()
    return history
