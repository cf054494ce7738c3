"""Quasars and stars of the Sloan survey: environments are regions of the sky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sklearn.preprocessing import StandardScaler

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.quasar import (
    FEATURES,
    FILE_NAMES,
    LATITUDE_BINS,
    LONGITUDE_BINS,
    load_quasar,
    most_shifted_environment,
)
from eber.experiments.data_files import DataFiles
from eber.experiments.data_paper import QUASAR
from eber.experiments.data_rows import ABLATIONS, FIT_PARAMETERS
from eber.experiments.data_task import DataTask, Split, learned_on_training
from eber.experiments.figures.agreement_figure import agreement_figures
from eber.experiments.figures.assignment_figure import assignment_figures
from eber.experiments.figures.feature_figure import draw_assigned_features
from eber.experiments.tuned_rows import TUNED, its_search, searches
from eber.methods import NO_MODEL, paper_methods
from eber.runs.cell import Cell, CellResult
from eber.runs.figure import ReportFigure
from eber.runs.fitting import Steps
from eber.runs.holdouts import hold_out_each
from eber.runs.results import Results
from eber.runs.spec import Experiment, Holdouts

MAX_SHIFTED = "most shifted"
METRICS = ("nll", "accuracy", "ece")
BRIGHTNESS = (FEATURES[-1],)
"""The r magnitude, which the paper shows apart."""
BY_LATITUDE = hold_out_each(LATITUDE_BINS, binning="latitude")
BY_LONGITUDE = hold_out_each(LONGITUDE_BINS, binning="longitude")

_load = lru_cache(maxsize=2)(load_quasar)


def split(parameters: Mapping[str, Any], data_dir: Path, seed: int) -> Split:
    """Hold out one region: the one named, or the one whose share of quasars is farthest from the others'."""
    data: MultiEnvironmentData = _load(data_dir, binning=parameters["binning"])
    held_out = parameters["held_out"]
    return data.split(most_shifted_environment(data) if held_out == MAX_SHIFTED else held_out)


FILES = DataFiles("sdss", FILE_NAMES, "quasar")
TASK = DataTask(split, FILES, "mlp", METRICS, learned_on_training(StandardScaler))


def run_cell(cell: Cell) -> Steps[CellResult]:
    """Fit one method on four regions, score it on the fifth."""
    return TASK.run(cell)


def figures(results: Results) -> Sequence[ReportFigure]:
    """Who agrees with whom, and which training region each held-out object is taken for."""
    drawn: list[ReportFigure] = [*agreement_figures(results), *assignment_figures(results)]
    for setting in ("latitude", "longitude"):
        seeds = results.seeds("EBER", setting)
        if not seeds:
            continue
        arrays = results.arrays("EBER", seeds[0], setting)
        raw_train, raw_test = TASK.read_again(results, setting)
        train, test = TASK.prepare(raw_train, raw_test)
        assigned = arrays["environments"][arrays["assigned"]]
        for shown in (BRIGHTNESS, ()):  # the paper's figure of one feature, then all of them
            drawn.append(draw_assigned_features(setting, raw_train.feature_names, train, test, assigned, shown))
    return drawn


SETTINGS: dict[str, Mapping[str, Any]] = {
    "latitude": {},
    "longitude": {"binning": "longitude"},
    **BY_LATITUDE,
    **BY_LONGITUDE,
}

EXPERIMENT = Experiment(
    name="quasar",
    title="Quasars and stars",
    description=(
        "Is an object of the Sloan Digital Sky Survey a quasar or a star? Features are the four adjacent colours and "
        "the r magnitude, standardised on the training environments. Environments are the quintiles of the absolute "
        "Galactic latitude; the one whose share of quasars is farthest from the others' is held out. Penalty weights "
        "of IRM, V-REx and Fishr are chosen anew under each seed by NLL within the training environments (parameter "
        "selection)."
    ),
    parameters={
        **FIT_PARAMETERS,
        "binning": "latitude",
        "held_out": MAX_SHIFTED,
        "hidden_dims": (16, 16),
        "representation_dim": 8,
        "epochs": 50,
        "selection": "training_domain_validation",
    },
    settings=SETTINGS,
    default_settings=("latitude",),
    holdouts={
        "quintiles of latitude": Holdouts(tuple(BY_LATITUDE)),
        "bins of longitude": Holdouts(tuple(BY_LONGITUDE)),
    },
    methods=paper_methods(),
    fits_any_method=True,
    floor=(NO_MODEL,),
    tuned=TUNED,
    groundwork=searches(SETTINGS),
    built_on=its_search,
    ablations=ABLATIONS,
    metrics=METRICS,
    primary_metric="nll",
    reference_method="EBER",
    run_cell=run_cell,
    seeds_together=5,
    paper={"latitude": QUASAR},
    figures=figures,
    discussion=Path(__file__).with_suffix(".md"),
    fingerprint=FILES.fingerprint,
)
