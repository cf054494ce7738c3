"""Rows with settings chosen by leaving training environments out: the search is the library's, and says what it did."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import ERMClassifier
from eber.evaluation.metrics import negative_log_likelihood
from eber.exceptions import EnvironmentWarning
from eber.experiments.data_rows import build_classifier
from eber.experiments.data_task import DataTask, learned_on_training
from eber.experiments.registry import find_experiment
from eber.experiments.tuned_rows import TUNED, fit_chosen, tuned_candidates
from eber.methods import NO_MODEL, paper_methods
from eber.runs.cell import MAIN
from eber.runs.joint_fits import run_alone
from eber.runs.tuning_words import tuning_remarks
from eber.tuning.grids import default_candidates
from eber.tuning.search import LEAST_NETWORKS, EnvironmentSearch, with_enough_seeds
from eber.workflow.reproducing import reproduce
from tests.experiments.test_data_experiments import (
    NAMES,
    TOY_FILES,
    TOY_PARAMETERS,
    on_its_search,
    run_small,
    toy,
    toy_cell,
)

pytestmark = [pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")]

PARAMETERS: dict[str, Any] = {**TOY_PARAMETERS, "selection": "training_domain_validation"}


def unequal(environments: str) -> MultiEnvironmentData:
    """Environments with scales of their own, so that what a scaler learns depends on which are left out."""
    data = toy(np.random.default_rng(1), environments)
    scales = 1.0 + np.unique(data.environments, return_inverse=True)[1]
    return replace(data, X=data.X * scales[:, None])


TRAIN, HELD_OUT = unequal("abcd"), toy(np.random.default_rng(2), "e")
TASK = DataTask(
    lambda parameters, data_dir, seed: (TRAIN, HELD_OUT),
    TOY_FILES,
    "mlp",
    ("nll", "accuracy"),
    learned_on_training(StandardScaler),
)


@pytest.mark.parametrize("method", ["EBER", "Fishr"])
def test_a_tuned_row_is_a_search_that_prepares_in_each_fold(method: str, tmp_path: Path) -> None:
    """The judge is the public search on a pipeline, whose scaler is fitted anew on each fold."""
    result = run_alone(TASK.run(on_its_search(TASK, toy_cell(TUNED[method], PARAMETERS, tmp_path))))
    fixed = build_classifier(
        method,
        {
            "featurizer": "mlp",
            "random_state": 0,
            **{name: PARAMETERS[name] for name in ("hidden_dims", "representation_dim", "epochs", "batch_size")},
            "learning_rate": PARAMETERS["learning_rate"],
        },
        PARAMETERS,
    )
    candidates = tuned_candidates(method, fixed, PARAMETERS["penalty_weights"])
    search = EnvironmentSearch(
        Pipeline([("scale", StandardScaler()), ("classifier", clone(fixed))]),
        [{f"classifier__{name}": value for name, value in candidate.items()} for candidate in candidates],
    ).fit(TRAIN.X, TRAIN.y, environments=TRAIN.environments)
    kept = [json.loads(text) for text in result.arrays["settings"].tolist()]
    expected = [{name.removeprefix("classifier__"): value for name, value in own.items()} for own in search.chosen_]
    assert kept == json.loads(json.dumps(expected))
    assert str(result.arrays["rule"]) == search.rule_ == "leave environments out"
    np.testing.assert_allclose(result.arrays["left_out_nll"].ravel(), search.results_["nll"], rtol=1e-4)
    nll = negative_log_likelihood(HELD_OUT.y, search.predict_proba(HELD_OUT.X), search.classes_)
    assert result.scores[MAIN]["nll"] == pytest.approx(nll, rel=1e-4)


@pytest.mark.parametrize(("n_settings", "n_networks"), [(1, 4), (3, 6), (5, 5)])
def test_of_few_settings_that_are_kept_each_has_several_seeds(n_settings: int, n_networks: int) -> None:
    """As in the search of a comparison: four networks at least are averaged, the first of each is the plain fit."""
    settings = [{"weight_decay": float(decay)} for decay in range(n_settings)]
    fitted = run_alone(fit_chosen(lambda own: ERMClassifier(epochs=1, random_state=0, **own), settings, TRAIN))
    members = fitted.classifier.members_
    assert len(members) == n_networks
    alone = ERMClassifier(epochs=1, random_state=0, weight_decay=0.0).fit(TRAIN.X, TRAIN.y)
    np.testing.assert_array_equal(members[0].predict_proba(TRAIN.X), alone.predict_proba(TRAIN.X))
    pipeline = Pipeline([("scale", StandardScaler()), ("classifier", ERMClassifier(epochs=1, random_state=0))])
    assert [fit["classifier"].n_members for fit in with_enough_seeds([clone(pipeline)])] == [LEAST_NETWORKS]


@pytest.mark.parametrize("method", paper_methods())
def test_what_a_method_s_own_row_may_have_is_among_the_candidates(method: str) -> None:
    """Tuning begins at the fixed settings, with every penalty weight of the experiment, and all may be wider."""
    own = build_classifier(method, {"featurizer": "mlp", "hidden_dims": (4,)}, PARAMETERS)
    shared = default_candidates(own)
    assert {"weight_decay": 0.0} in shared, "the method as it is"
    weights = PARAMETERS["penalty_weights"] if method in ("IRM", "V-REx", "Fishr") else (None,)
    expected = [own if weight is None else {**own, "penalty_weight": weight} for weight in weights for own in shared]
    assert tuned_candidates(method, own, PARAMETERS["penalty_weights"]) == expected


def test_two_training_environments_are_tuned_on_left_out_rows_and_that_is_said(tmp_path: Path) -> None:
    task = replace(TASK, split=lambda parameters, data_dir, seed: (unequal("ab"), HELD_OUT))
    with pytest.warns(EnvironmentWarning, match="too few to leave one out"):
        result = run_alone(task.run(on_its_search(task, toy_cell(TUNED["ERM"], PARAMETERS, tmp_path))))
    assert str(result.arrays["rule"]) == "leave rows out"
    assert result.arrays["left_out_nll"].shape[1] == 5


@pytest.mark.parametrize("name", NAMES)
def test_tuned_rows_and_no_model_leave_the_cells_of_the_paper_as_they_are(name: str) -> None:
    """A finished run goes on to be used: nothing that a cell is known by may have changed."""
    experiment = find_experiment(name)
    bare = replace(experiment, tuned={}, floor=())
    setting = next(iter(experiment.settings))
    for method in (*experiment.methods, *experiment.ablations):
        assert experiment.cell(setting, method, 0, {}, "d").identity == bare.cell(setting, method, 0, {}, "d").identity
    assert set(experiment.tuned) == set(experiment.methods)
    assert experiment.default_methods == (*experiment.oracles, *experiment.methods, NO_MODEL)


def test_no_model_is_the_training_environments_share(data_dir: Path) -> None:
    result = run_small(find_experiment("microbiome"), NO_MODEL, data_dir)
    from eber.experiments import microbiome

    train, test = microbiome.split(microbiome.EXPERIMENT.parameters, data_dir, 0)
    share = np.mean(train.y == 1)
    by_hand = -np.mean(np.log(np.where(test.y == 1, share, 1 - share)))
    assert result.scores[MAIN]["nll"] == pytest.approx(by_hand, rel=1e-9)


def test_reproduce_tuned_from_cells_to_page(data_dir: Path, tmp_path: Path) -> None:
    done = reproduce(
        "microbiome",
        seeds=2,
        methods=["ERM tuned", "EBER tuned", NO_MODEL],
        settings=["paper split", "without zackular"],
        parameters={"epochs": 1},
        out=tmp_path,
        data=data_dir,
    )
    assert done.exit_status == 0, done.failures
    first, second = done.summaries
    assert [(row.label, row.role) for row in first.rows] == [
        (NO_MODEL, "floor"),
        ("EBER tuned", "tuned"),
        ("ERM tuned", "tuned"),
    ]
    assert first.rows[2].comparison is not None
    assert first.rows[0].comparison is None
    text = (tmp_path / "table.md").read_text()
    assert "by NLL in training environments that are left out" in " ".join(first.remarks)
    assert "left-out rows of known environments" in " ".join(second.remarks)
    assert "chosen once, under the first seed" in " ".join(first.remarks)
    assert re.search(r"EBER tuned kept [1-4] of 4 settings: weight_decay=", text)
    assert "No model: the training environments' share of each class" in text


def test_settings_are_chosen_once_for_all_seeds(data_dir: Path, tmp_path: Path) -> None:
    """A search costs as much as dozens of fits; a further seed is fitted with what it decided."""
    asked: dict[str, Any] = {
        "methods": ["ERM tuned", "Fishr tuned"],
        "settings": ["paper split"],
        "parameters": {"epochs": 1},
        "out": tmp_path,
        "data": data_dir,
    }
    first = reproduce("microbiome", seeds=1, **asked)
    assert first.exit_status == 0, first.failures
    searches = {path: path.read_bytes() for path in (tmp_path / "cells").glob("*settings_tried_for*")}
    assert len(searches) == 4, "numbers and arrays of two methods"
    results = reproduce("microbiome", seeds=2, **asked).results
    assert {path: path.read_bytes() for path in (tmp_path / "cells").glob("*settings_tried_for*")} == searches
    for row in ("ERM tuned", "Fishr tuned"):
        one, other = (results.arrays(row, seed, "paper split")["settings"].tolist() for seed in (0, 1))
        assert one == other
    cells = results.cells.query("metric == 'nll'").groupby("method")["value"]
    assert (cells.nunique() == 2).all(), "each seed has fits of its own"


def test_of_many_settings_that_were_kept_five_are_named() -> None:
    settings = [json.dumps({"penalty_weight": weight}) for weight in range(12)]
    arrays = {"settings": np.array(settings), "rule": np.array("none"), "left_out_nll": np.zeros((35, 4))}
    experiment = SimpleNamespace(tuned={"Fishr": "Fishr tuned"})
    results: Any = SimpleNamespace(
        experiment=experiment, seeds=lambda *_: [0, 1], arrays=lambda row, seed, setting: arrays
    )
    _, kept = tuning_remarks(results, "baseline")
    assert kept.startswith("Fishr tuned kept 12 of 35 settings: penalty_weight=0; penalty_weight=1; ")
    assert kept.endswith("penalty_weight=4; 7 more.")


def test_an_experiment_without_tuned_rows_says_so() -> None:
    with pytest.raises(ValueError, match="no tuned rows"):
        reproduce("motivating", tuned=True)
