"""The one loop that every method uses."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import torch
from torch import Tensor, nn

from eber.exceptions import NonFiniteLossError
from eber.nn.stack import ModuleStack
from eber.objectives.base import Batch, LossTerms, Objective

AVERAGE_WARM_UP = 10
"""The moving average of the weights forgets its start: at step t its decay is at most t / (t + AVERAGE_WARM_UP)."""

ELEMENTS_AT_ONCE = 1 << 20
"""Numbers that are collected in shuffled order at once."""

History = list[dict[str, float]]
"""The mean of the loss and of each of its terms in each pass."""

EpochCallback = Callable[[int, Mapping[str, float]], object]
"""Told the number of a pass, from 1, and the loss and its terms by name; something true ends the training."""


class Verdict(NamedTuple):
    """What a judge makes of a pass: numbers for the history, whether it is the best by now, whether to stop."""

    terms: dict[str, float]
    is_best: bool
    stop: bool


Judge = Callable[[int, nn.Module], Verdict]
"""Told the number of a pass, from 1, and the module with the weights that prediction would use."""


@dataclass(frozen=True)
class TrainingSettings:
    """How modules are trained.

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
    stored_at_random : bool
        Whether rows lie in random order already, so that blocks of neighbours may be visited together: what makes
        sense of a file larger than memory.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    clip_norm: float | None = None
    average_decay: float | None = None
    reset_optimizer_at: int | None = None
    stored_at_random: bool = False


_GLOBAL_GENERATOR = threading.RLock()
_forked = False


def _after_fork() -> None:
    global _forked, _GLOBAL_GENERATOR
    _forked = True
    _GLOBAL_GENERATOR = threading.RLock()  # the old one may be held by a thread that the child has not got


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def threads_here(wanted: int) -> int:
    """So many threads as wanted, but one in a process that was forked.

    OpenMP's threads do not survive a fork, and its runtime does not know: where the parent has computed with several,
    the first parallel loop of the child waits for them for ever.
    """
    return 1 if _forked else wanted


def prepare_inference() -> None:
    """Let torch compute with one thread in a process that was forked; elsewhere the user's setting stands."""
    torch.set_num_threads(threads_here(torch.get_num_threads()))


@contextmanager
def global_generator(seed: int) -> Iterator[None]:
    """Seed torch's global generator for modules that know no other (initialisation, dropout), and put it back.

    There is one in a process: those who need it wait for each other. A thread that draws from it without asking here
    would get, and take away, numbers of this block.
    """
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def isolated_torch(seed: int, threads: int, draws_globally: bool = False) -> Iterator[torch.Generator]:
    """A generator of one's own, with what was changed of torch put back afterwards.

    Torch's global generator is touched only where modules in the block draw from it (`draws_globally`). The number of
    threads and the treatment of denormals are the calling thread's own. Denormal numbers are flushed to zero: the tails
    of mixtures are full of them, arithmetic on them is tens of times slower, and nothing in float32 depends on values
    below 1e-38.
    """
    threads_before = torch.get_num_threads()
    denormals_before = bool(torch.tensor(1e-40) * 1 != 0)
    with global_generator(seed) if draws_globally else nullcontext():
        torch.set_num_threads(threads_here(threads))
        torch.set_flush_denormal(True)
        try:
            yield torch.Generator().manual_seed(seed)
        finally:
            torch.set_flush_denormal(not denormals_before)
            torch.set_num_threads(threads_before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread while the block runs: sums are then of one order, and answers the same to the bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Adam:
    """Adam (Kingma & Ba) on one vector, with its usual constants; torch's own spends far longer on bookkeeping.

    Parameters
    ----------
    kept : tensor, optional
        Share of each entry that a step keeps before it moves, 1 - learning_rate · weight decay: decay that is decoupled
        from the gradient's scale, as in AdamW (Loshchilov & Hutter 2019).
    """

    BETAS, EPSILON = (0.9, 0.999), 1e-8

    def __init__(self, vector: Tensor, learning_rate: float, kept: Tensor | None = None) -> None:
        self.vector, self.learning_rate, self.kept = vector, learning_rate, kept
        self.mean, self.square = torch.zeros_like(vector), torch.zeros_like(vector)
        self._scale = torch.empty_like(vector)
        # As arrays: a plain number is converted anew at every use, which costs more than the arithmetic.
        self._second, self._epsilon = vector.new_tensor([self.BETAS[1], self.EPSILON])
        self.steps = 0

    def step(self, gradient: Tensor) -> None:
        """Move the vector against the gradient."""
        self.steps += 1
        first, second = self.BETAS
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(self._second).addcmul_(gradient, gradient, value=1 - second)
        if self.kept is not None:
            self.vector.mul_(self.kept)
        # sqrt(square / (1 - second^t)) + epsilon, times sqrt(1 - second^t)
        unbias = math.sqrt(1 - second**self.steps)
        scale = torch.sqrt(self.square, out=self._scale).add_(self._epsilon, alpha=unbias)
        self.vector.addcdiv_(self.mean, scale, value=-self.learning_rate * unbias / (1 - first**self.steps))


class ShuffledRows:
    """Minibatches for S models, each with rows and an order of its own.

    Parameters
    ----------
    data : sequence of S Batch
        All rows of each model, as many for each; models that share their rows share the object.
    """

    def __init__(self, data: Sequence[Batch], batch_size: int) -> None:
        distinct = {id(rows): rows for rows in data}
        offsets = {key: i * len(data[0].y) for i, key in enumerate(distinct)}
        self.n_rows, self.batch_size = len(data[0].y), batch_size
        self._offsets = torch.tensor([offsets[id(rows)] for rows in data])[:, None]
        rows = list(distinct.values())
        self.x, self.y, self.e = (_joined([getattr(r, name) for r in rows]) for name in ("x", "y", "e"))
        weights = [r.log_p_e_given_x.T for r in rows if r.log_p_e_given_x is not None]
        self.weights = _joined(weights) if weights else None  # (n, m)
        row_weights = [r.weight for r in rows if r.weight is not None]
        self.row_weights = _joined(row_weights) if row_weights else None  # (n,)

    def one_pass(self, generators: Sequence[torch.Generator]) -> Iterator[Batch]:
        """Every row once, in an order of each model's own; the last batch may be smaller."""
        # Four bytes a row hold the same order as eight, as far as they can count.
        small = len(self.x) <= torch.iinfo(torch.int32).max
        order = torch.empty((len(generators), self.n_rows), dtype=torch.int32 if small else torch.int64)  # (S, n)
        for own, generator in zip(order, generators, strict=True):
            torch.randperm(self.n_rows, generator=generator, out=own)
        order += self._offsets.to(order.dtype)
        size = self.batch_size
        # Rows of several batches are collected at once, as many as a moderate amount of memory holds.
        at_once = size * max(1, ELEMENTS_AT_ONCE // (len(generators) * size * self.x[0].numel()))
        for start in range(0, self.n_rows, at_once):
            index = order[:, start : start + at_once]
            flat = index.reshape(-1)
            x, y, e = (
                array.index_select(0, flat).view(*index.shape, *array.shape[1:]) for array in (self.x, self.y, self.e)
            )
            batches = zip(x.split(size, 1), y.long().split(size, 1), e.long().split(size, 1), strict=True)
            if self.weights is None and self.row_weights is None:
                yield from (Batch(*batch) for batch in batches)
            else:
                # (S, m, B) and (S, B) each
                weights = repeat(None) if self.weights is None else self.weights[index].mT.split(size, 2)
                of_rows = repeat(None) if self.row_weights is None else self.row_weights[index].split(size, 1)
                yield from (Batch(*batch, w, own) for batch, w, own in zip(batches, weights, of_rows, strict=False))


class NeighbouringRows:
    """Minibatches for one model from rows that lie in random order already, such as the map of a file.

    Blocks of neighbours are read one after the other, in an order that changes with each pass, and the rows of each
    block are shuffled: a disk is read in long stretches, and no order of all rows is kept.
    """

    def __init__(self, data: Batch, batch_size: int) -> None:
        self.data, self.n_rows, self.batch_size = data, len(data.y), batch_size
        self.block = batch_size * max(1, ELEMENTS_AT_ONCE // (batch_size * data.x[0].numel()))

    def one_pass(self, generators: Sequence[torch.Generator]) -> Iterator[Batch]:
        """Every row once; the last batch of the last block, wherever that comes, may be smaller."""
        (generator,) = generators
        for block in torch.randperm(-(-self.n_rows // self.block), generator=generator).tolist():
            rows = slice(block * self.block, (block + 1) * self.block)
            own = [array[rows] for array in (self.data.x, self.data.y, self.data.e)]
            order = torch.randperm(len(own[1]), generator=generator)
            x, y, e = (array.index_select(0, order)[None].split(self.batch_size, 1) for array in own)
            yield from (Batch(x, y.long(), e.long()) for x, y, e in zip(x, y, e, strict=True))


def _joined(arrays: list[Tensor]) -> Tensor:
    return arrays[0] if len(arrays) == 1 else torch.cat(arrays)


def steps_in(n_rows: int, settings: TrainingSettings) -> int:
    """Number of optimizer steps that a fit takes."""
    return settings.epochs * math.ceil(n_rows / settings.batch_size)


class Trainer:
    """Adam on one stack of modules and one objective, a step at a time."""

    def __init__(
        self,
        modules: Sequence[nn.Module],
        objective: Objective,
        settings: TrainingSettings,
        generators: Sequence[torch.Generator],
        weight_decays: Sequence[float] = (),
    ) -> None:
        self.stack = ModuleStack(modules)
        # Without decay nothing is multiplied; among others, a model without it keeps every entry times 1, exactly.
        decays = torch.tensor(weight_decays, dtype=self.stack.vector.dtype)
        self._kept = 1 - settings.learning_rate * self.stack.on_weights(decays) if any(weight_decays) else None
        self.objective, self.settings, self.generators = objective, settings, generators
        self.average = self.stack.vector.clone()
        self.steps = 0
        self._best: Tensor | None = None
        self._start_optimizer()

    def _start_optimizer(self) -> None:
        self.optimizer = Adam(self.stack.vector, self.settings.learning_rate, self._kept)

    def step(self, batch: Batch) -> LossTerms:
        """One minibatch: loss, gradient, Adam, average. Returns the loss and its terms by name."""
        if self.steps == self.settings.reset_optimizer_at:
            self._start_optimizer()
        self.stack.gradient.zero_()
        result = self.objective(self.stack, batch, self.steps, self.generators)
        result.backward()
        if self.settings.clip_norm is not None:
            self.stack.clip(self.settings.clip_norm)
        self.optimizer.step(self.stack.gradient)
        if self.settings.average_decay is not None:
            decay = min(self.settings.average_decay, (self.steps + 1) / (self.steps + 1 + AVERAGE_WARM_UP))
            self.average.lerp_(self.stack.vector, 1 - decay)
        self.steps += 1
        return result

    def ask(self, judge: Judge, epoch: int) -> Verdict:
        """Show the only module of the stack to a judge, with the weights that prediction would use; keep the best."""
        (module,), current = self.stack.modules, self.stack.vector.clone()
        if self.settings.average_decay is not None:
            self.stack.vector.copy_(self.average)
        verdict = judge(epoch, module)
        if verdict.is_best:
            self._best = self.stack.vector.clone()
        self.stack.vector.copy_(current)
        return verdict

    def finish(self) -> list[NonFiniteLossError | None]:
        """Leave the modules with the weights that prediction uses, and say of each what went wrong, if anything."""
        if self._best is not None:
            self.stack.vector.copy_(self._best)
        elif self.settings.average_decay is not None:
            self.stack.vector.copy_(self.average)
        finite, moving = (self.stack.all_finite(vector) for vector in (self.stack.vector, self.optimizer.square))
        self.stack.release()
        return [self._failure(*each) for each in zip(finite, moving, strict=True)]

    def _failure(self, finite: bool, moving: bool) -> NonFiniteLossError | None:
        if not finite:
            return NonFiniteLossError(
                f"The weights stopped being finite at the last step ({self.steps}). Standardise the features or lower "
                f"learning_rate (now {self.settings.learning_rate:g})."
            )
        if not moving:
            return NonFiniteLossError(
                f"The square of the gradient overflowed before step {self.steps + 1}, so the weights could not move. "
                "Standardise the features or set clip_norm."
            )
        return None


def train(
    modules: Sequence[nn.Module],
    objective: Objective,
    data: Sequence[Batch],
    settings: TrainingSettings,
    generators: Sequence[torch.Generator],
    on_epoch: EpochCallback | None = None,
    weight_decays: Sequence[float] = (),
    judge: Judge | None = None,
) -> list[History | NonFiniteLossError]:
    """Train modules of one shape side by side, in place.

    Parameters
    ----------
    data : sequence of Batch
        All training rows of each module.
    on_epoch : callable, optional
        Told the number of passes done, and the loss and its terms in the last one, means over modules; training ends
        when it returns True.
    weight_decays : sequence of float, optional
        Decoupled weight decay of each module, not on biases; none without it.
    judge : callable, optional
        Looks at a single module after each pass; the best weights by its verdict are kept.

    Returns
    -------
    For each module, its history, or the error that makes it unfit for use. One that fails does not touch the others.
    """
    trainer = Trainer(modules, objective, settings, generators, weight_decays)
    rows: NeighbouringRows | ShuffledRows
    if settings.stored_at_random:
        (own,) = data
        rows = NeighbouringRows(own, settings.batch_size)
    else:
        rows = ShuffledRows(data, settings.batch_size)
    steps_of_pass = -(-rows.n_rows // settings.batch_size)
    for module in modules:
        module.train()
    failures: list[NonFiniteLossError | None] = [None] * len(modules)
    histories: list[History] = [[] for _ in modules]
    for epoch in range(settings.epochs):
        before = trainer.steps
        sizes = torch.zeros(steps_of_pass, dtype=torch.float64)
        for step, batch in enumerate(rows.one_pass(generators)):
            result = trainer.step(batch)
            if step == 0:  # one array: a tensor for each of many steps would be mostly its own bookkeeping
                collected = result.values.new_empty((steps_of_pass, *result.values.shape))  # (steps, terms, S)
            collected[step], sizes[step] = result.values, batch.y.shape[1]
        values = collected.double()
        means = torch.einsum("t,tns->sn", sizes, values) / rows.n_rows
        for s, mean in enumerate(means.tolist()):
            histories[s].append(dict(zip(result.names, mean, strict=True)))
            failures[s] = failures[s] or _first_failure(values[:, 0, s], before, settings)
        if all(failures):
            break
        verdict = None if judge is None else trainer.ask(judge, epoch + 1)
        if verdict is not None:
            histories[0][-1].update(verdict.terms)
        terms = dict(zip(result.names, means.mean(0).tolist(), strict=True)) | (verdict.terms if verdict else {})
        if (on_epoch is not None and on_epoch(epoch + 1, terms)) or (verdict is not None and verdict.stop):
            break
    failures = [earlier or last for earlier, last in zip(failures, trainer.finish(), strict=True)]
    for module in modules:
        module.eval()
    return [failure or history for failure, history in zip(failures, histories, strict=True)]


def _first_failure(losses: Tensor, steps_before: int, settings: TrainingSettings) -> NonFiniteLossError | None:
    """What is wrong with the losses of a pass, (steps,), if any of them is not finite."""
    finite = torch.isfinite(losses)
    if bool(finite.all()):
        return None
    first = int(finite.logical_not().nonzero()[0])
    return NonFiniteLossError(
        f"The loss became {losses[first]:g} at step {steps_before + first + 1}. Standardise the features, "
        f"lower learning_rate (now {settings.learning_rate:g}), or set clip_norm."
    )
