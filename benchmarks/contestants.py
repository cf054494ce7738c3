"""What is measured: passes over the data as anyone would write them, and the library's own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.literal import LiteralEBER, mlp
from benchmarks.measure import Step
from eber.estimators.base import EnvironmentClassifier, FitJob
from eber.objectives.base import Batch
from eber.training import ShuffledRows, Trainer

ROWS, BATCH, COLUMNS = 3000, 64, 10


def make_rows(m: int, rows: int = ROWS, columns: int = COLUMNS) -> Batch:
    """Random rows of the parametric baseline's size: a pass over them is 47 steps."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, columns, generator=g)
    return Batch(x, torch.randint(0, 2, (rows,), generator=g), torch.randint(0, m, (rows,), generator=g))


def plain_pass(net: nn.Module, rows: Batch, loss: Callable[[Batch], Tensor], steps: int | None = None) -> Step:
    """A pass over the rows as anyone would write it: shuffle, slice, backward, Adam."""
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def one_pass() -> None:
        for index in torch.randperm(len(rows.y)).split(BATCH)[:steps]:
            optimizer.zero_grad()
            loss(Batch(rows.x[index], rows.y[index], rows.e[index])).backward()
            optimizer.step()

    return one_pass


def plain_erm(rows: Batch) -> Step:
    """Empirical risk minimisation in plain PyTorch, the unit of all fit times."""
    net = mlp(rows.x.shape[1], 2)
    return plain_pass(net, rows, lambda batch: F.cross_entropy(net(batch.x), batch.y))


def literal_steps(rows: Batch, m: int, steps: int, sharing: bool) -> Step:
    """Some steps of the literal Algorithm 1, as printed or sharing components."""
    net = LiteralEBER(rows.x.shape[1], m)
    loss = net.loss_sharing if sharing else net.loss
    return plain_pass(net, rows, lambda batch: loss(batch.x, batch.y, batch.e), steps)


def own_pass(classifier: EnvironmentClassifier, rows: Batch, m: int, models: int = 1, steps: int | None = None) -> Step:
    """A pass, or so many of its steps, of the library's loop for so many models side by side."""
    attributes: dict[str, Any] = {
        "classes_": [0, 1],
        "environments_": list(range(m)),
        "input_shape_": tuple(rows.x.shape[1:]),
    }
    jobs = [
        FitJob(
            classifier,
            attributes,
            rows,
            classifier._build(attributes),
            classifier._settings(len(rows.y)),
            torch.Generator().manual_seed(seed),
        )
        for seed in range(models)
    ]
    trainer = Trainer(
        [job.module for job in jobs], classifier._objective(jobs), jobs[0].settings, [job.generator for job in jobs]
    )
    batches = ShuffledRows([rows] * models, jobs[0].settings.batch_size)

    def one_pass() -> None:
        for batch in islice(batches.one_pass(trainer.generators), steps):
            trainer.step(batch)

    return one_pass


def module_featurizer(input_shape: tuple[int, ...], representation_dim: int) -> nn.Module:
    """The built-in extractor as a module that the library knows nothing about."""
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.ReLU(), nn.Linear(16, representation_dim))
