"""A folder in, a folder out: every file as if it had been predicted alone, and none twice."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import eber
from eber.datasets.hospitals import draw_hospitals
from eber.tables import folder_prediction, prediction
from eber.tables.prediction import Asked, predict_file
from tests.command_line import eber as command
from tests.trust.models import fitted_model

pytestmark = pytest.mark.filterwarnings(
    "ignore::eber.exceptions.FitWarning", "ignore::eber.exceptions.AdaptationWarning"
)
NAMES = ("north/1.parquet", "north/2.pq", "south.parquet")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and with a folder of tables."""
    place = tmp_path_factory.mktemp("folders")
    fitted_model(place).save(place / "model")
    for seed, name in enumerate(NAMES):
        (place / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        frame = draw_hospitals(60 + seed, random_state=seed).drop(columns=["sepsis", "hospital"])
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), place / "new" / name)
    return place


def outputs(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.suffix in (".parquet", ".pq")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_file_is_predicted_as_if_alone(
    jobs: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["predict", place / "model", place / "new", "--out", out, "--keep", "age", "--jobs", jobs]
    assert command(monkeypatch, *arguments) == 0
    assert "predictions for 183 rows in 3 files." in capsys.readouterr().out
    model = eber.load_model(place / "model")
    for name in NAMES:
        predict_file(model, place / "new" / name, tmp_path / "alone" / name, Asked(keep=("age",)))
    assert outputs(out) == outputs(tmp_path / "alone")


def test_counts_and_remarks_are_those_of_one_table(place: Path, tmp_path: Path) -> None:
    strange = shutil.copytree(place / "new", tmp_path / "new")
    for name in NAMES:
        frame = pq.read_table(strange / name).to_pandas().assign(unknown=1, age=4000.0)
        frame.to_parquet(strange / name)
    model = eber.load_model(place / "model")
    as_one = model.predict_table(strange, tmp_path / "one.parquet")
    file_by_file = model.predict_table(strange, tmp_path / "out")
    assert file_by_file.remarks == as_one.remarks
    assert any("'age': 183 of 183 rows" in remark for remark in as_one.remarks)
    assert len(file_by_file) == len(as_one) == 183


def test_what_is_done_is_not_done_again_unless_it_changed(place: Path, tmp_path: Path) -> None:
    new, out = shutil.copytree(place / "new", tmp_path / "new"), tmp_path / "out"
    model = eber.load_model(place / "model")
    model.predict_table(new, out)
    whole, times = outputs(out), {name: (out / name).stat().st_mtime_ns for name in NAMES}

    def done_again() -> set[str]:
        again = model.predict_table(new, out)
        assert len(again) == sum(pq.read_metadata(new / name).num_rows for name in NAMES)
        changed = {name for name in NAMES if (out / name).stat().st_mtime_ns != times[name]}
        assert again.report.files_done_before == len(NAMES) - len(changed)
        times.update({name: (out / name).stat().st_mtime_ns for name in NAMES})
        return changed

    assert done_again() == set()
    (out / NAMES[0]).write_bytes(whole[NAMES[0]][:-1])  # damaged
    assert done_again() == {NAMES[0]}
    shutil.copy(new / NAMES[2], new / NAMES[1])  # other rows
    assert done_again() == {NAMES[1]}
    fitted_model(tmp_path, seed=1).save(tmp_path / "other")
    model = eber.load_model(tmp_path / "other")
    assert done_again() == set(NAMES)


def test_a_broken_file_stops_no_other(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, out = shutil.copytree(place / "new", tmp_path / "new"), tmp_path / "out"
    model = eber.load_model(place / "model")
    frame = pq.read_table(new / NAMES[1]).to_pandas()
    frame.iloc[:0].to_parquet(new / NAMES[1])
    with pytest.raises(ValueError, match=r"1 of 3 files could not be predicted: .*2\.pq has columns but no rows"):
        model.predict_table(new, out)
    assert set(outputs(out)) == set(NAMES) - {NAMES[1]}
    frame.to_parquet(new / NAMES[1])
    assert model.predict_table(new, out).report.files_done_before == 2


def test_an_adaptation_is_to_the_rows_of_all_files(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = eber.load_model(place / "model")
    as_one = model.predict_table(place / "new", tmp_path / "one.parquet", adapt=True)
    file_by_file = eber.predict_folder(model, place / "new", tmp_path / "out", adapt=True)
    assert file_by_file.report.adaptation is not None
    assert file_by_file.report.adaptation.n_rows == 183
    ours, theirs = file_by_file.report.mixture, as_one.report.mixture
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), atol=1e-9)
    monkeypatch.setattr(folder_prediction, "ADAPTATION_ROWS", 50)
    sampled = eber.predict_folder(model, place / "new", tmp_path / "fewer", adapt=True)
    assert sampled.report.adaptation is not None
    assert sampled.report.adaptation.n_rows == 50


def test_what_is_missing_is_so_in_the_rows_that_an_adaptation_is_to(place: Path, tmp_path: Path) -> None:
    """What the user calls missing, and a minus in a column of findings."""
    rng, rows = np.random.default_rng(0), draw_hospitals(240)
    severe = rng.random(len(rows)) < 0.5
    rows["finding"] = np.where(severe ^ (rows["sepsis"] == 1) ^ (rng.random(len(rows)) < 0.2), "+", "-")
    rows["ward"] = rows["ward"].where(~severe, "unknown")
    model = eber.fit_table(
        rows, label="sepsis", environment="hospital", quick=True, epochs=20, scores=False, missing="unknown"
    )
    new = tmp_path / "new"
    new.mkdir()
    rows[severe].drop(columns=["sepsis", "hospital"]).to_parquet(new / "a.parquet", index=False)
    rows[~severe].drop(columns=["sepsis", "hospital"]).to_parquet(new / "b.parquet", index=False)
    as_one = model.predict_table(new, tmp_path / "one.parquet", adapt=True, force=True)
    file_by_file = eber.predict_folder(model, new, tmp_path / "out", force=True)
    ours, theirs = file_by_file.report.mixture, as_one.report.mixture
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), atol=1e-6)


@pytest.mark.parametrize("moment", ["while rows are drawn", "after they were drawn"])
def test_an_adaptation_is_not_to_rows_that_were_changed(
    moment: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to be to those of a moment, with predictions of all files by them."""
    model, folder = eber.load_model(place / "model"), shutil.copytree(place / "new", tmp_path / "new")
    part, other = folder / "south.parquet", (folder / "north" / "1.parquet").read_bytes()
    good = part.read_bytes()
    right = eber.predict_folder(model, folder, tmp_path / "right", force=True).report.mixture
    name = "draw_rows" if moment == "while rows are drawn" else "adapted"
    function: Any = getattr(folder_prediction, name)

    def tampered(*arguments: Any) -> Any:
        part.write_bytes(other)
        try:
            return function(*arguments)
        finally:
            part.write_bytes(good)

    with monkeypatch.context() as patch:
        patch.setattr(folder_prediction, name, tampered)
        with pytest.raises(ValueError, match="was changed while it was read"):
            eber.predict_folder(model, folder, tmp_path / "out", force=True)
    assert eber.predict_folder(model, folder, tmp_path / "out", force=True).report.mixture == right
    assert outputs(tmp_path / "out") == outputs(tmp_path / "right")


@pytest.mark.parametrize("option", [["--query", "SELECT * FROM data LIMIT 3"], ["--sheet", "first"], []])
def test_what_is_said_about_a_folder_that_cannot_be_followed_is_refused(
    option: list[str],
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Seen to be passed over; and CSV files to end in a library's sentence about magic bytes."""
    folder = place / "new"
    if "--query" in option:
        pytest.importorskip("duckdb")
    if not option:
        folder = tmp_path / "new"
        folder.mkdir()
        draw_hospitals(60).drop(columns=["sepsis", "hospital"]).to_csv(folder / "a.csv", index=False)
    assert command(monkeypatch, "predict", place / "model", folder, "--out", tmp_path / "out", *option) == 2
    said = capsys.readouterr().err
    assert "has no meaning for" in said if "--sheet" in option else "are predicted one by one" in said
    assert not (tmp_path / "out").exists()


def test_predictions_are_not_written_over_files_of_others(place: Path, tmp_path: Path) -> None:
    """Of the folder of tables of last year, say, which has files of the same names."""
    model, other = eber.load_model(place / "model"), shutil.copytree(place / "new", tmp_path / "other")
    before = outputs(other)
    with pytest.raises(ValueError, match="is there already and no prediction of an earlier command"):
        model.predict_table(place / "new", other)
    assert outputs(other) == before
    assert not (other / ".done").exists()


def test_predictions_of_files_that_are_gone_are_named(place: Path, tmp_path: Path) -> None:
    """Whoever reads the folder reads them too."""
    new, out = shutil.copytree(place / "new", tmp_path / "new"), tmp_path / "out"
    model = eber.load_model(place / "model")
    first = model.predict_table(new, out)
    assert len(first.to_pandas()) == 183
    (new / "south.parquet").unlink()
    again = model.predict_table(new, out)
    assert any("1 file of an earlier command, such as 'south.parquet'" in remark for remark in again.remarks)
    with pytest.raises(ValueError, match="holds 183 rows, and 121 were predicted"):
        again.to_pandas()


def test_outputs_among_the_inputs_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = eber.load_model(place / "model")
    for out in (place / "new", place / "new" / "out"):
        with pytest.raises(ValueError, match=r"is what is read|lies in the folder .*, which is read"):
            model.predict_table(place / "new", out)
    with pytest.raises(ValueError, match="is no folder"):
        eber.predict_folder(model, place / "new" / NAMES[0], place / "out")
    arguments = ["predict", place / "model", place / "new", "--out", place / "one.parquet", "--jobs", 2]
    assert command(monkeypatch, *arguments) == 2


@pytest.mark.parametrize("kind", ["logistic regression", "a search"])
def test_models_of_every_kind_predict_a_folder(kind: str, place: Path, tmp_path: Path) -> None:
    """Seen to fail: the fingerprint was of networks alone."""
    model = eber.load_model(place / "model")
    X, y = np.random.default_rng(0).normal(size=(60, len(model.preprocessing.names_out))), np.arange(60) % 2
    classifier: Any = LogisticRegression().fit(X, y)
    if kind == "a search":
        classifier = eber.EnvironmentSearch(LogisticRegression(), [{}]).fit(X, y, environments=np.arange(60) % 3)
    other = dataclasses.replace(model, classifier=classifier)
    for done in (0, 3):
        found = other.predict_table(place / "new", tmp_path / "out")
        assert found.report.files_done_before == done
    assert other.fingerprint != model.fingerprint


@pytest.mark.parametrize("moment", ["before it is opened", "while it is read"])
def test_a_file_that_changes_while_it_is_predicted_does_not_count_as_done(
    moment: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And when it has been put back, it is predicted anew."""
    model, folder = eber.load_model(place / "model"), shutil.copytree(place / "new", tmp_path / "new")
    part, other = folder / "south.parquet", (folder / "north" / "1.parquet").read_bytes()
    good = part.read_bytes()
    right = tmp_path / "right.parquet"
    predict_file(model, part, right)

    def tampered(function: Any) -> Any:
        def instead(*arguments: Any, **options: Any) -> Any:
            part.write_bytes(other)
            return function(*arguments, **options)

        return instead

    with monkeypatch.context() as patch:
        if moment == "before it is opened":
            patch.setattr(folder_prediction, "predict_file", tampered(predict_file))
        else:
            patch.setattr(prediction, "_answers", tampered(prediction._answers))
            with pytest.raises(ValueError, match=r"south\.parquet was changed while it was read"):
                predict_file(model, part, tmp_path / "alone.parquet")
            assert not (tmp_path / "alone.parquet").exists()
            part.write_bytes(good)
        with pytest.raises(ValueError, match=r"south\.parquet was changed while it was read"):
            model.predict_table(folder, tmp_path / "out")
    part.write_bytes(good)
    model.predict_table(folder, tmp_path / "out")
    assert (tmp_path / "out" / "south.parquet").read_bytes() == right.read_bytes()
