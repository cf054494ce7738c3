"""Quasars and stars of the Sloan survey: environments are regions of the sky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sklearn.preprocessing import StandardScaler

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.quasar import FILE_NAMES, LATITUDE_BINS, LONGITUDE_BINS, load_quasar, most_shifted_environment
from eber.experiments.data_files import DataFiles
from eber.experiments.data_paper import QUASAR
from eber.experiments.data_task import ABLATIONS, FIT_PARAMETERS, DataTask, Split, learned_on_training
from eber.experiments.figures.agreement_figure import agreement_figures
from eber.experiments.figures.assignment_figure import assignment_figures
from eber.experiments.figures.feature_figure import draw_assigned_features
from eber.runs.cell import Cell, CellResult
from eber.runs.figure import ReportFigure
from eber.runs.fitting import CLASSIFIERS, Steps
from eber.runs.holdouts import hold_out_each
from eber.runs.results import Results
from eber.runs.spec import Experiment, Holdouts

MAX_SHIFTED = "most shifted"
METRICS = ("nll", "accuracy", "ece")
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
    data_dir = Path(results.run["data_dir"])
    drawn: list[ReportFigure] = [*agreement_figures(results), *assignment_figures(results)]
    for setting in ("latitude", "longitude"):
        seeds = results.seeds("EBER", setting)
        if not seeds:
            continue
        arrays = results.arrays("EBER", seeds[0], setting)
        train, test = TASK.prepare(*split(results.experiment.resolve(setting, results.run["overrides"]), data_dir, 0))
        names = load_quasar(data_dir).feature_names
        drawn.append(draw_assigned_features(setting, names, train, test, arrays["environments"][arrays["assigned"]]))
    return drawn


DISCUSSION = """\
"Two-layer feature extractor with width 16" is read as two hidden layers of 16 and a linear representation of 8. The
paper does not say for how long it trained here; 50 epochs is what it says for its other two tables. Within the
training environments, each left out in turn, every method still gains from 5 to 10 to 20 epochs, and ERM up to 50.

These are not the paper's objects. The paper asked the survey's server for at most 50,000 rows, which may all come
from a part of the sky, and filtered them by quality flags; a table that has no such flags is read here as it is. The
paper's baselines (NLL 0.38 to 0.39 with an accuracy near 0.89) are far less calibrated than ours, and the length of
training does not explain it: within the training environments ERM has an NLL below 0.29 after 5 epochs already.

Held-out objects lie nearest to the Galactic plane. With the environment loss most of them are taken for the
neighbouring quintile, and adaptation puts all weight on it. But x hardly tells the quintiles apart, so p(e|x) is
almost flat and the guard of the adaptation says not to trust it, although it helps here. In the paper's figure every
test point is assigned to the same environment. So it is with "EBER decomposed lambda_env=0", which is among the
ablations: every held-out object is taken for b_q5 (NLL 0.247 and accuracy 0.900, one seed).

EBER leads plain ERM, but the lead cannot be credited to its objective: ERM with EBER's initialisation and averaging
of weights, which is among the ablations, comes out level with EBER (both NLL 0.219 ± 0.003, ten seeds; plain ERM 0.223
± 0.004). Adaptation does add something (0.214 ± 0.003). Nor is there a lead on other splits: with b_q2 held out EBER
and ERM have 0.241 and 0.241, with b_q4 0.275 and 0.273, and ERM with EBER's initialisation and averaging 0.235 and
0.263 (one seed). Within the training environments lambda_env = 0 is a little better than 1 (0.267 and 0.269 after 20
epochs, each left out in turn); the default recipe is kept all the same, as in the other experiments, and lambda_env = 0
is shown among the ablations.

Penalty weights are chosen by validation on a fifth of the rows of each training environment. Leaving out one
environment at a time is closer to what is asked (set selection=leave_one_environment_out) and costs four times as
much.
"""

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
    settings={
        "latitude": {},
        "longitude": {"binning": "longitude"},
        **BY_LATITUDE,
        **BY_LONGITUDE,
    },
    default_settings=("latitude",),
    holdouts={
        "quintiles of latitude": Holdouts(tuple(BY_LATITUDE)),
        "bins of longitude": Holdouts(tuple(BY_LONGITUDE)),
    },
    methods=tuple(CLASSIFIERS),
    ablations=ABLATIONS,
    metrics=METRICS,
    primary_metric="nll",
    reference_method="EBER",
    run_cell=run_cell,
    seeds_together=5,
    paper={"latitude": QUASAR},
    figures=figures,
    discussion=DISCUSSION,
    fingerprint=FILES.fingerprint,
)
