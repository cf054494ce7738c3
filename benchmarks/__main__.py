"""`make bench`: what a step and a prediction cost, as ratios measured interleaved in one run, with one thread.

Times on a shared machine are noisy and ratios of them are not much better, so every figure is the least over many
short blocks, the blocks of all contestants taking turns. Results go to bench/results.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional as F

from benchmarks.literal import LiteralEBER, mlp
from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.networks import Classifier, build_network
from eber.objectives.base import Batch
from eber.objectives.erm import ERMObjective
from eber.training import Trainer, TrainingSettings, isolated_torch

BATCH, COLUMNS = 64, 10
PREDICTED_ROWS = 2000
OUT = Path("bench")

Step = Callable[[], object]


def least_seconds(contestants: dict[str, Step], blocks: int = 40, calls: int = 10) -> dict[str, float]:
    """Seconds a call, the least over blocks of calls that the contestants take in turn."""
    best = dict.fromkeys(contestants, float("inf"))
    for step in contestants.values():
        step()
    for _ in range(blocks):
        for name, step in contestants.items():
            start = time.perf_counter()
            for _ in range(calls):
                step()
            best[name] = min(best[name], (time.perf_counter() - start) / calls)
    return best


def make_batch(m: int) -> Batch:
    """A random minibatch of the parametric baseline's size."""
    return Batch(torch.randn(BATCH, COLUMNS), torch.randint(0, 2, (BATCH,)), torch.randint(0, m, (BATCH,)))


def plain_erm(batch: Batch) -> Step:
    """Empirical risk minimisation as anyone would write it."""
    net = mlp(COLUMNS, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(batch.x), batch.y).backward()
        optimizer.step()

    return step


def own_erm(batch: Batch) -> Step:
    """A step of `ERMClassifier`."""
    network = build_network("mlp", (COLUMNS,), (), 2, hidden_dims=(16,), representation_dim=32)
    trainer = Trainer(Classifier(network), ERMObjective(), TrainingSettings(1, BATCH, 1e-3), torch.Generator())
    return lambda: trainer.step(batch)


def eber(batch: Batch, m: int, featurizer: str | Callable[..., nn.Module] = "mlp") -> Step:
    """A step of `EBERClassifier` with the default recipe."""
    classifier = EBERClassifier(featurizer=featurizer)
    module, objective = classifier._networks((COLUMNS,), 2, m, 1), classifier._objective(2, m, 1)
    settings = TrainingSettings(1, BATCH, 1e-3, average_decay=0.98)
    trainer = Trainer(module, objective, settings, torch.Generator())
    return lambda: trainer.step(batch)


def module_featurizer(input_shape: tuple[int, ...], representation_dim: int) -> nn.Module:
    """The same extractor as a module that the library knows nothing about."""
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.ReLU(), nn.Linear(16, representation_dim))


def literal(batch: Batch, m: int) -> Step:
    """A step of Algorithm 1 as plain loops."""
    net = LiteralEBER(COLUMNS, m)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        net.loss(batch.x, batch.y, batch.e).backward()
        optimizer.step()

    return step


def bench_steps(m: int) -> dict[str, float]:
    """Cost of a step in units of plain ERM's, all measured in turns."""
    batch = make_batch(m)
    seconds = least_seconds(
        {
            "plain ERM": plain_erm(batch),
            "ERMClassifier": own_erm(batch),
            "EBERClassifier": eber(batch, m),
            "EBERClassifier, any module": eber(batch, m, module_featurizer),
        }
    )
    seconds |= least_seconds({"literal Algorithm 1": literal(batch, m)}, blocks=5, calls=2)
    return {name: value / seconds["plain ERM"] for name, value in seconds.items()}


def bench_prediction(m: int) -> dict[str, float]:
    """Seconds to predict rows, against literal Monte Carlo, and errors against 200 quadrature nodes."""
    data = draw(ParametricParameters(m_train=m, n=50), random_state=0)
    X = data.test.X[:PREDICTED_ROWS]
    clf = EBERClassifier(epochs=10, random_state=0).fit(
        data.train.X, data.train.y, environments=data.train.environments
    )
    exact = clf.set_params(prediction="quadrature", prediction_points=200).predict_proba(X)
    errors = {}
    contestants: dict[str, Step] = {}
    for name, parameters in {
        "closed form": {"prediction": "auto", "prediction_points": None},
        "quadrature, 32 nodes": {"prediction": "quadrature", "prediction_points": 32},
    }.items():

        def predict(parameters: dict[str, object] = parameters) -> np.ndarray:
            return clf.set_params(**parameters).predict_proba(X)

        errors[name] = float(np.abs(predict() - exact).max())
        contestants[name] = predict
    net, rows = LiteralEBER(COLUMNS, m), torch.from_numpy(X).float()
    seconds = least_seconds(contestants, blocks=5, calls=1)
    seconds |= least_seconds({"literal Monte Carlo": lambda: net.predict_proba(rows)}, blocks=2, calls=1)
    report = {f"{name}: times faster than literal": seconds["literal Monte Carlo"] / seconds[name] for name in errors}
    report |= {f"{name}: rows a second": len(X) / seconds[name] for name in errors}
    return report | {f"{name}: largest error": error for name, error in errors.items()}


def main() -> None:
    """Measure, print, save."""
    results: dict[str, dict[str, dict[str, float]]] = {"steps": {}, "prediction": {}}
    with isolated_torch(0, threads=1):
        for m in (6, 36):
            results["steps"][f"m={m}"] = bench_steps(m)
            results["prediction"][f"m={m}"] = bench_prediction(m)
    console = Console()
    for title, key in (("A training step, in units of plain ERM's", "steps"), ("Prediction", "prediction")):
        table = Table("", *results[key], title=title)
        for name in next(iter(results[key].values())):
            table.add_row(name, *(f"{column[name]:.3g}" for column in results[key].values()))
        console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
