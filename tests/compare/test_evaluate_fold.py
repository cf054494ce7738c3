"""Scores of a comparison are those that the Python interface and scikit-learn give for the same rows."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from eber import EBERClassifier, VRExClassifier
from eber.compare.methods import Effort, fit_method
from eber.compare.running import evaluate_fold
from eber.datasets.hospitals import draw_hospitals
from eber.exceptions import EnvironmentWarning
from eber.model_selection import SELECTION_RULES, selection_folds
from eber.runs.cell import ADAPTED, MAIN
from eber.runs.joint_fits import run_alone
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, read_training_table

TINY = Effort(steps=15, penalty_weights=(1.0, 10.0))
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
    for method in ("V-REx", "EBER"):
        before = run_alone(evaluate_fold(table, held, method, 0, TINY)).arrays["proba"]
        after = run_alone(evaluate_fold(flipped, held, method, 0, TINY)).arrays["proba"]
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("rule", SELECTION_RULES)
def test_the_penalty_weight_is_the_one_that_the_rule_chooses_by_hand(table: TrainingTable, rule: str) -> None:
    X, y, environments, *_ = split(table, "Ashford")
    losses = {}
    for weight in TINY.penalty_weights:
        clf = VRExClassifier(epochs=TINY.epochs(len(y)), batch_size=64, random_state=0, penalty_weight=weight)
        losses[weight] = np.mean(
            [
                log_loss(y[rest], clf.fit(X[rows], y[rows], environments=environments[rows]).predict_proba(X[rest]))
                for rows, rest in selection_folds(rule, y, environments)
            ]
        )
    fitted = run_alone(fit_method("V-REx", X, y, environments, 0, replace(TINY, selection=rule)))
    assert fitted.penalty_weight == min(losses, key=lambda weight: losses[weight])
    assert fitted.classifier.penalty_weight == fitted.penalty_weight


def test_a_weight_that_cannot_be_chosen_is_the_middle_one_and_says_so(table: TrainingTable) -> None:
    X, y, environments, *_ = split(table, "Ashford")
    two = np.isin(environments, ["Birchwood", "Dunmore"])
    effort = replace(TINY, penalty_weights=(1.0, 7.0, 10.0), selection="leave_one_environment_out")
    with pytest.warns(EnvironmentWarning, match=r"penalty weight is 7, not chosen.*2 training environments"):
        assert run_alone(fit_method("V-REx", X[two], y[two], environments[two], 0, effort)).penalty_weight == 7.0


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
