"""Colored MNIST: environments change only how often each of four prototypes occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.colored_mnist import POOLED_MIXTURE, TEST_MIXTURE, label_rule, load_colored_mnist
from eber.experiments.data_files import DataFiles
from eber.experiments.data_paper import COLORED_MNIST
from eber.experiments.data_rows import ABLATIONS, FIT_PARAMETERS
from eber.experiments.data_task import DataTask, Split
from eber.experiments.figures.agreement_figure import agreement_figures
from eber.experiments.figures.assignment_figure import assignment_figures
from eber.experiments.tuned_rows import TUNED, its_search, searches
from eber.methods import NO_MODEL, paper_methods
from eber.runs.cell import Cell, CellResult
from eber.runs.figure import ReportFigure
from eber.runs.fitting import Steps
from eber.runs.results import Results
from eber.runs.spec import Experiment

METRICS = ("nll", "accuracy", "ece")


def split(parameters: Mapping[str, Any], data_dir: Path, seed: int) -> Split:
    """Draw the six training environments and the test environment; the draw changes with the seed."""
    return load_colored_mnist(data_dir, random_state=seed, n_train=parameters["n_train"], n_test=parameters["n_test"])


def pooled_marginal_rule(test: MultiEnvironmentData) -> NDArray[np.float64]:
    """p(y|digit,colour) with prototypes as often as in the training environments together, shape (n, 2)."""
    return _rule(POOLED_MIXTURE, test)


def own_rule(test: MultiEnvironmentData) -> NDArray[np.float64]:
    """p(y|digit,colour) with prototypes as often as in the test environment, shape (n, 2)."""
    return _rule(TEST_MIXTURE, test)


def _rule(mixture: ArrayLike, test: MultiEnvironmentData) -> NDArray[np.float64]:
    p = label_rule(mixture)[test.extra["digit"], test.extra["colour"]]
    return np.column_stack([1 - p, p])


ORACLES = {"pooled marginal rule": pooled_marginal_rule, "test environment's own rule": own_rule}
# No audit: training and test images are drawn from the two parts of MNIST, which have no image in common by making,
# and the distance between pixels says little about who wrote a digit.
FILES = DataFiles("mnist", ("*-ubyte", "*-ubyte.gz"), "mnist")
TASK = DataTask(split, FILES, "cnn", METRICS, oracles=ORACLES, audit=None)


def run_cell(cell: Cell) -> Steps[CellResult]:
    """Fit one method on the six training environments, score it on the test environment."""
    return TASK.run(cell)


def figures(results: Results) -> Sequence[ReportFigure]:
    """Who agrees with whom, and which training environments the held-out rows are taken for."""
    return [*agreement_figures(results), *assignment_figures(results)]


SETTINGS: dict[str, Mapping[str, Any]] = {"baseline": {}}

EXPERIMENT = Experiment(
    name="colored-mnist",
    title="Colored MNIST",
    description=(
        "Each image has a digit, a colour and a label, which depend on one of four prototypes. Environments differ in "
        "how often each prototype occurs; in the test environment the association of colour and label is the reverse "
        "of that in training. Data are drawn anew under each seed. Two rules that read digit and colour without error "
        "are shown above the methods: p(y|digit,colour) pooled over the training environments, which is what the "
        "marginal rule aims at, and the test environment's own, which nobody can know without labels or adaptation. "
        "Penalty weights of IRM, V-REx and Fishr are chosen anew under each seed by NLL within the training "
        "environments (parameters selection and selection_rows)."
    ),
    parameters={
        **FIT_PARAMETERS,
        "n_train": 5000,
        "n_test": 10_000,
        "representation_dim": 32,
        "epochs": 10,
        "clip_norm": 5.0,
        "selection": "training_domain_validation",
        "selection_rows": 1500,
    },
    settings=SETTINGS,
    methods=paper_methods(),
    fits_any_method=True,
    oracles=tuple(ORACLES),
    floor=(NO_MODEL,),
    tuned=TUNED,
    groundwork=searches(SETTINGS),
    built_on=its_search,
    ablations=ABLATIONS,
    metrics=METRICS,
    primary_metric="nll",
    reference_method="EBER",
    run_cell=run_cell,
    paper={"baseline": COLORED_MNIST},
    figures=figures,
    discussion=Path(__file__).with_suffix(".md"),
    fingerprint=FILES.fingerprint,
)
