"""Parameters that make a run of the paper's other choices: decoders, and a grid of penalty weights for each method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eber.datasets.microbiome import load_microbiome
from eber.datasets.parametric_oracle import ParametricOracle
from eber.estimators import EBERClassifier
from eber.experiments import parametric
from eber.experiments.data_rows import build_classifier
from eber.experiments.penalty_grids import OWN_GRIDS, penalty_grid
from eber.experiments.registry import find_experiment
from eber.methods import find_method
from eber.runs.fitting import FitRequest

SMALL = {"n": 20, "epochs": 1, "m_test": 6, "m_validation": 6}


def requested(method: str, **changes: Any) -> list[FitRequest]:
    """The fits that a cell of the parametric simulation first asks for; none is made."""
    parameters = parametric.EXPERIMENT.resolve("baseline", {**SMALL, **changes})
    data, oracle = parametric.draw_cell(parameters, 0)
    return next(parametric.fit_method(method, data, oracle, parameters, 0))


@pytest.mark.parametrize(("text", "dims"), [("0", ()), ("32,32", (32, 32))])
def test_the_decoder_is_as_wide_as_is_set(text: str, dims: tuple[int, ...]) -> None:
    for method in ("EBER", "EBER 5: oracle posteriors"):
        (request,) = requested(method, decoder_hidden_dims=text)
        assert request.classifier.decoder_hidden_dims == dims


@pytest.mark.parametrize(("text", "dims"), [("0", ()), ("32,32", (32, 32))])
@pytest.mark.parametrize("name", ["colored-mnist", "quasar", "microbiome", "sepsis"])
def test_so_it_is_in_the_data_experiments(name: str, text: str, dims: tuple[int, ...]) -> None:
    experiment = find_experiment(name)
    setting = next(iter(experiment.settings))
    parameters = experiment.resolve(setting, {"decoder_hidden_dims": text})
    for method in ("EBER", "EBER lambda_env=0"):
        assert build_classifier(method, {}, parameters).decoder_hidden_dims == dims
    assert not hasattr(build_classifier("ERM", {}, parameters), "decoder_hidden_dims")


def test_a_flexible_decoder_is_all_that_its_row_changes() -> None:
    (plain,), (flexible,) = (requested(row) for row in ("EBER 5: oracle posteriors", "EBER 5 with a flexible decoder"))
    before, after = plain.classifier.get_params(), flexible.classifier.get_params()
    assert {name for name in after if name != "posteriors" and after[name] != before[name]} == {"decoder_hidden_dims"}
    assert isinstance(after["posteriors"].__self__, ParametricOracle)


@pytest.mark.parametrize(
    ("row", "objective", "hidden_dims"),
    [
        (parametric.PLAIN, "stratified", (16,)),
        (parametric.PLAIN_ALGORITHM, "algorithm", (16,)),
        (parametric.PLAIN_DECOMPOSED, "decomposed", (16,)),
        (parametric.PLAIN_RELU, "stratified", (16, 32)),
        (parametric.PLAIN_ALGORITHM_RELU, "algorithm", (16, 32)),
        (parametric.PLAIN_DECOMPOSED_RELU, "decomposed", (16, 32)),
    ],
)
def test_the_plain_forms_differ_in_the_reading_and_the_extractor_alone(
    row: str, objective: str, hidden_dims: tuple[int, ...]
) -> None:
    (request,), (plain,) = requested(row), requested(parametric.PLAIN)
    shown = request.classifier.get_params()
    assert (shown["objective"], shown["hidden_dims"]) == (objective, hidden_dims)
    others = [name for name in shown if name not in ("objective", "hidden_dims")]
    assert all(shown[name] == plain.classifier.get_params()[name] for name in others)
    assert isinstance(request.classifier, EBERClassifier)
    of_paper = EBERClassifier.paper_form().get_params()
    for name in ("tie_weight", "input_scale", "environment_gain", "latent_bounds", "average_decay"):
        assert shown[name] == of_paper[name]


def test_every_reading_of_the_plain_form_is_a_row_of_every_setting() -> None:
    readings = {row for row in parametric.VARIANTS if row.startswith(parametric.PLAIN)} - {parametric.PLAIN_ORACLE}
    assert len(readings) == 6
    plan = parametric.EXPERIMENT.plan(seeds=1, methods=readings, settings=parametric.EXPERIMENT.settings)
    assert {(cell.setting, cell.method) for cell in plan} >= {
        (setting, row) for setting in parametric.PAPER for row in readings
    }


def test_a_method_has_a_grid_of_its_own_where_one_is_set() -> None:
    parameters = {"penalty_weights": (0.1, 1.0), **OWN_GRIDS, "penalty_weights_irm": (10.0,)}
    assert penalty_grid(find_method("IRM"), parameters) == (10.0,)
    assert penalty_grid(find_method("V-REx"), parameters) == (0.1, 1.0)
    weights = [request.classifier.penalty_weight for request in requested("IRM", penalty_weights_irm="10,100")]
    assert weights == [10.0, 100.0]


def test_small_adenomas_are_controls_unless_they_are_left_out(data_dir: Path) -> None:
    whole, without = (load_microbiome(data_dir, small_adenomas=kept) for kept in (True, False))
    left_out = whole.extra["diagnosis"] == "Small adenoma"
    assert left_out.sum() == 25
    assert set(whole.environments[left_out]) == {"crc_zeller"}
    assert set(whole.y[left_out]) == {0}
    np.testing.assert_array_equal(without.extra["sample"], whole.extra["sample"][~left_out])
