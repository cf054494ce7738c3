"""Scores of a comparison are those that the Python interface and scikit-learn give for the same rows."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from eber import EBERClassifier
from eber.compare.evaluating import evaluate_fold, pool_of
from eber.compare.fit_method import fit_method
from eber.compare.methods import POOL_MEMBERS, Effort, build, candidates_of
from eber.datasets.hospitals import draw_hospitals
from eber.methods import BUILT_IN, PENALTY_WEIGHTS, default_methods
from eber.runs.cell import ADAPTED, MAIN
from eber.runs.joint_fits import run_alone
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, read_training_table
from eber.tuning.search import EnvironmentSearch

TINY, TUNED = Effort(steps=15, search_folds=0), Effort(steps=15, search_folds=2)
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TrainingTable:
    """A small draw of the example."""
    path = tmp_path_factory.mktemp("hospitals") / "hospitals.csv"
    draw_hospitals(400, random_state=3).to_csv(path, index=False)
    return read_training_table(path, label="sepsis", environment="hospital")


def split(table: TrainingTable, held_out: str) -> tuple[np.ndarray, ...]:
    held = table.environments == held_out
    train = np.flatnonzero(~held)
    preprocessing = Preprocessing.fit(table.columns.select(train), table.schema)
    X = preprocessing.transform(table.columns)
    return X[~held], table.y[~held], table.environments[~held], X[held], table.y[held]


@pytest.mark.parametrize(
    ("method", "reference"),
    [
        ("Logistic regression", LogisticRegression()),
        ("Gradient boosting", HistGradientBoostingClassifier(random_state=0)),
    ],
)
def test_the_references_are_scikit_learns_own(table: TrainingTable, method: str, reference: object) -> None:
    X, y, _, X_test, y_test = split(table, "Ashford")
    proba = reference.fit(X, y).predict_proba(X_test)  # type: ignore[attr-defined]
    result = run_alone(evaluate_fold(table, table.environments == "Ashford", method, 0, TINY))
    assert result.scores[MAIN]["nll"] == pytest.approx(log_loss(y_test, proba), abs=1e-12)
    assert result.scores[MAIN]["auroc"] == pytest.approx(roc_auc_score(y_test, proba[:, 1]), abs=1e-12)


def test_ebers_scores_are_those_of_the_python_interface(table: TrainingTable) -> None:
    X, y, environments, X_test, y_test = split(table, "Dunmore")
    clf = EBERClassifier(epochs=TINY.epochs(len(y)), batch_size=64, random_state=0).fit(X, y, environments=environments)
    result = run_alone(evaluate_fold(table, table.environments == "Dunmore", "EBER", 0, TINY))
    assert result.scores[MAIN]["nll"] == pytest.approx(log_loss(y_test, clf.predict_proba(X_test)), abs=1e-12)
    np.testing.assert_allclose(result.arrays["p_e"], clf.predict_environment_proba(X_test).mean(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = clf.adapt(X_test).predict_proba(X_test)
    assert result.scores[ADAPTED]["nll"] == pytest.approx(log_loss(y_test, adapted), abs=1e-12)


def test_the_labels_of_held_out_rows_have_no_part_in_a_fit(table: TrainingTable) -> None:
    held = table.environments == "Harbour"
    flipped = TrainingTable(**{**vars(table), "y": np.where(held, 1 - table.y, table.y)})
    for method in ("V-REx", "EBER", "Logistic regression"):
        before = run_alone(evaluate_fold(table, held, method, 0, TUNED)).arrays
        after = run_alone(evaluate_fold(flipped, held, method, 0, TUNED)).arrays
        for name in ("proba", "settings", "left_out"):
            np.testing.assert_array_equal(before[name], after[name])


@pytest.mark.parametrize("method", ["V-REx", "ERM", "Logistic regression"])
def test_settings_are_chosen_as_a_search_by_hand_chooses_them(table: TrainingTable, method: str) -> None:
    X, y, environments, X_test, y_test = split(table, "Ashford")
    classifier = build(method, 0, TUNED.epochs(len(y)), 7)
    search = EnvironmentSearch(classifier, candidates_of(method), max_folds=2).fit(X, y, environments=environments)
    result = run_alone(evaluate_fold(table, table.environments == "Ashford", method, 0, TUNED))
    assert [json.loads(text) for text in result.arrays["settings"]] == json.loads(json.dumps(search.chosen_))
    np.testing.assert_allclose(result.arrays["proba"], search.predict_proba(X_test), rtol=0, atol=1e-12)
    assert result.scores[MAIN]["nll"] == pytest.approx(log_loss(y_test, search.predict_proba(X_test)), abs=1e-12)


def test_every_method_has_a_search_of_about_the_same_size() -> None:
    sizes = {name: len(candidates_of(name)) for name in default_methods() if name not in ("No model", "Pool")}
    sizes |= {method.name: len(candidates_of(method.name)) for method in BUILT_IN if method.penalty_parameter}
    assert set(sizes.values()) <= {4, 6, 9, 12}
    assert sizes["IRM"] >= sizes["EBER"] == sizes["ERM"], "each weight with fewer settings, and no less care"
    assert candidates_of("tests.own_methods:CoinClassifier") == [{}]
    assert candidates_of("tests.own_methods:TiltedCoinClassifier") == [
        {"penalty_weight": weight} for weight in PENALTY_WEIGHTS
    ]


def test_a_pool_of_finished_members_is_the_pool_that_is_fitted(
    table: TrainingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eber.compare.methods.candidates_of", lambda method: candidates_of(method)[:2])
    held = table.environments == "Ashford"
    members = {name: run_alone(evaluate_fold(table, held, name, 0, TUNED)) for name in POOL_MEMBERS}
    built, fitted = pool_of(table, held, members), run_alone(evaluate_fold(table, held, "Pool", 0, TUNED))
    for name in ("weights", "proba"):
        np.testing.assert_allclose(built.arrays[name], fitted.arrays[name], rtol=0, atol=1e-12)
    assert built.arrays["members"].tolist() == fitted.arrays["members"].tolist() == list(POOL_MEMBERS)
    assert built.scores[MAIN] == pytest.approx(fitted.scores[MAIN], abs=1e-9)


def test_no_model_is_the_training_environments_share(table: TrainingTable) -> None:
    held = table.environments == "Ashford"
    result = run_alone(evaluate_fold(table, held, "No model", 0, TUNED))
    np.testing.assert_allclose(result.arrays["proba"][:, 1], (table.y[~held] == 1).mean())


def test_epochs_shrink_as_tables_grow() -> None:
    effort = Effort(steps=1500)
    assert effort.epochs(100) == 50
    assert effort.epochs(10_000) == 10
    assert effort.epochs(10_000_000) == 3


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_ebers_environments_share_components_where_there_are_many() -> None:
    rng = np.random.default_rng(0)
    environments = np.repeat([f"e{j:02d}" for j in range(60)], 6)
    X, y = rng.normal(size=(360, 3)).astype(np.float32), np.arange(360) % 2
    fitted = run_alone(fit_method("EBER", X, y, environments, 0, TINY))
    assert len(fitted.classifier.environments_) == 60
    assert fitted.classifier.pseudo_environments == 40
