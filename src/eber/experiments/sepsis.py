"""Sepsis later in an ICU stay: environments are combinations of hospital system and unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.sepsis import load_sepsis, sepsis_preprocessing
from eber.experiments.data_files import DataFiles
from eber.experiments.data_paper import SEPSIS
from eber.experiments.data_rows import ABLATIONS, FIT_PARAMETERS
from eber.experiments.data_task import DataTask, Split, learned_on_training
from eber.experiments.figures.agreement_figure import agreement_figures
from eber.experiments.figures.assignment_figure import assignment_figures
from eber.experiments.tuned_rows import TUNED, its_search, searches
from eber.methods import NO_MODEL, paper_methods
from eber.runs.cell import Cell, CellResult
from eber.runs.figure import ReportFigure
from eber.runs.fitting import Steps
from eber.runs.holdouts import hold_out, hold_out_each
from eber.runs.results import Results
from eber.runs.spec import Experiment, Holdouts

METRICS = ("auroc", "auprc", "ece", "nll")
ENVIRONMENTS = ("A_unknown", "A_unit1", "A_unit2", "B_unit1", "B_unit2", "B_unknown")
PAPER_SPLIT = hold_out("A_unknown")
BY_UNIT = hold_out_each(ENVIRONMENTS)
LONGER_STAYS = "stays beyond 24 hours"

_load = lru_cache(maxsize=2)(load_sepsis)


def split(parameters: Mapping[str, Any], data_dir: Path, seed: int) -> Split:
    """Hold out one combination of source and unit."""
    data: MultiEnvironmentData = _load(
        data_dir,
        max_per_source=parameters["max_per_source"] or None,
        only_longer_stays=parameters["only_longer_stays"],
    )
    data.require(ENVIRONMENTS)
    return data.split(parameters["held_out"])


FILES = DataFiles("sepsis", ("*.parquet", "*.zip", "*.psv"), "sepsis")
TASK = DataTask(split, FILES, "mlp", METRICS, learned_on_training(sepsis_preprocessing))


def run_cell(cell: Cell) -> Steps[CellResult]:
    """Fit one method on five environments, score it on the sixth."""
    return TASK.run(cell)


def figures(results: Results) -> Sequence[ReportFigure]:
    """Who agrees with whom, and which training environments the held-out rows are taken for."""
    return [*agreement_figures(results), *assignment_figures(results)]


SETTINGS: dict[str, Mapping[str, Any]] = {
    **BY_UNIT,
    LONGER_STAYS: {"only_longer_stays": True},
    "15 epochs": {"epochs": 15},
    "all stays": {"max_per_source": 0},
}

EXPERIMENT = Experiment(
    name="sepsis",
    title="Sepsis later in an ICU stay",
    description=(
        "Will a patient become septic later in the stay? Features summarise vital signs and laboratory values of the "
        "first 24 hourly records; stays that are septic within them are left out. Features with at most 5 % missing "
        "values in training, their medians and their scales are all learned from the training environments. "
        "Environments are source (A, B) by unit; the paper holds out A_unknown, and takes up to 15,000 files of each "
        "source (parameter max_per_source; 0 takes all). The setting 'stays beyond 24 hours' leaves out stays in which "
        "nothing can happen later (parameter only_longer_stays). Penalty weights of IRM, V-REx and Fishr are chosen "
        "anew under each seed by NLL within the training environments (parameter selection)."
    ),
    parameters={
        **FIT_PARAMETERS,
        "held_out": "A_unknown",
        "max_per_source": 15_000,
        "only_longer_stays": False,
        "hidden_dims": (16,),
        "representation_dim": 8,
        "epochs": 50,
        "selection": "training_domain_validation",
    },
    settings=SETTINGS,
    default_settings=(PAPER_SPLIT,),
    holdouts={"units of the two sources": Holdouts(tuple(BY_UNIT))},
    methods=paper_methods(),
    fits_any_method=True,
    floor=(NO_MODEL,),
    tuned=TUNED,
    groundwork=searches(SETTINGS),
    built_on=its_search,
    ablations=ABLATIONS,
    metrics=METRICS,
    primary_metric="auroc",
    reference_method="EBER",
    run_cell=run_cell,
    seeds_together=5,
    paper={PAPER_SPLIT: SEPSIS, LONGER_STAYS: SEPSIS},
    figures=figures,
    discussion=Path(__file__).with_suffix(".md"),
    fingerprint=FILES.fingerprint,
)
