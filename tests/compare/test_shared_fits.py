"""What fits without a block say is what fits by hand say, and a held-out environment has no part in what is chosen."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from eber import EBERClassifier
from eber.compare.all_folds import results_by_fold
from eber.compare.blocks import Block, blocks_for, folds_judged
from eber.compare.evaluating import evaluate_fold
from eber.compare.folds import FoldPlan, plan_folds
from eber.compare.methods import POOL_MEMBERS, Effort, build, candidates_of
from eber.compare.shared_fits import ADAPTED, PROBA, fit_without, left_out_of
from eber.datasets.hospitals import draw_hospitals
from eber.estimators.members import average_of
from eber.evaluation.metrics import negative_log_likelihood
from eber.runs.cell import ADAPTED as ADAPTED_SCORES
from eber.runs.cell import MAIN, CellResult
from eber.runs.joint_fits import run_alone
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, read_training_table
from eber.tuning.adaptation_record import STRENGTHS
from eber.tuning.left_out import widest_average
from eber.tuning.pool import left_out_weights

EFFORT = Effort(steps=15)
HOSPITALS = ["Ashford", "Birchwood", "Castleton", "Dunmore", "Fairview"]
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TrainingTable:
    """Five hospitals of the example."""
    frame = draw_hospitals(500, random_state=3)
    path = tmp_path_factory.mktemp("hospitals") / "hospitals.csv"
    frame[frame["hospital"].isin(["Ashford", "Birchwood", "Castleton", "Dunmore", "Fairview"])].to_csv(
        path, index=False
    )
    return read_training_table(path, label="sepsis", environment="hospital")


@pytest.fixture(scope="module")
def plan(table: TrainingTable) -> FoldPlan:
    """Each held out in turn, settings tried without each pair."""
    plan = plan_folds(table.y, table.environments)
    assert (len(plan.folds), len(plan.blocks)) == (5, 10)
    return plan


def prepared(table: TrainingTable, rows: np.ndarray) -> np.ndarray:
    """All rows, as these say."""
    X = Preprocessing.fit(table.columns.select(np.flatnonzero(rows)), table.schema).transform(table.columns)
    return np.asarray(X)


def said_by(table: TrainingTable, plan: FoldPlan, fold: str, method: str) -> Mapping[Block, CellResult]:
    def without(block: Block) -> CellResult:
        folds = folds_judged(block, plan.folds, plan.blocks)
        return run_alone(fit_without(table, block, folds, method, 0, EFFORT))

    return {block: without(block) for block in blocks_for(plan.folds[fold], plan.blocks)}


def test_settings_are_chosen_as_fits_without_each_pair_say(table: TrainingTable, plan: FoldPlan) -> None:
    result = dict(results_by_fold(table, plan, "Logistic regression", 0, EFFORT, {}))["Ashford"]
    held, candidates = table.environments == "Ashford", candidates_of("Logistic regression")
    proba = np.full((len(candidates), len(held), 2), np.nan)
    for other in set(table.environments.tolist()) - {"Ashford"}:
        judged = table.environments == other
        seen = ~held & ~judged
        X = prepared(table, seen)
        for c, candidate in enumerate(candidates):
            fit = build("Logistic regression", 0, 1, 4).set_params(**candidate).fit(X[seen], table.y[seen])
            proba[c, judged] = fit.predict_proba(X[judged])
    names = table.environments[~held]
    units = [np.flatnonzero(names == name) for name in np.unique(names)]
    kept = np.sort(widest_average(proba[:, ~held], np.searchsorted([0, 1], table.y[~held]), units))
    assert [json.loads(text) for text in result.arrays["settings"]] == [candidates[c] for c in kept]
    np.testing.assert_allclose(result.arrays["left_out"], proba[kept].mean(0)[~held], rtol=0, atol=1e-12)
    X = prepared(table, ~held)
    fits = [LogisticRegression(**{**build("Logistic regression", 0, 1, 4).get_params(), **candidates[c]}) for c in kept]
    by_hand = np.mean([fit.fit(X[~held], table.y[~held]).predict_proba(X[held]) for fit in fits], 0)
    np.testing.assert_allclose(result.arrays["proba"], by_hand, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["V-REx", "EBER", "Gradient boosting"])
def test_a_held_out_environment_has_no_part_in_what_is_chosen_for_it(
    table: TrainingTable, plan: FoldPlan, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eber.compare.shared_fits.candidates_of", lambda name: candidates_of(name)[:2])
    monkeypatch.setattr("eber.compare.methods.candidates_of", lambda name: candidates_of(name)[:2])
    held = table.environments == "Ashford"
    others = TrainingTable(**{**vars(table), "y": np.where(held, 1 - table.y, table.y)})
    for of_table in (table, others):
        said = said_by(of_table, plan, "Ashford", method)
        arrays = run_alone(evaluate_fold(of_table, held, method, 0, EFFORT, said)).arrays
        if of_table is table:
            before = arrays
    for name in ("proba", "settings", "left_out"):
        np.testing.assert_array_equal(before[name], arrays[name])


def test_no_fit_has_seen_what_it_judges(table: TrainingTable, plan: FoldPlan) -> None:
    """Rows of a block are preprocessed, too, by what was learned without them."""
    block = plan.blocks[0]
    left_out = np.isin(table.environments, block)
    result = run_alone(fit_without(table, block, [[block[0]], [block[1]]], "Logistic regression", 0, EFFORT))
    X = prepared(table, ~left_out)
    for c, candidate in enumerate(candidates_of("Logistic regression")):
        fit = build("Logistic regression", 0, 1, 3).set_params(**candidate).fit(X[~left_out], table.y[~left_out])
        np.testing.assert_allclose(result.arrays[PROBA][c], fit.predict_proba(X[left_out]), rtol=0, atol=1e-12)


def test_shared_fits_get_the_weights_of_rows(table: TrainingTable, plan: FoldPlan) -> None:
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(table.y))
    weighted = TrainingTable(**{**vars(table), "weights": weights})
    block = plan.blocks[0]
    left_out = np.isin(table.environments, block)
    result = run_alone(fit_without(weighted, block, [[block[0]]], "Logistic regression", 0, EFFORT))
    X = prepared(table, ~left_out)
    for c, candidate in enumerate(candidates_of("Logistic regression")):
        fit = build("Logistic regression", 0, 1, 3).set_params(**candidate)
        fit.fit(X[~left_out], table.y[~left_out], sample_weight=weights[~left_out])
        np.testing.assert_allclose(result.arrays[PROBA][c], fit.predict_proba(X[left_out]), rtol=0, atol=1e-12)


def test_each_row_is_judged_once_where_several_blocks_leave_it_out(table: TrainingTable) -> None:
    names = sorted(set(table.environments.tolist()))
    first, second = (names[0], names[1], names[2]), (names[0], names[1], names[3])
    held = table.environments == names[0]
    said: dict[Block, CellResult] = {
        block: CellResult({}, {}, {PROBA: np.full((1, int(np.isin(table.environments, block).sum()), 2), value)})
        for block, value in ((first, 0.1), (second, 0.2))
    }
    left_out = left_out_of(table, held, said)
    train = table.environments[~held]
    assert np.unique(left_out.proba[0, np.isin(train, names[1:3])]).tolist() == [0.1]
    assert np.unique(left_out.proba[0, train == names[3]]).tolist() == [0.2]
    assert np.isnan(left_out.proba[0, train == names[4]]).all()
    judged = np.concatenate([rows for _, rows in left_out.folds])
    assert len(judged) == len(np.unique(judged)) == np.isin(train, names[1:4]).sum()


def test_eber_knows_what_adapting_did_in_environments_that_were_left_out(
    table: TrainingTable, plan: FoldPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eber.compare.shared_fits.candidates_of", lambda name: candidates_of(name)[:2])
    block = plan.blocks[0]
    result = run_alone(fit_without(table, block, [[block[0]]], "EBER", 0, EFFORT))
    left_out = np.isin(table.environments, block)
    X, names = prepared(table, ~left_out), table.environments[left_out]
    epochs = EFFORT.epochs(int((table.environments != block[0]).sum()))
    fits = [
        clone(build("EBER", 0, epochs, 4)).set_params(**candidate)
        .fit(X[~left_out], table.y[~left_out], environments=table.environments[~left_out])
        for candidate in candidates_of("EBER")[:2]
    ]  # fmt: skip
    rows = np.flatnonzero(left_out)[names == block[1]]
    for s, strength in enumerate(STRENGTHS):
        average = average_of(fits)
        assert isinstance(average, EBERClassifier)
        plain = average.explain(X[rows])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = average.adapt(plain).member_adaptations()
        by_hand = plain.adapted([each.shrunk(strength) for each in found]).p_y_given_x
        p = result.arrays[ADAPTED][s][:, names == block[1]].mean(0)
        loss = negative_log_likelihood(table.y[rows], by_hand, average.classes_)
        assert -np.log(p).mean() == pytest.approx(loss, abs=1e-6)
    of_fold = run_alone(evaluate_fold(table, table.environments == block[0], "EBER", 0, EFFORT, {block: result}))
    assert "nll" in of_fold.scores[ADAPTED_SCORES]


def test_the_pool_is_weighted_by_what_its_members_shared_fits_say(
    table: TrainingTable, plan: FoldPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("shared_fits", "methods"):
        monkeypatch.setattr(f"eber.compare.{module}.candidates_of", lambda name: candidates_of(name)[:2])
    one = replace(plan, folds={"Ashford": plan.folds["Ashford"]})
    results = {
        name: dict(results_by_fold(table, one, name, 0, EFFORT, {}))["Ashford"] for name in (*POOL_MEMBERS, "Pool")
    }
    train = table.environments != "Ashford"
    left_out = np.stack([results[name].arrays["left_out"] for name in POOL_MEMBERS])
    weights = left_out_weights(left_out, np.searchsorted([0, 1], table.y[train]), table.environments[train])
    np.testing.assert_allclose(results["Pool"].arrays["weights"], weights, rtol=0, atol=1e-9)
    pooled = np.einsum("j,jnk->nk", weights, np.stack([results[name].arrays["proba"] for name in POOL_MEMBERS]))
    np.testing.assert_allclose(results["Pool"].arrays["proba"], pooled, rtol=0, atol=1e-9)


def test_a_shared_fit_s_time_is_shared(table: TrainingTable, plan: FoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eber.compare.shared_fits._seconds", lambda outcomes: 12.0)
    results = dict(results_by_fold(table, plan, "Logistic regression", 0, EFFORT, {}))
    total = sum(result.seconds[MAIN] for result in results.values())
    assert total == pytest.approx(12.0 * (len(plan.blocks) + len(plan.folds))), "each fit once over all folds"
