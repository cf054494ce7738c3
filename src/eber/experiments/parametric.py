"""The paper's parametric simulation: its table, its eight sensitivity settings and its seven variants of EBER."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from eber.datasets.parametric import ParametricDraw, ParametricParameters, draw
from eber.datasets.parametric_oracle import ParametricOracle
from eber.estimators import PAPER_FORM, EBERClassifier, ERMClassifier
from eber.evaluation.metrics import score
from eber.experiments.figures.simulation_figures import environment_probability_figure, label_probability_figure
from eber.experiments.parametric_paper import PAPER
from eber.experiments.penalty_grids import OWN_GRIDS, penalty_grid
from eber.methods import find_method, paper_methods
from eber.runs.cell import MAIN, PENALTY_WEIGHT, Cell, CellResult
from eber.runs.figure import ReportFigure
from eber.runs.fitting import FittedMethod, Steps, fit, fit_best_weight
from eber.runs.joint_fits import run_alone
from eber.runs.results import Results
from eber.runs.spec import Experiment

METRICS = ("nll", "accuracy", "ece")
CLASSES = np.array([0, 1])
BASELINE = ParametricParameters()

UNIFORM_AT_TEST, ORACLE_AT_TEST = "2: uniform test weights", "3: oracle test weights"


def oracle_weights(oracle: ParametricOracle) -> dict[str, Any]:
    """Variant 4: the true p(e|x) in training and prediction."""
    return {"training_weights": oracle.environment_proba, "prediction_weights": oracle.environment_proba}


def oracle_posteriors(oracle: ParametricOracle) -> dict[str, Any]:
    """Variant 5: the true p(z|x,y,e), with learned weights."""
    return {"posteriors": oracle.posteriors}


def uniform_weights(oracle: ParametricOracle) -> dict[str, Any]:
    """Variant 6: uniform weights in training and prediction."""
    return {"training_weights": "uniform", "prediction_weights": "uniform"}


def uniform_weights_oracle_posteriors(oracle: ParametricOracle) -> dict[str, Any]:
    """Variant 7: uniform weights and the true posteriors."""
    return {**uniform_weights(oracle), **oracle_posteriors(oracle)}


FLEXIBLE_DECODER = {"decoder_hidden_dims": (32, 32)}
"""Layers of a decoder that is not monotone in z, so that it can follow sin(z/2)."""
LONG = "50 epochs"
"""Five times as long as the paper trains: a flexible decoder needs it."""
PLAIN = "EBER in the paper's plain form"
PLAIN_ALGORITHM, PLAIN_DECOMPOSED = f"{PLAIN} as Algorithm 1", f"{PLAIN} decomposed"
PLAIN_RELU, PLAIN_ALGORITHM_RELU, PLAIN_DECOMPOSED_RELU = (
    f"{plain} with one more ReLU layer" for plain in (PLAIN, PLAIN_ALGORITHM, PLAIN_DECOMPOSED)
)
PLAIN_ORACLE = f"{PLAIN} with oracle weights"
ONE_MORE_LAYER = {"hidden_dims": (16, 32)}
"""The paper's extractor with a ReLU layer more than its text has."""
WITHOUT_ENVIRONMENT_LOSS = {"env_loss_weight": 0.0}
"""What the paper sets outside this simulation."""
NO_ENVIRONMENT_LOSS = "EBER lambda_env=0"
COLLAPSED = "EBER collapsed"
COLLAPSED_ALONE = f"{COLLAPSED} lambda_env=0"
"""Nothing teaches p(e|x) there."""
PIECES = {"column_pieces": 16}
"""What lets small networks bend where trees split; see `eber.nn.column_pieces`."""

VARIANTS: dict[str, Callable[[ParametricOracle], dict[str, Any]]] = {
    "EBER 4: oracle weights": oracle_weights,
    "EBER 5: oracle posteriors": oracle_posteriors,
    "EBER 6: uniform weights": uniform_weights,
    "EBER 7: uniform weights and oracle posteriors": uniform_weights_oracle_posteriors,
    "EBER 5 with a flexible decoder": lambda oracle: {**oracle_posteriors(oracle), **FLEXIBLE_DECODER},
    "EBER 7 with a flexible decoder": lambda oracle: {**uniform_weights_oracle_posteriors(oracle), **FLEXIBLE_DECODER},
    NO_ENVIRONMENT_LOSS: lambda oracle: dict(WITHOUT_ENVIRONMENT_LOSS),
    COLLAPSED: lambda oracle: {"objective": "collapsed"},
    COLLAPSED_ALONE: lambda oracle: {"objective": "collapsed", **WITHOUT_ENVIRONMENT_LOSS},
    "EBER decomposed": lambda oracle: {"objective": "decomposed"},
    "EBER untied": lambda oracle: {"tie_weight": 0.0},
    PLAIN: lambda oracle: dict(PAPER_FORM),
    PLAIN_ALGORITHM: lambda oracle: {**PAPER_FORM, "objective": "algorithm"},
    PLAIN_DECOMPOSED: lambda oracle: {**PAPER_FORM, "objective": "decomposed"},
    PLAIN_RELU: lambda oracle: {**PAPER_FORM, **ONE_MORE_LAYER},
    PLAIN_ALGORITHM_RELU: lambda oracle: {**PAPER_FORM, **ONE_MORE_LAYER, "objective": "algorithm"},
    PLAIN_DECOMPOSED_RELU: lambda oracle: {**PAPER_FORM, **ONE_MORE_LAYER, "objective": "decomposed"},
    PLAIN_ORACLE: lambda oracle: {**PAPER_FORM, **oracle_weights(oracle)},
    "EBER with columns in pieces": lambda oracle: dict(PIECES),
}
"""EBER with something replaced: the paper's variants that need a fit of their own, then our own ablations."""

ERM_SAME_RECIPE = "ERM with EBER's initialisation and averaging"
ERM_RELU = "ERM with a ReLU on the representation"


def relu_extractor(input_shape: Sequence[int], representation_dim: int) -> nn.Module:
    """The paper's extractor with a ReLU after its last layer, which the paper's text does not have."""
    width = 16
    layers = nn.Linear(input_shape[0], width), nn.ReLU(), nn.Linear(width, representation_dim), nn.ReLU()
    return nn.Sequential(*layers)


def _eber_recipe() -> dict[str, Any]:
    eber = EBERClassifier()
    return {"input_scale": eber.input_scale, "average_decay": eber.average_decay}


ERM_VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    ERM_SAME_RECIPE: _eber_recipe,
    ERM_RELU: lambda: {"featurizer": relu_extractor},
    "ERM with columns in pieces": lambda: dict(PIECES),
}
"""ERM with something replaced."""


def draw_cell(parameters: Mapping[str, Any], seed: int) -> tuple[ParametricDraw, ParametricOracle]:
    """The data of a cell, which depend on the seed and not on the method."""
    named = {field.name: parameters[field.name] for field in fields(ParametricParameters)}
    data = draw(ParametricParameters(**named), random_state=seed)
    return data, ParametricOracle(data.parameters, data.centres)


def decoder_layers(parameters: Mapping[str, Any]) -> tuple[int, ...]:
    """Widths of the decoder's hidden layers; none for 0, since a parameter that is a tuple cannot be set to nothing."""
    return tuple(width for width in parameters["decoder_hidden_dims"] if width)


def run_cell(cell: Cell) -> Steps[CellResult]:
    """Draw the data, fit one method, score it on the test environments."""
    data, oracle = draw_cell(cell.parameters, cell.seed)
    if cell.method == "Bayes-x":
        start = time.perf_counter()
        proba = oracle.bayes_x(data.test.X)
        return CellResult({MAIN: score(data.test.y, proba, CLASSES, METRICS)}, {MAIN: time.perf_counter() - start})
    fitted = yield from fit_method(cell.method, data, oracle, cell.parameters, cell.seed)
    scores, seconds = {}, {}
    scores[MAIN], seconds[MAIN] = _score(fitted, data)
    if fitted.penalty_weight is not None:
        scores[MAIN][PENALTY_WEIGHT] = fitted.penalty_weight
    if cell.method == "EBER":
        for variant, weights in ((UNIFORM_AT_TEST, "uniform"), (ORACLE_AT_TEST, oracle.environment_proba)):
            fitted.classifier.set_params(prediction_weights=weights)
            scores[variant], seconds[variant] = _score(fitted, data)
    return CellResult(scores, seconds)


def fit_method(
    method: str, data: ParametricDraw, oracle: ParametricOracle, parameters: Mapping[str, Any], seed: int
) -> Steps[FittedMethod]:
    """Fit a method by name; weights of penalties are chosen by NLL on the validation environments."""
    shared = {
        "featurizer": "mlp",
        "hidden_dims": parameters["hidden_dims"],
        "representation_dim": parameters["representation_dim"],
        "epochs": parameters["epochs"],
        "batch_size": parameters["batch_size"],
        "learning_rate": parameters["learning_rate"],
        "random_state": seed,
    }
    of_eber = {
        **{name: parameters[name] for name in ("latent_dim", "env_loss_weight", "tie_weight", "objective")},
        "decoder_hidden_dims": decoder_layers(parameters),
    }
    if method in VARIANTS:
        return (yield from fit(EBERClassifier(**{**shared, **of_eber, **VARIANTS[method](oracle)}), data.train))
    if method in ERM_VARIANTS:
        return (yield from fit(ERMClassifier(**{**shared, **ERM_VARIANTS[method]()}), data.train))
    declared, settings = find_method(method), {**shared, **of_eber}
    if not declared.penalty_parameter:
        return (yield from fit(declared.build(**settings), data.train))
    return (
        yield from fit_best_weight(
            lambda weight: declared.build(**settings, **{declared.penalty_parameter: weight}),
            data.train,
            data.validation,
            penalty_grid(declared, parameters),
        )
    )


def _score(fitted: FittedMethod, data: ParametricDraw) -> tuple[dict[str, float], float]:
    """Scores on the test environments, and seconds of fit and prediction together, as the paper counts them."""
    start = time.perf_counter()
    proba = fitted.classifier.predict_proba(data.test.X)
    seconds = fitted.seconds + time.perf_counter() - start
    return score(data.test.y, proba, fitted.classifier.classes_, METRICS), seconds


def figures(results: Results) -> Sequence[ReportFigure]:
    """p(y|x) and p(e|x) of the first seed's fits, which are made again: a fit is the same to the bit."""
    seeds = results.seeds("EBER", "baseline")
    if not seeds:
        return ()
    parameters = results.experiment.resolve("baseline", results.run["overrides"])
    data, oracle = draw_cell(parameters, seeds[0])
    fits: dict[str, Any] = {
        method: run_alone(fit_method(method, data, oracle, parameters, seeds[0])).classifier
        for method in ("EBER", "ERM")
    }
    eber = fits["EBER"]
    assert isinstance(eber, EBERClassifier)
    predictors: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
        method: classifier.predict_proba for method, classifier in fits.items()
    }
    return (
        ReportFigure(
            "label-probability",
            label_probability_figure(oracle, predictors),
            "p(y=1|x) along the branch cue (above) and over cue and phase (below), noise columns at zero. Adjacent "
            "branches have opposite labels; EBER finds the alternation that Bayes-x has, ERM smooths it away.",
            "Line plot and three heat maps: Bayes-x and EBER alternate over the branches, ERM does not.",
            "baseline",
        ),
        ReportFigure(
            "environment-probability",
            environment_probability_figure(oracle, eber.predict_environment_proba),
            "p(e|x) along the branch cue: the oracle's, from the true parameters, and the one EBER has learned.",
            "Two heat maps with the same staircase of environments over the branch cue.",
            "baseline",
        ),
    )


EXPERIMENT = Experiment(
    name="parametric",
    title="Parametric simulation",
    description=(
        "Environments differ in the branch of a latent z. Two covariates show its phase, a third is a weak cue to its "
        "branch, and adjacent branches have opposite labels. All methods have the same extractor, schedule and data; "
        "test environments are new. IRM, V-REx and Fishr have their penalty weight chosen by NLL on 12 validation "
        "environments, which nobody is trained on. Bayes-x is the best any rule of x can do. The decoder is linear "
        "(decoder_hidden_dims = 0)."
    ),
    parameters={
        **{field.name: getattr(BASELINE, field.name) for field in fields(ParametricParameters)},
        "hidden_dims": (16,),
        "representation_dim": 32,
        "latent_dim": 1,
        "env_loss_weight": 1.0,
        "tie_weight": 0.5,
        "objective": "stratified",
        "decoder_hidden_dims": (0,),
        "epochs": 10,
        "batch_size": 64,
        "learning_rate": 1e-3,
        "penalty_weights": (0.1, 1.0, 10.0),
        **OWN_GRIDS,
    },
    settings={
        "baseline": {},
        "rho=0.15": {"rho": 0.15},
        "rho=0.2": {"rho": 0.2},
        "m=12": {"m_train": 12},
        "m=36": {"m_train": 36},
        "n=100": {"n": 100},
        "n=1000": {"n": 1000},
        "d=50": {"d": 50},
        "d=100": {"d": 100},
        "d=1000": {"d": 1000},
        LONG: {"epochs": 50},
    },
    default_settings=("baseline",),
    methods=paper_methods(),
    fits_any_method=True,
    oracles=("Bayes-x",),
    ablations=(*VARIANTS, *ERM_VARIANTS),
    metrics=METRICS,
    primary_metric="nll",
    reference_method="EBER",
    run_cell=run_cell,
    seeds_together=5,
    weights_chosen_on="12 validation environments",
    paper=PAPER,
    figures=figures,
    discussion=Path(__file__).with_suffix(".md"),
)
