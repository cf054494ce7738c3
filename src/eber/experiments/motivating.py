"""The paper's motivating example: why environments must be weighted by p(e|x) and not uniformly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eber.datasets.motivating import MotivatingExample, MotivatingResult, run_motivating
from eber.evaluation.metrics import Quantity
from eber.experiments.figures.simulation_figures import motivating_figure
from eber.runs.cell import MAIN, Cell, CellResult
from eber.runs.figure import ReportFigure
from eber.runs.results import Results
from eber.runs.spec import Experiment

CONDITIONAL, UNIFORM, LIMIT = "conditional weights", "uniform weights", "limit of uniform weights"
NUMBERS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
SHOWN = (20, 100, 1000, 5000)
"""Numbers of environments that the table has a column for; `cells.csv` and the figure have all of them."""


def column(m: int) -> str:
    """Name of the error at m environments."""
    return f"error_m{m}"


def compute(parameters: Mapping[str, Any], seed: int) -> MotivatingResult:
    """Everything Figure 3 shows, with the parameters of the experiment."""
    p = parameters
    example = MotivatingExample(alpha=p["alpha"], rho_y=p["rho_y"], a=p["a"], b=p["b"])
    return run_motivating(
        example,
        m=p["m"],
        m_convergence=NUMBERS,
        repetitions=p["repetitions"],
        draws=p["draws"],
        grid_points=p["grid_points"],
        random_state=seed,
    )


def run_cell(cell: Cell) -> CellResult:
    """Mean error of one weighting over the repetitions, for each number of environments.

    No time is kept: whichever row is asked for, the whole study is computed.
    """
    convergence = compute(cell.parameters, cell.seed).convergence
    if cell.method == LIMIT:
        scores = {column(m): convergence.uniform_limit for m in NUMBERS}
    else:
        errors = convergence.conditional if cell.method == CONDITIONAL else convergence.uniform
        scores = {column(m): float(errors[:, j].mean()) for j, m in enumerate(NUMBERS)}
    return CellResult({MAIN: scores})


def figures(results: Results) -> Sequence[ReportFigure]:
    """Figure 3, of the first seed."""
    seeds = results.seeds(CONDITIONAL)
    if not seeds:
        return ()
    parameters = results.experiment.resolve("baseline", results.run["overrides"])
    return (
        ReportFigure(
            "figure-3",
            motivating_figure(compute(parameters, seeds[0])),
            "Left: conditional weights p(e_j|x); larger x favours environments with larger prevalence. Middle: "
            "p(z=1|x) by conditional and by uniform weights against the population. Right: the largest error over x "
            "against the number of environments; conditional weights follow the rate m^(-1/2), uniform weights "
            "converge to a biased limit.",
            "Three panels: weights over environments, two approximations of a curve, errors against m.",
            "baseline",
        ),
    )


EXPERIMENT = Experiment(
    name="motivating",
    title="Motivating example",
    description=(
        "z is a coin whose bias differs between environments, x a noisy sign of it, y a noisy copy. Even with every "
        "environment's own posterior known, environments must be weighted by p(e|x): the error of conditional weights "
        "falls as m^(-1/2) (Proposition 2), that of uniform weights stays (Proposition 3). The error is the largest "
        "over x, averaged over repetitions; a seed is an independent repetition of the whole study."
    ),
    parameters={
        "alpha": 0.85,
        "rho_y": 0.1,
        "a": 0.5,
        "b": 0.5,
        "m": 30,
        "repetitions": 500,
        "draws": 200_000,
        "grid_points": 500,
    },
    methods=(CONDITIONAL, UNIFORM),
    oracles=(LIMIT,),
    metrics=tuple(
        Quantity(name=column(m), label=f"m={m}", higher_is_better=False, format_spec=".4f", noun=f"error at m = {m}")
        for m in SHOWN
    ),
    primary_metric=column(NUMBERS[-1]),
    reference_method=CONDITIONAL,
    run_cell=run_cell,
    figures=figures,
)
