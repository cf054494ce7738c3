"""Sepsis later in an ICU stay: environments are combinations of hospital system and unit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.sepsis import load_sepsis, sepsis_preprocessing
from eber.experiments.cell import Cell, CellResult
from eber.experiments.data_paper import SEPSIS
from eber.experiments.data_task import ABLATIONS, FIT_PARAMETERS, DataTask, Split, learned_on_training
from eber.experiments.fingerprint import fingerprint_files
from eber.experiments.fitting import CLASSIFIERS
from eber.experiments.holdouts import hold_out, hold_out_each
from eber.experiments.spec import Experiment
from eber.report.agreement_figure import agreement_figures

METRICS = ("auroc", "auprc", "ece", "nll")
ENVIRONMENTS = ("A_unknown", "A_unit1", "A_unit2", "B_unit1", "B_unit2", "B_unknown")
PAPER_SPLIT = hold_out("A_unknown")

_load = lru_cache(maxsize=1)(load_sepsis)


def split(parameters: Mapping[str, Any], data_dir: Path, seed: int) -> Split:
    """Hold out one combination of source and unit."""
    data: MultiEnvironmentData = _load(data_dir, max_per_source=parameters["max_per_source"] or None)
    return data.split(parameters["held_out"])


TASK = DataTask(split, "mlp", METRICS, learned_on_training(sepsis_preprocessing))


def run_cell(cell: Cell) -> CellResult:
    """Fit one method on five environments, score it on the sixth."""
    return TASK.run(cell)


def fingerprint(data_dir: Path) -> str:
    """Of the hourly records."""
    return fingerprint_files(data_dir, "sepsis", ("*.parquet", "*.zip", "*.psv"), "sepsis")


EXPERIMENT = Experiment(
    name="sepsis",
    title="Sepsis later in an ICU stay",
    description=(
        "Will a patient become septic later in the stay? Features summarise vital signs and laboratory values of the "
        "first 24 hourly records; stays that are septic within them are left out. Features with at most 5 % missing "
        "values in training, their medians and their scales are all learned from the training environments. "
        "Environments are source (A, B) by unit; the paper holds out A_unknown, and takes up to 15,000 files of each "
        "source (parameter max_per_source; 0 takes all). Penalty weights of IRM, V-REx and Fishr are chosen anew "
        "under each seed by NLL within the training environments (parameter selection)."
    ),
    parameters={
        **FIT_PARAMETERS,
        "held_out": "A_unknown",
        "max_per_source": 15_000,
        "hidden_dims": (16,),
        "representation_dim": 8,
        "epochs": 50,
        "selection": "training_domain_validation",
    },
    settings={
        PAPER_SPLIT: {},
        **{name: change for name, change in hold_out_each(ENVIRONMENTS).items() if name != PAPER_SPLIT},
        "15 epochs": {"epochs": 15},
        "all stays": {"max_per_source": 0},
    },
    default_settings=(PAPER_SPLIT,),
    methods=tuple(CLASSIFIERS),
    ablations=ABLATIONS,
    metrics=METRICS,
    primary_metric="auroc",
    reference_method="EBER",
    run_cell=run_cell,
    paper={PAPER_SPLIT: SEPSIS},
    figures=agreement_figures,
    discussion="TODO",
    fingerprint=fingerprint,
)
