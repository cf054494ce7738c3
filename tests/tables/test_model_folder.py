"""A saved model is whole, plain data, and predicts what the classifier does."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eber.compare.fit_method import fit_method
from eber.compare.methods import Effort
from eber.datasets.hospitals import draw_hospitals
from eber.exceptions import ModelFileError
from eber.methods import own
from eber.runs.joint_fits import run_alone
from eber.tables import prediction
from eber.tables.model_card import card_page, describe
from eber.tables.model_folder import CARD_PAGE, CLASSIFIER_FOLDER, TABLE_FILE, TableModel
from eber.tables.prediction import Asked, predict_file
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table
from tests.own_methods import RelabelledClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning"),
]


def make(folder: Path, method: str, effort: Effort = Effort(15, 0)) -> TableModel:  # noqa: B008 (frozen)
    path = folder / "hospitals.csv"
    draw_hospitals(300).to_csv(path, index=False)
    table = read_training_table(path, label="sepsis", environment="hospital")
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X = preprocessing.transform(table.columns)
    classifier = run_alone(fit_method(method, X, table.y, table.environments, 0, effort)).classifier
    scores = [{"held_out": "Ashford", "rows": 3, "nll": 0.5, "auroc": None}]
    return TableModel(
        classifier, table.schema, preprocessing, describe(table, classifier, method, scores, ["A remark."])
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TableModel:
    """EBER on a small draw of the example."""
    return make(tmp_path_factory.mktemp("model"), "EBER")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """New patients, without label and hospital."""
    path = tmp_path / "new.csv"
    draw_hospitals(160, random_state=9).drop(columns=["sepsis", "hospital"]).to_csv(path, index=False)
    return path


def test_a_folder_gives_back_what_was_saved(tmp_path: Path, model: TableModel, new: Path) -> None:
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert again.schema == model.schema
    assert again.preprocessing == model.preprocessing
    assert again.card == model.card
    predict_file(model, new, tmp_path / "a.parquet")
    predict_file(again, new, tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))


@pytest.mark.parametrize(
    ("method", "tuned"),
    [
        ("Logistic regression", False),
        ("Gradient boosting", False),
        ("Random forest", False),
        ("No model", False),
        ("Logistic regression", True),
        ("ERM", True),
        ("Pool", False),
    ],
)
def test_a_saved_model_of_any_kind_answers_as_it_did(tmp_path: Path, new: Path, method: str, tuned: bool) -> None:
    model = make(tmp_path, method, Effort(15, 2 if tuned else 0))
    model.save(tmp_path / "model")
    suffixes = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert suffixes == {".json", ".md", ".safetensors"}
    again = TableModel.load(tmp_path / "model")
    predict_file(model, new, tmp_path / "a.parquet")
    predict_file(again, new, tmp_path / "b.parquet")
    before, after = (pd.read_parquet(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    pd.testing.assert_frame_equal(before, after, rtol=0, atol=1e-12)
    again.save(tmp_path / "again")
    assert TableModel.load(tmp_path / "again").card == model.card
    with pytest.raises(ValueError, match=f"Only EBER can be adapted to new rows; this model is {method}"):
        predict_file(again, new, tmp_path / "c.parquet", Asked(adapt=True))


def test_the_folder_holds_plain_data_only(tmp_path: Path, model: TableModel) -> None:
    model.save(tmp_path / "model")
    suffixes = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert suffixes == {".json", ".md", ".safetensors"}
    page = (tmp_path / "model" / CARD_PAGE).read_text()
    assert "| Ashford | 3 | 0.500 | – |" in page
    assert "A remark." in page


def test_the_card_lists_the_columns_with_what_the_fit_has_seen_of_them(tmp_path: Path, model: TableModel) -> None:
    model.save(tmp_path / "model")
    page = (tmp_path / "model" / CARD_PAGE).read_text()
    assert "| column | kind | missing | values |" in page
    assert re.search(r"^\| age \| numeric \| none \| 18 to 9\d \|$", page, re.MULTILINE)
    assert re.search(r"^\| lactate \| numeric \| \d+ % \| 0\.5 to \S+ \|$", page, re.MULTILINE)
    assert "| ventilated | boolean | none | yes, no |" in page
    assert "| ward | categorical | none | emergency, general, intensive care |" in page


def test_the_card_of_a_model_without_these_figures_leaves_them_open(tmp_path: Path, model: TableModel) -> None:
    age = dict(model.preprocessing.to_json()[0])
    for key in ("rows", "missing", "low", "high"):
        del age[key]
    page = card_page(model.card, Preprocessing.from_json([{**age, "name": "a|b"}]))
    assert r"| a\|b | numeric | – | – |" in page


def test_what_was_altered_mixed_or_is_no_model_is_refused(tmp_path: Path, model: TableModel) -> None:
    with pytest.raises(ModelFileError, match="holds no model"):
        TableModel.load(tmp_path)
    folder = tmp_path / "model"
    model.save(folder)
    document = json.loads((folder / TABLE_FILE).read_text())
    document["content"]["preprocessing"][0]["mean"] += 1
    (folder / TABLE_FILE).write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="altered"):
        TableModel.load(folder)
    model.save(folder)
    (manifest,) = folder.glob(f"{CLASSIFIER_FOLDER}-*/model.json")
    manifest.write_bytes(manifest.read_bytes() + b" ")
    with pytest.raises(ModelFileError, match="different fits"):
        TableModel.load(folder)


@pytest.mark.parametrize("name", ["thesis.tex", "card.md", "table.json", "classifier-backup"])
def test_a_folder_with_other_things_in_it_is_left_alone(name: str, tmp_path: Path, model: TableModel) -> None:
    """Also where they are called as ours are."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match="holds other things"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_save_over_a_model_leaves_other_folders_alone(tmp_path: Path, model: TableModel) -> None:
    """Beside the classifier and in it; the old classifier itself is gone."""
    folder = tmp_path / "model"
    model.save(folder)
    (old,) = folder.glob("classifier-*")
    mine = [folder / "classifier-backup" / "notes.txt", folder / f"classifier-{0:016x}" / "model.json", old / "notes"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    make(tmp_path, "ERM").save(folder)
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert [path.name for path in old.iterdir()] == ["notes"]
    (old / "notes").unlink()
    model.save(folder)
    assert len(list(folder.glob("classifier-*"))) == 3


def test_a_file_is_predicted_as_the_classifier_predicts_its_rows(tmp_path: Path, model: TableModel, new: Path) -> None:
    report = predict_file(model, new, tmp_path / "p.csv")
    answers, table = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(new)
    assert report.rows == len(answers) == len(table)
    assert answers["patient_id"].tolist() == table["patient_id"].tolist()
    labelled = tmp_path / "labelled.csv"
    table.assign(sepsis=np.arange(len(table)) % 2, hospital="new").to_csv(labelled, index=False)
    columns = read_training_table(labelled, label="sepsis", environment="hospital").columns
    X = model.preprocessing.transform(columns)
    np.testing.assert_allclose(answers[["p(0)", "p(1)"]], model.classifier.predict_proba(X), rtol=1e-9)
    assert (answers["predicted"] == model.classifier.predict(X)).all()
    split = answers["uncertainty_within_environments"] + answers["uncertainty_between_environments"]
    np.testing.assert_allclose(split, answers["uncertainty_total"], atol=1e-9)
    environments = [name for name in answers if name.startswith("p(environment ")]
    np.testing.assert_allclose(answers[environments].sum(axis=1), 1.0)


def test_batches_do_not_change_the_answers(
    tmp_path: Path, model: TableModel, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict_file(model, new, tmp_path / "whole.parquet")
    batches = prediction.TableFile.batches
    monkeypatch.setattr(prediction.TableFile, "batches", lambda self, columns, rows=0: batches(self, columns, 7))
    predict_file(model, new, tmp_path / "parts.parquet")
    whole, parts = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    pd.testing.assert_frame_equal(whole, parts, rtol=1e-9)


def test_adaptation_reports_and_changes_the_environments_weights(tmp_path: Path, model: TableModel, new: Path) -> None:
    report = predict_file(model, new, tmp_path / "p.parquet", Asked(adapt=True))
    assert report.adaptation is not None
    assert report.adaptation.n_rows == 160
    columns = [name for name in pd.read_parquet(tmp_path / "p.parquet") if name.startswith("p(environment ")]
    assert [f"p(environment {name})" for name in report.mixture] == columns
    adapted = dict(zip(report.mixture, report.adaptation.mixture, strict=True))
    assert report.mixture == pytest.approx(adapted), "the estimate, and not the mixture of the fit"
    fitted = model.classifier.environment_mixture()
    assert np.abs(fitted - report.adaptation.mixture).max() > 0.01


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns="age"), "no column 'age'"),
        (lambda t: t.rename(columns={"age": "Age"}), "Did you mean 'Age'"),
        (lambda t: t.assign(age="old"), "row 1 has 'old'"),
        (lambda t: t.assign(ventilated="perhaps"), "true/false or yes/no"),
        (lambda t: t.assign(age="1,234.5"), "row 1 has '1,234.5'"),
        (lambda t: t.assign(age="2020-01-01"), "row 1 has '2020-01-01'"),
        (lambda t: t.iloc[:0], "no rows"),
    ],
)
def test_files_that_do_not_fit_the_model_are_refused_and_leave_nothing(
    tmp_path: Path, model: TableModel, new: Path, change: object, says: str
) -> None:
    bad = tmp_path / "bad.csv"
    change(pd.read_csv(new)).to_csv(bad, index=False)  # type: ignore[operator]
    with pytest.raises(ValueError, match=says):
        predict_file(model, bad, tmp_path / "out" / "p.parquet")
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


@pytest.mark.parametrize("kind", [str, "category", "float32"])
def test_the_same_values_in_another_type_are_the_same_answers(
    tmp_path: Path, model: TableModel, new: Path, kind: str
) -> None:
    """A model fitted on CSV is used on Parquet, in which numbers may be numbers, texts or categories."""
    table = pd.read_csv(new, dtype={"age": "float64"})
    other = tmp_path / "new.parquet"
    table.assign(age=table["age"].astype(kind)).to_parquet(other)
    for path, out in ((new, "a.parquet"), (other, "b.parquet")):
        predict_file(model, path, tmp_path / out)
    first, second = (pd.read_parquet(tmp_path / out) for out in ("a.parquet", "b.parquet"))
    np.testing.assert_allclose(first["p(1)"], second["p(1)"], rtol=1e-6)


def test_dates_where_numbers_were_are_refused(tmp_path: Path, model: TableModel, new: Path) -> None:
    table = pd.read_csv(new)
    other = tmp_path / "new.parquet"
    table.assign(age=pd.Timestamp("2020-01-01")).to_parquet(other)
    with pytest.raises(
        ValueError, match=r"'age' of .* holds numbers in the data of the fit, but values of type timest"
    ):
        predict_file(model, other, tmp_path / "p.parquet")


def test_memory_does_not_grow_with_the_rows(tmp_path: Path, model: TableModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five times the rows, the same peak: of NumPy's arrays, and of Arrow's as each batch is at hand."""
    batches, features = prediction.TableFile.batches, prediction._features
    arrow: list[int] = []
    monkeypatch.setattr(prediction.TableFile, "batches", lambda self, columns, rows=0: batches(self, columns, 1000))

    def watched(*arguments: Any) -> Any:
        arrow.append(pa.total_allocated_bytes())
        return features(*arguments)

    monkeypatch.setattr(prediction, "_features", watched)
    monkeypatch.setattr(prediction, "ADAPTATION_ROWS", 1000)
    draw = draw_hospitals(2000, random_state=9).drop(columns=["sepsis", "hospital"])
    peaks = []
    for repeats in (3, 15):
        path = tmp_path / f"{repeats}.parquet"
        pd.concat([draw] * repeats).to_parquet(path, row_group_size=1000)
        arrow.clear()
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        report = predict_file(model, path, tmp_path / "p.parquet", Asked(adapt=True))
        peaks.append((tracemalloc.get_traced_memory()[1], max(arrow) - before))
        tracemalloc.stop()
        assert report.rows == 2000 * repeats
    for short, long in zip(*peaks, strict=True):
        assert long < 1.3 * short


def test_values_and_columns_never_seen_are_counted(tmp_path: Path, model: TableModel, new: Path) -> None:
    table = pd.read_csv(new)
    table.loc[:4, "ward"] = "corridor"
    table.assign(mood="fine").to_csv(new, index=False)
    report = predict_file(model, new, tmp_path / "p.parquet")
    assert report.unseen["ward"] == (5, "corridor")
    assert report.ignored == ("mood",)


def test_detection_limits_are_the_same_numbers_in_new_rows(tmp_path: Path, model: TableModel, new: Path) -> None:
    """Also in a column that had none at the fit."""
    table = pd.read_csv(new).assign(age=["<50", *pd.read_csv(new)["age"].astype(str)[1:]])
    table.to_csv(new, index=False)
    report = predict_file(model, new, tmp_path / "a.parquet")
    below = table["lactate"].eq("<0.5")
    assert below.any()
    assert report.limits == {"age": (1, "<50"), "lactate": (int(below.sum()), "<0.5")}
    table.assign(age=table["age"].str.strip("<"), lactate=table["lactate"].str.strip("<")).to_csv(new, index=False)
    assert predict_file(model, new, tmp_path / "b.parquet").limits == {}
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))


def test_a_saved_model_remarks_on_what_training_never_showed(
    tmp_path: Path, model: TableModel, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the batches; and rows that are like those of the fit give no remark."""
    model.save(tmp_path / "model")
    again = TableModel.load(tmp_path / "model")
    assert predict_file(again, new, tmp_path / "p.parquet").unlike_training == []
    table = pd.read_csv(new)
    table.assign(age=table["age"] * 365, heart_rate=None).to_csv(new, index=False)
    batches = prediction.TableFile.batches
    monkeypatch.setattr(prediction.TableFile, "batches", lambda self, columns, rows=0: batches(self, columns, 7))
    age, heart_rate = predict_file(again, new, tmp_path / "p.parquet").unlike_training
    assert age.startswith(f"Column 'age': {len(table)} of {len(table)} rows lie beyond anything in training (18 to 9")
    assert heart_rate.startswith(f"Column 'heart_rate': {len(table)} of {len(table)} values are missing (")


def test_a_baseline_predicts_labels_and_cannot_be_adapted(tmp_path: Path, new: Path) -> None:
    model = make(tmp_path, "ERM")
    predict_file(model, new, tmp_path / "p.csv")
    assert list(pd.read_csv(tmp_path / "p.csv")) == ["patient_id", "predicted", "p(0)", "p(1)"]
    with pytest.raises(ValueError, match="Only EBER"):
        predict_file(model, new, tmp_path / "p.csv", Asked(adapt=True))


def test_a_folder_says_not_what_is_imported(tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one's own class is loaded where the class is registered; elsewhere the folder imports nothing."""
    monkeypatch.setattr(own, "registered", {})
    mine = make(tmp_path, "tests.own_methods:RelabelledClassifier")
    assert type(mine.classifier) is RelabelledClassifier
    mine.save(tmp_path / "model")
    assert type(TableModel.load(tmp_path / "model").classifier) is RelabelledClassifier
    monkeypatch.setattr(own, "registered", {})
    with pytest.raises(ModelFileError, match=r"tests.own_methods:RelabelledClassifier is of no method that is known"):
        TableModel.load(tmp_path / "model")
