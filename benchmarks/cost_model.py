"""``python -m benchmarks.cost_model``: what rows, columns and environments cost, and what that says for a cluster.

Short passes of EBER's training loop, predictions and a preparation are timed over a grid; the least relative squares
with coefficients that are not negative give seconds a row. The table at the end is the model's, not a measurement.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

from benchmarks.contestants import make_rows, own_pass
from benchmarks.measure import least_seconds
from benchmarks.scale import write_table
from eber import EBERClassifier
from eber.compare.methods import MAX_COMPONENTS
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators.batches import LARGEST_BATCH
from eber.estimators.eber_fitting import MAX_EXACT_ENVIRONMENTS
from eber.tables.files import open_table
from eber.tables.prepared import looking
from eber.tables.prepared.preparing import prepare
from eber.training import isolated_torch

STEPS = 4
PASSES = 3
GRID = ((5, 2), (20, 2), (80, 2), (20, 6), (20, 12), (80, 12), (20, 24), (20, 40), (20, 1_000), (20, 10_000), (5, 40))
"""Columns and environments of what is timed."""
PREDICTED_ROWS, PREPARED_ROWS = 20_000, 100_000
PRICE = 0.05
"""Of an hour of one core, in dollars: what clouds ask for about that much of a general machine."""
NODES, CORES = 100, 8


def training_terms(columns: float, environments: float) -> NDArray[np.float64]:
    """What a row's share of a step is made of: a start, columns, components, their pairs, and the observed names.

    Of more than 40 environments, 40 components stand for all, and every step looks at each name once. With 33 to 40 a
    row draws its pairs.
    """
    m = min(environments, MAX_COMPONENTS)
    pairs = 0.0 if environments > MAX_EXACT_ENVIRONMENTS else m * m
    names = m * environments / LARGEST_BATCH if environments > MAX_COMPONENTS else 0.0
    return np.array([1.0, columns, m, pairs, names])


def prediction_terms(columns: float, environments: float) -> NDArray[np.float64]:
    """The same for predictions, in which no two components meet."""
    m = min(environments, MAX_COMPONENTS)
    return np.array([1.0, columns, m, m * environments if environments > MAX_COMPONENTS else 0.0])


def fit_terms(
    terms: Sequence[NDArray[np.float64]], seconds: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients with the least relative squares, and the relative error of each measurement."""
    A, t = np.stack(terms), np.asarray(seconds)
    found, _ = nnls(A / t[:, None], np.ones(len(t)))
    return found, A @ found / t - 1


def training_seconds(columns: int, environments: int) -> float:
    """Of one row in one pass, with large batches."""
    rows = make_rows(environments, rows=STEPS * LARGEST_BATCH, columns=columns)
    shared = MAX_COMPONENTS if environments > MAX_COMPONENTS else None
    classifier = EBERClassifier(batch_size=LARGEST_BATCH, pseudo_environments=shared)
    step = own_pass(classifier, rows, environments)
    return least_seconds({"pass": step}, blocks=3)["pass"] / len(rows.y)


def prediction_seconds(columns: int, environments: int) -> float:
    """Of one row, with everything that the model says about it."""
    data = draw(ParametricParameters(m_train=environments, n=100, d=columns, m_validation=1, m_test=1), random_state=0)
    X = np.random.default_rng(0).normal(size=(PREDICTED_ROWS, columns)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = EBERClassifier(epochs=1, random_state=0)
        classifier.fit(data.train.X, data.train.y, environments=data.train.environments)
    return least_seconds({"predict": lambda: classifier.explain(X).to_frame()}, blocks=3)["predict"] / PREDICTED_ROWS


def preparation_seconds() -> float:
    """Of one value of a table that is larger than the sample, all passes."""
    sample, looking.SAMPLE_ROWS = looking.SAMPLE_ROWS, PREPARED_ROWS // 10
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_table(folder / "source", PREPARED_ROWS)
            start = time.process_time()
            made = prepare(open_table(folder / "source"), folder / "out", label="y", environment="site")
            return (time.process_time() - start) / (len(made) * len(made.schema.features))
    finally:
        looking.SAMPLE_ROWS = sample


def main() -> None:
    """Measure, fit, print."""
    console = Console()
    with isolated_torch(0, threads=1):
        trained = [training_seconds(*point) for point in GRID]
        few = [point for point in GRID if point[1] <= MAX_COMPONENTS]
        predicted = [prediction_seconds(*point) for point in few]
    training, training_error = fit_terms([training_terms(*point) for point in GRID], trained)
    prediction, prediction_error = fit_terms([prediction_terms(*point) for point in few], predicted)
    value = preparation_seconds()
    for name, found, error in (("training", training, training_error), ("prediction", prediction, prediction_error)):
        shown = ", ".join(f"{1e9 * c:.3g}" for c in found)
        console.print(
            f"{name}, ns a row: {shown}; error {abs(error).mean():.0%} in the mean, {abs(error).max():.0%} most"
        )
    console.print(f"preparation: {1e9 * value:.0f} ns a value")
    table = Table("rows", "columns", "environments", "prepare", "fit, three passes", "predict", "prepared, GB")
    for n, d, m in ((10**6, 30, 12), (10**7, 20, 50), (10**8, 20, 50), (10**9, 20, 10**5)):
        hours = [
            n * d * value / 3600,
            float(PASSES * n * training_terms(d, m) @ training / 3600),
            float(n * prediction_terms(d, min(m, MAX_COMPONENTS)) @ prediction / 3600),
        ]
        cells = [f"{hour:.3g} h" for hour in hours]
        table.add_row(f"{n:.0e}", str(d), f"{m}", *cells, f"{n * (4 * d + 5) / 1e9:.3g}")
    console.print(table)
    prepare_hours, fit_hours, predict_hours = hours
    console.print(
        f"The last line on {NODES} nodes of {CORES} cores, at ${PRICE} for a core's hour: preparing and predicting are "
        f"shared out ({prepare_hours / NODES / CORES:.2g} h and {predict_hours / NODES / CORES:.2g} h), a fit is one "
        f"core's ({fit_hours:.3g} h); ${PRICE * (prepare_hours + fit_hours + predict_hours):.3g} in all."
    )


if __name__ == "__main__":
    main()
