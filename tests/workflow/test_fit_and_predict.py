"""`fit_table`, `load_model` and `predict_table` are the commands, to the bit, on whatever holds the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eber
from eber.exceptions import AdaptationWarning, FitWarning
from eber.workflow import fitting
from tests.command_line import eber as command
from tests.workflow.shown import assert_fits_80_columns, assert_harmless_html

NAMES: dict[str, Any] = {"label": "sepsis", "environment": "hospital"}
OPTIONS = ["--label", "sepsis", "--environment", "hospital", "--quick"]
KINDS: dict[str, Any] = {
    "path": lambda path, frame: path,
    "text": lambda path, frame: str(path),
    "pandas": lambda path, frame: frame.set_index(np.arange(len(frame)) + 100),
    "polars": lambda path, frame: pl.from_pandas(frame),
    "pyarrow": lambda path, frame: pa.Table.from_pandas(frame, preserve_index=False),
}

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def by_command(parquet: Path) -> Path:
    """The folder in which the commands have left a model and its predictions."""
    folder = parquet.parent
    with pytest.MonkeyPatch.context() as patch:
        assert command(patch, "fit", parquet, *OPTIONS, "--out", folder / "model") == 0
        keep = ["--keep", "age", "--adapt", "--out", folder / "p.parquet"]
        assert command(patch, "predict", folder / "model", parquet, *keep) == 0
    return folder


@pytest.fixture(scope="module")
def model(hospitals: pd.DataFrame) -> eber.TableModel:
    """A fit of the DataFrame."""
    return eber.fit_table(hospitals, **NAMES, quick=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_the_command_s_to_the_bit(
    kind: str, by_command: Path, parquet: Path, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    fitted = eber.fit_table(KINDS[kind](parquet, hospitals), **NAMES, quick=True, scores=kind == "polars", out=out)
    (ours,), (theirs,) = (list(folder.glob("classifier-*")) for folder in (out, by_command / "model"))
    assert ours.name == theirs.name, "named by the hash of the classifier"
    command_s = eber.load_model(by_command / "model")
    assert fitted.preprocessing == command_s.preprocessing == eber.load_model(str(out)).preprocessing
    assert fitted.notes == command_s.notes
    if kind == "polars":
        pd.testing.assert_frame_equal(fitted.held_out_scores, command_s.held_out_scores, check_exact=True)


@pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_the_command_s_to_the_bit_and_of_the_kind_that_was_given(
    kind: str, by_command: Path, parquet: Path, hospitals: pd.DataFrame
) -> None:
    table = KINDS[kind](parquet, hospitals)
    predictions = eber.load_model(by_command / "model").predict_table(table, keep="age", adapt=True)
    expected = {"pyarrow": pa.Table, "polars": pl.DataFrame}.get(kind, pd.DataFrame)
    assert isinstance(predictions.frame, expected)
    if kind == "pandas":
        assert predictions.frame.index.equals(table.index), "a row is found where it was"
    found = predictions.to_pandas().reset_index(drop=True)
    written = pd.read_parquet(by_command / "p.parquet")
    pd.testing.assert_frame_equal(found, written, check_exact=True, check_dtype=False)
    assert sum(predictions.report.mixture.values()) == pytest.approx(1.0)
    assert any("Estimated mixture" in remark for remark in predictions.remarks)


@pytest.mark.parametrize("kind", ["path", "polars"])
def test_predictions_that_go_to_a_file_are_the_same(
    kind: str, model: eber.TableModel, parquet: Path, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    table = KINDS[kind](parquet, hospitals)
    written = model.predict_table(table, tmp_path / "new" / "p.parquet")
    assert written.frame is None
    assert len(written) == len(hospitals)
    answers = pq.read_table(tmp_path / "new" / "p.parquet").to_pandas()
    pd.testing.assert_frame_equal(answers, model.predict_table(hospitals).frame, check_exact=True, check_dtype=False)
    pd.testing.assert_frame_equal(written.to_pandas(), answers)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", None])
def test_what_was_copied_comes_back_as_it_was(
    name: str | None, model: eber.TableModel, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    """Seen to be numbers without their zeros, and floats that had lost the end of a number."""
    long = pd.array([2**53 + 1, None] * len(hospitals), dtype="Int64")[: len(hospitals)]
    ward = [f"00{i}" if i else '=1,"\n' for i in range(len(hospitals))]
    rows = hospitals.assign(bed=ward, stay=long, code="007")
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    out = None if name is None else tmp_path / name
    found = model.predict_table(tmp_path / "rows.parquet", out, keep=["bed", "stay", "code"]).to_pandas()
    assert set(found["code"]) == {"007"}
    assert list(found["bed"])[1:] == ward[1:]
    assert found["bed"][0] == ("'" if name == "p.csv" else "") + ward[0]
    assert [None if pd.isna(value) else int(value) for value in found["stay"][:2]] == [2**53 + 1, None]


def test_remarks_are_kept_and_a_doubtful_adaptation_warns(model: eber.TableModel, hospitals: pd.DataFrame) -> None:
    one = hospitals.head(1).assign(age=30_000.0, ward="corridor")
    with pytest.warns(AdaptationWarning):
        predictions = model.predict_table(one, adapt=True)
    said = " ".join(predictions.remarks)
    for words in ("'corridor'", "Column 'age': 1 of 1 row lies beyond anything in training", "Do not trust it"):
        assert words in said


def test_models_and_predictions_show_themselves(
    model: eber.TableModel, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    for result, words in (
        (model, ["EBER for sepsis", "<script>alert(1)</script>", "auroc"]),
        (model.predict_table(hospitals), ["predicted", "p(1)"]),
        (model.predict_table(pl.from_pandas(hospitals)), ["predicted", "p(1)"]),
        (model.predict_table(hospitals, tmp_path / "p.csv"), [str(tmp_path.name)]),
    ):
        text, html = assert_fits_80_columns(result), assert_harmless_html(result)
        for word in words:
            assert word in text
            assert word.replace("<", "&lt;").replace(">", "&gt;") in html


def test_warnings_of_the_fit_are_given_once_and_those_of_held_out_fits_not(
    hospitals: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = fitting.fit_method

    def doubtful(method: str, X: Any, *rest: Any) -> Any:
        for _ in range(2):
            warnings.warn(f"doubtful with {len(X)} rows", FitWarning, stacklevel=1)
        return fit(method, X, *rest)

    monkeypatch.setattr(fitting, "fit_method", doubtful)
    monkeypatch.setattr("eber.compare.evaluating.fit_method", doubtful)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eber.fit_table(hospitals, **NAMES, quick=True, method="erm")
    said = [str(warning.message) for warning in caught if "doubtful" in str(warning.message)]
    assert said == [f"doubtful with {len(hospitals)} rows"]
    assert caught[0].filename == __file__, "where the user called it"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"label": "sepsys"}, "DataFrame has no column 'sepsys'. Did you mean 'sepsis'"),
        ({"method": "magic"}, "There is no method 'magic'"),
        ({"seed": -1}, "seed must be a whole number of at least 0; -1 is not"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"drop": "nothing"}, "no column 'nothing'"),
        ({"drop": [3]}, "drop takes names; 3 is none"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(
    arguments: dict[str, Any], says: str, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        eber.fit_table(hospitals, **{**NAMES, **arguments}, out=tmp_path / "model")
    assert says in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [False, True])
def test_ctrl_c_in_a_fit_leaves_what_was_there_and_says_so(
    model: eber.TableModel,
    hospitals: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: bool,
) -> None:
    folder = tmp_path / "model"
    if there:
        model.save(folder)
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eber.workflow.fitting._fit", stop)
    with pytest.raises(KeyboardInterrupt):
        eber.fit_table(hospitals, **NAMES, scores=False, out=folder, progress=True)
    assert folder.exists() == there
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    said = "holds the model that it held before" if there else "nothing was written"
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_predictions_that_fail_leave_nothing(model: eber.TableModel, hospitals: pd.DataFrame, tmp_path: Path) -> None:
    bad = hospitals.assign(age=hospitals["age"].astype(str).where(hospitals.index < 100, "old"))
    with pytest.raises(ValueError, match=r"Column 'age' of DataFrame .* row 101 has 'old'"):
        model.predict_table(bad, tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="no column 'nothing'"):
        model.predict_table(hospitals, keep=["nothing"])
    with pytest.raises(ValueError, match=r"p\.xlsx is neither"):
        model.predict_table(hospitals, tmp_path / "p.xlsx")


def test_a_feature_that_is_there_twice_is_refused(model: eber.TableModel, hospitals: pd.DataFrame) -> None:
    """Which of the two was meant is not guessed, whichever comes first and however blanks hide it."""
    rows = hospitals.head(5)
    for place, name in ((0, "age "), (len(rows.columns), "age")):
        twice = rows.copy()
        twice.insert(place, name, 999, allow_duplicates=True)
        with pytest.raises(ValueError, match="has two columns called 'age', and the data of the fit had one"):
            model.predict_table(twice)
        with pytest.raises(ValueError, match="has two columns called 'age'"):
            model.predict_table(rows, labelled=twice)
    with pytest.raises(ValueError, match="has two columns called 'sepsis'"):
        model.predict_table(rows, labelled=pd.concat([rows, rows["sepsis"]], axis=1))
    as_before = model.predict_table(rows.assign(**{"age.2": 999})).frame
    pd.testing.assert_frame_equal(as_before, model.predict_table(rows).frame)


@pytest.mark.parametrize("name", ["predicted", "p(1)", "z1"])
def test_what_is_copied_does_not_take_the_name_of_a_prediction(
    name: str, model: eber.TableModel, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    """Whoever asks for that column would get what an earlier model said."""
    with pytest.raises(ValueError, match="beside predictions that have a column of that name"):
        model.predict_table(hospitals.head(5).assign(**{name: 0}), tmp_path / "p.csv", keep=name)
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_over_what_is_read_or_into_it(
    model: eber.TableModel, hospitals: pd.DataFrame, tmp_path: Path
) -> None:
    folder, labelled = tmp_path / "folder", tmp_path / "labelled.parquet"
    folder.mkdir()
    for path in (labelled, folder / "a.parquet"):
        hospitals.head(60).to_parquet(path)
    before = {path: path.read_bytes() for path in (labelled, folder / "a.parquet")}
    attempts: list[Callable[[], object]] = [
        lambda: model.predict_table(hospitals.head(5), labelled, labelled=labelled),
        lambda: model.predict_table(folder, folder / "p.parquet"),
        lambda: eber.predict_folder(model, folder, folder / "predictions"),
        lambda: eber.compare_table(folder, **NAMES, out=folder / "results"),
        lambda: eber.prepare_table(folder, **NAMES, out=folder / "prepared"),
    ]
    for attempt in attempts:
        with pytest.raises(ValueError, match=r"is what is read; give another|lies in the folder .*, which is read;"):
            attempt()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in folder.iterdir()] == ["a.parquet"]
