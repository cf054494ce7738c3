"""`make bench`: what a pass over the data and a prediction cost, as ratios measured in turns in one run, one thread.

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
from eber.objectives.base import Batch, Objective
from eber.objectives.erm import ERMObjective
from eber.training import Trainer, TrainingSettings, isolated_torch, shuffled_batches

ROWS, BATCH, COLUMNS = 3000, 64, 10
PREDICTED_ROWS = 2000
OUT = Path("bench")

Step = Callable[[], object]


def least_seconds(contestants: dict[str, Step], blocks: int, calls: int = 1) -> dict[str, float]:
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


def make_rows(m: int) -> Batch:
    """Random rows of the parametric baseline's size: a pass over them is 47 steps."""
    return Batch(torch.randn(ROWS, COLUMNS), torch.randint(0, 2, (ROWS,)), torch.randint(0, m, (ROWS,)))


def plain_pass(net: nn.Module, rows: Batch, loss: Callable[[Batch], torch.Tensor]) -> Step:
    """A pass over the rows as anyone would write it: shuffle, slice, backward, Adam."""
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def one_pass() -> None:
        for index in torch.randperm(ROWS).split(BATCH):
            optimizer.zero_grad()
            loss(Batch(rows.x[index], rows.y[index], rows.e[index])).backward()
            optimizer.step()

    return one_pass


def own_pass(module: nn.Module, objective: Objective, rows: Batch, average_decay: float | None = None) -> Step:
    """A pass of the library's loop."""
    settings = TrainingSettings(1, BATCH, 1e-3, average_decay=average_decay)
    trainer = Trainer(module, objective, settings, torch.Generator())

    def one_pass() -> None:
        for batch in shuffled_batches(rows, BATCH, trainer.generator):
            trainer.step(batch)

    return one_pass


def eber_pass(rows: Batch, m: int, featurizer: str | Callable[..., nn.Module] = "mlp") -> Step:
    """A pass of `EBERClassifier` with the default recipe."""
    classifier = EBERClassifier(featurizer=featurizer)
    module, objective = classifier._networks((COLUMNS,), 2, m, 1), classifier._objective(2, m, 1)
    return own_pass(module, objective, rows, classifier.average_decay)


def module_featurizer(input_shape: tuple[int, ...], representation_dim: int) -> nn.Module:
    """The same extractor as a module that the library knows nothing about."""
    return nn.Sequential(nn.Linear(input_shape[0], 16), nn.ReLU(), nn.Linear(16, representation_dim))


def bench_fits(m: int) -> dict[str, float]:
    """Cost of a pass over the data in units of plain ERM's, all measured in turns."""
    rows = make_rows(m)
    net, literal = mlp(COLUMNS, 2), LiteralEBER(COLUMNS, m)
    own = Classifier(build_network("mlp", (COLUMNS,), (), 2, hidden_dims=(16,), representation_dim=32))
    seconds = least_seconds(
        {
            "plain ERM": plain_pass(net, rows, lambda batch: F.cross_entropy(net(batch.x), batch.y)),
            "ERMClassifier": own_pass(own, ERMObjective(), rows),
            "EBERClassifier": eber_pass(rows, m),
            "EBERClassifier, any module": eber_pass(rows, m, module_featurizer),
        },
        blocks=12,
    )
    slow = plain_pass(literal, rows, lambda batch: literal.loss(batch.x, batch.y, batch.e))
    seconds |= least_seconds({"literal Algorithm 1": slow}, blocks=1)
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
    seconds = least_seconds(contestants, blocks=5)
    seconds |= least_seconds({"literal Monte Carlo": lambda: net.predict_proba(rows)}, blocks=2)
    report = {f"{name}: times faster than literal": seconds["literal Monte Carlo"] / seconds[name] for name in errors}
    report |= {f"{name}: rows a second": len(X) / seconds[name] for name in errors}
    return report | {f"{name}: largest error": error for name, error in errors.items()}


def main() -> None:
    """Measure, print, save."""
    results: dict[str, dict[str, dict[str, float]]] = {"fits": {}, "prediction": {}}
    with isolated_torch(0, threads=1):
        for m in (6, 36):
            results["fits"][f"m={m}"] = bench_fits(m)
            results["prediction"][f"m={m}"] = bench_prediction(m)
    console = Console()
    for title, key in (("A pass over the data, in units of plain ERM's", "fits"), ("Prediction", "prediction")):
        table = Table("", *results[key], title=title)
        for name in next(iter(results[key].values())):
            table.add_row(name, *(f"{column[name]:.3g}" for column in results[key].values()))
        console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
