"""A column of weights: no feature, in every fit and every score, and in the name of what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import eber
from eber.compare import all_folds
from eber.compare.evaluating import evaluate_fold
from eber.compare.importance import column_importance
from eber.compare.methods import build
from eber.methods import find_method
from eber.report.held_out import HeldOut
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table
from tests.command_line import eber as command
from tests.one_process import one_process  # noqa: F401

NAMES: dict[str, Any] = {"label": "sepsis", "environment": "hospital"}
METHODS = ["Logistic regression", "No model"]
pytestmark = [
    pytest.mark.usefixtures("one_process"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
]


@pytest.fixture(scope="module")
def weighted(hospitals: pd.DataFrame) -> pd.DataFrame:
    """The hospitals with weights that have to do with the label, some of them zero."""
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(hospitals)) + 2.0 * (hospitals["sepsis"] == hospitals["sepsis"].max())
    return hospitals.assign(weight=weight)


def of_mean_one(weight: pd.Series) -> np.ndarray:
    return (weight / weight.mean()).to_numpy()


@pytest.mark.parametrize("method", ["Logistic regression", "Random forest"])
def test_only_ratios_in_a_column_of_weights_matter(method: str, weighted: pd.DataFrame) -> None:
    """Survey weights of a thousand each would do away with the penalty of a logistic regression."""

    def said(rows: pd.DataFrame, weight: str | None) -> np.ndarray:
        model = eber.fit_table(rows, **NAMES, method=method, weight=weight, quick=True, scores=False)
        frame = model.predict_table(weighted.drop(columns="weight")).frame
        return np.asarray(frame.filter(regex=r"^p\("))

    once = said(weighted, "weight")
    np.testing.assert_allclose(said(weighted.assign(weight=1024 * weighted["weight"]), "weight"), once, atol=1e-12)
    none = said(weighted.drop(columns="weight"), None)
    np.testing.assert_array_equal(said(weighted.assign(weight=7.5), "weight"), none, "alike are none")
    assert np.abs(none - once).max() > 0.01


def test_scores_of_a_comparison_are_weighted_as_by_hand(weighted: pd.DataFrame, tmp_path: Path) -> None:
    found = eber.compare_table(weighted, **NAMES, weight="weight", methods=METHODS, quick=True, out=tmp_path, jobs=1)
    assert "weight" not in found.record.kinds
    assert any("Rows count by their weight, column 'weight', from 1 to 5" in note for note in found.notes)
    assert any("rows have a weight of zero and are left out" in note for note in found.notes)
    counted = weighted[weighted["weight"] > 0].reset_index(drop=True)
    table = read_training_table(counted.drop(columns="weight"), **NAMES)
    weight, scores = of_mean_one(counted["weight"]), found.scores.set_index(["held_out", "method"])
    for hospital in np.unique(table.environments):
        held = table.environments == hospital
        train, test = np.flatnonzero(~held), np.flatnonzero(held)
        preprocessing = Preprocessing.fit(table.columns.select(train), table.schema)
        X, X_test = (preprocessing.transform(table.columns.select(rows)) for rows in (train, test))
        classifier = build("Logistic regression", 0, 1, 2).fit(X, table.y[train], sample_weight=weight[train])
        p, y = classifier.predict_proba(X_test), table.y[test] == classifier.classes_[1]
        row = scores.loc[(hospital, "Logistic regression")]
        assert row["nll"] == pytest.approx(log_loss(y, p[:, 1], sample_weight=weight[test]), rel=1e-6)
        assert row["auroc"] == pytest.approx(roc_auc_score(y, p[:, 1], sample_weight=weight[test]), rel=1e-6)
        share = np.average(table.y[train] == classifier.classes_[1], weights=weight[train])
        of_none = log_loss(y, np.full(len(y), share), sample_weight=weight[test])
        assert scores.loc[(hospital, "No model")]["nll"] == pytest.approx(of_none, rel=1e-6)
    assert "--weight weight" in found.fit_command
    held_out = HeldOut(found.record.results(tmp_path), found.summary)
    labels, _ = held_out.predictions("No model", hospital)[0]
    assert labels.mean() == pytest.approx(np.average(y, weights=weight[test]), abs=2 / len(y))


def test_what_was_kept_without_weights_is_not_taken_for_weighted(
    weighted: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hospitals.parquet"
    weighted.to_parquet(path, index=False)
    options: dict[str, Any] = {**NAMES, "methods": ["No model"], "quick": True, "out": tmp_path / "out", "jobs": 1}
    plain = eber.compare_table(path, **options, drop="weight")
    heavy = eber.compare_table(path, **options, weight="weight")
    assert plain.run is not None
    assert heavy.run is not None
    assert (plain.run.computed, heavy.run.computed, heavy.run.reused) == (3, 3, 0)
    assert plain.scores["nll"].tolist() != heavy.scores["nll"].tolist()
    fitted: dict[str, Any] = {**NAMES, "method": "No model", "quick": True, "results": tmp_path / "out"}
    computed: list[str] = []

    def evaluate(table: Any, held: Any, *others: Any) -> Any:
        computed.append(table.environments[held][0])
        return evaluate_fold(table, held, *others)

    monkeypatch.setattr(all_folds, "evaluate_fold", evaluate)
    taken = eber.fit_table(path, **fitted, weight="weight").card["held_out_scores"]
    assert [entry["nll"] for entry in taken] == heavy.scores["nll"].tolist()
    assert not computed
    eber.fit_table(path, **fitted, drop="weight", categorical="age")
    assert len(computed) == 3  # what is said about columns belongs to the very same fit, too


def test_choices_without_weights_are_what_they_were() -> None:
    """The names of finished cells are made from them."""
    assert NO_CHOICES.to_json() == {"categorical": [], "numeric": [], "missing": [], "positive": None}
    said = ColumnChoices(weight="w")
    assert ColumnChoices.from_json(said.to_json()) == said


def test_a_model_is_fitted_with_weights_and_its_card_says_so(
    weighted: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "hospitals.csv", tmp_path / "model"
    weighted.to_csv(path, index=False)
    options = ["--label", "sepsis", "--environment", "hospital", "--method", "Logistic regression", "--quick"]
    assert command(monkeypatch, "fit", path, *options, "--weight", "weight", "--no-scores", "--out", out) == 0
    model = eber.load_model(out)
    assert model.card["data"]["weight"] == "weight"
    assert "Rows count by their weight (weight)." in (out / "card.md").read_text()
    counted = weighted[weighted["weight"] > 0].reset_index(drop=True)
    table = read_training_table(counted.drop(columns="weight"), **NAMES)
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X = preprocessing.transform(table.columns)
    expected = find_method("Logistic regression").build(random_state=0)
    expected.fit(X, table.y, sample_weight=of_mean_one(counted["weight"]))
    frame = model.predict_table(counted.drop(columns="weight")).frame
    proba = frame[[name for name in frame.columns if name.startswith("p(")][: len(expected.classes_)]]
    np.testing.assert_allclose(np.sort(proba.to_numpy()), np.sort(expected.predict_proba(X)), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": lambda w: w.where(w.index != 6)}, r"is missing or infinite in 1 row, first in row 7 \("),
        ({"weight": lambda w: w.where(w.index < 5, -1.0)}, r"is negative in \d+ rows, first in row 6 \("),
        ({"weight": lambda w: w.astype(str).where(w.index != 3, "heavy")}, "holds what is no number, such as 'heavy'"),
    ],
)
def test_what_is_no_weight_is_refused_by_column_and_row(
    change: dict[str, Any], message: str, weighted: pd.DataFrame
) -> None:
    table = weighted.assign(weight=change["weight"](weighted["weight"]))
    with pytest.raises(ValueError, match=f"The weight 'weight' of .* {message}"):
        read_training_table(table, **NAMES, choices=ColumnChoices(weight="weight"))


def test_environments_in_which_no_row_counts_are_named(weighted: pd.DataFrame) -> None:
    table = weighted.assign(weight=weighted["weight"].where(weighted["hospital"] != "Dunmore", 0.0))
    with pytest.raises(ValueError, match="is zero in all rows of Dunmore: leave these environments out"):
        read_training_table(table, **NAMES, choices=ColumnChoices(weight="weight"))


@pytest.mark.parametrize(
    ("weight", "said", "message"),
    [
        ("sepsis", {}, "The weight 'sepsis' is the label or the environment"),
        ("age", {"drop": ["age"]}, "Column 'age' is the weight of the rows and no feature"),
        ("age", {"features": ["age"]}, "Column 'age' is the weight of the rows and no feature"),
        ("wait", {}, "no column 'wait'"),
    ],
)
def test_a_weight_is_a_column_of_its_own(
    weight: str, said: dict[str, Any], message: str, weighted: pd.DataFrame
) -> None:
    with pytest.raises(ValueError, match=message):
        read_training_table(weighted, **NAMES, **said, choices=ColumnChoices(weight=weight))


def test_the_importance_of_columns_is_weighted(weighted: pd.DataFrame) -> None:
    table = read_training_table(weighted.drop(columns="weight"), **NAMES)
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X = preprocessing.transform(table.columns)
    labels = np.searchsorted(np.unique(table.y), table.y)
    classifier = build("Logistic regression", 0, 1, 3).fit(X, labels)
    weights = np.where(np.arange(len(labels)) < 150, 1.0, 1e-12)
    heavy = column_importance(classifier.predict_proba, X, labels, preprocessing, weights)["importance"]
    plain = column_importance(classifier.predict_proba, X, labels, preprocessing)["importance"]
    same = column_importance(classifier.predict_proba, X, labels, preprocessing, np.full(len(labels), 3.0))
    np.testing.assert_allclose(same["importance"], plain, rtol=1e-12)
    assert not np.allclose(heavy, plain)
