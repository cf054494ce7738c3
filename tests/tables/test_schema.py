"""Every column is used for what it is, or dropped with a word."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import eber
from eber.datasets.hospitals import draw_hospitals
from eber.tables.columns import as_numbers
from eber.tables.schema import Schema
from eber.tables.training import TrainingTable, read_training_table


def read(tmp_path: Path, frame: pd.DataFrame, **options: object) -> TrainingTable:
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return read_training_table(path, **{"label": "y", "environment": "site", **options})  # type: ignore[arg-type]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Forty rows of two sites."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({"site": ["a", "b"] * 20, "y": [0, 0, 1, 1] * 10, "x": rng.normal(size=40)})


def test_the_example_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "hospitals.csv"
    draw_hospitals(400).to_csv(path, index=False)
    table = read_training_table(path, label="sepsis", environment="hospital")
    kinds = {feature.name: feature.kind for feature in table.schema.features}
    assert kinds["sex"] == kinds["ward"] == "categorical"
    assert kinds["ventilated"] == "boolean"
    assert kinds["lactate"] == "numeric"
    assert set(table.schema.dropped) == {"patient_id", "admitted", "country"}
    assert table.schema.identifiers == ("patient_id",)
    assert any("'<0.5'" in note for note in table.notes)
    assert Schema.from_json(table.schema.to_json()) == table.schema


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("constant", ["k"] * 40, "the same"),
        ("nothing", [None] * 40, "missing"),
        ("subject_id", [1, 2, 3, 4] * 10, "name says"),
        ("code", [f"c{j}" for j in range(40)], "identifier or free text"),
        ("count", list(range(500, 540)), "numbers the rows"),
        ("seen", ["2021-03-04", "2022-01-01"] * 20, "dates"),
        ("clinic", ["north", "south"] * 20, "it names the environment"),
    ],
)
def test_columns_that_cannot_help_are_dropped_with_a_word(
    tmp_path: Path, frame: pd.DataFrame, name: str, values: list[object], reason: str
) -> None:
    table = read(tmp_path, frame.assign(**{name: values}))
    assert reason in table.schema.dropped[name]
    assert [feature.name for feature in table.schema.features] == ["x"]


def test_a_few_odd_texts_among_numbers_count_as_missing_and_are_named(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["dose"] = ["unknown" if j == 7 else str(j / 10) for j in range(40)]
    table = read(tmp_path, frame)
    assert np.flatnonzero(np.isnan(table.columns.values["dose"])).tolist() == [7]
    assert any("'unknown'" in note for note in table.notes)


def test_detection_limits_are_read_as_the_limit_and_counted(tmp_path: Path, frame: pd.DataFrame) -> None:
    limits = ["<5", "> 100", "<=2.5", ">=7", "≤0.5", "≥ 8"]
    frame["crp"] = [limits[j] if j < 6 else "<5" if j % 3 == 0 else f"{j}.5" for j in range(40)]
    table = read(tmp_path, frame)
    crp = table.columns.values["crp"]
    np.testing.assert_array_equal(crp[:9], [5, 100, 2.5, 7, 0.5, 8, 5, 7.5, 8.5])
    assert not np.isnan(crp).any()
    assert "Column 'crp': 18 of 40 rows have a detection limit such as '<5', which is read as the limit." in table.notes


def test_detection_limits_with_decimal_commas_are_read(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "t.csv"
    frame.assign(crp=["<0,5", "1,25"] * 20).to_csv(path, index=False, sep=";", decimal=",")
    crp = read_training_table(path, label="y", environment="site").columns.values["crp"]
    assert crp[:2].tolist() == [0.5, 1.25]


def test_groups_that_are_written_like_limits_stay_groups(tmp_path: Path, frame: pd.DataFrame) -> None:
    table = read(tmp_path, frame.assign(group=np.repeat(["<18", "<18", ">65", "18"], 10)))
    assert {feature.name: feature.kind for feature in table.schema.features}["group"] == "categorical"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["1.5", "2", "80 kg", "3"], "Check column 'v': 75 % of its values are numbers, but '80 kg' is not, so it is"),
        (
            ["71 kg", "80 kg", "80.5kg", "n/a?"],
            "Check column 'v': most of its values are numbers with 'kg' behind them",
        ),
    ],
)
def test_text_that_was_meant_as_numbers_is_remarked_on(
    tmp_path: Path, frame: pd.DataFrame, values: list[str], says: str
) -> None:
    table = read(tmp_path, frame.assign(v=np.repeat(values, 10)))
    assert {feature.name: feature.kind for feature in table.schema.features}["v"] == "categorical"
    assert table.notes[0].startswith(says)
    assert table.notes[0].endswith("To have it used as numbers, write numbers alone.")


def test_text_that_begins_with_digits_is_not_remarked_on(tmp_path: Path, frame: pd.DataFrame) -> None:
    table = read(tmp_path, frame.assign(line=["1st", "2nd", "3rd", "4th"] * 10, stage=["1a", "1b", "2a", "x"] * 10))
    assert not table.schema.remarks


def test_decimal_commas_and_missing_values_are_read_as_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    forms = ["1,5", "-2", "3,25e1", "", "NA", "-", "?", "null", "NaN", " 4,0 "]
    rows = [f"s{j % 2};{j % 4 // 2};{form}" for j, form in enumerate(forms)]
    path.write_text("site;y;dose\n" + "\n".join(rows) + "\n")
    dose = read_training_table(path, label="y", environment="site").columns.values["dose"]
    np.testing.assert_array_equal(dose, [1.5, -2, 32.5, *[np.nan] * 6, 4.0])


def test_points_beside_decimal_commas_are_for_thousands(tmp_path: Path) -> None:
    """1.234 would be read as a little more than one, a thousandth of what was meant."""
    path = tmp_path / "t.csv"
    rows = [f"s{j % 2};{j % 4 // 2};{form};{j % 7}" for j, form in enumerate(["1.234", "-12.300", "950,5", "870"] * 5)]
    path.write_text("site;y;platelets;x\n" + "\n".join(rows) + "\n")
    notes = read_training_table(path, label="y", environment="site").notes
    assert any("'platelets' is not used: some of its numbers have thousands separators" in note for note in notes)
    texts = pa.array(["950,5", None, "870", "1.234"])
    with pytest.raises(ValueError, match=r"c of t has '1\.234' in row 14 and numbers with a decimal comma in others"):
        as_numbers(texts, decimal_comma=True, odd_texts=(), where="c of t", first_row=10)
    for plain in (["0.125", "1,5"], ["1.25", "1,5"], ["1.234", "870"]):  # no thousands, or no sign of them
        as_numbers(pa.array(plain), decimal_comma=True, odd_texts=(), where="c of t")


def test_a_header_between_the_rows_is_refused(tmp_path: Path, frame: pd.DataFrame) -> None:
    """Files that were put one behind the other have one: it would be a class and an environment."""
    path = tmp_path / "t.csv"
    path.write_text(frame.to_csv(index=False) * 3)
    with pytest.raises(ValueError, match=r"t\.csv has its header again in 2 rows, .* remove the headers"):
        read_training_table(path, label="y", environment="site")
    with pytest.raises(ValueError, match=r"has its header again in 2 rows"):
        eber.prepare_table(path, label="y", environment="site", out=tmp_path / "prepared")


def test_a_class_that_is_called_as_an_environment_s_prediction_is_refused(tmp_path: Path, frame: pd.DataFrame) -> None:
    """p(environment a) was how much a row resembles the environment a, in the place of the class's probability."""
    path = tmp_path / "t.csv"
    frame.assign(y=["environment a", "b"] * 20).to_csv(path, index=False)
    for read_it in (read_training_table, partial(eber.prepare_table, out=tmp_path / "prepared")):
        with pytest.raises(ValueError, match=r"would be called p\(environment a\)\. Rename one"):
            read_it(path, label="y", environment="site")


def test_an_unclosed_quote_does_not_swallow_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('site,y,note\na,0,fine\nb,1,"open\na,1,lost\nb,0,lost\n')
    with pytest.raises(ValueError, match=r"never closed, before 'open'"):
        read_training_table(path, label="y", environment="site")
    path.write_text('site,y,x,size\na,0,1,5" pipe\nb,1,2,"two\nlines"\n')
    assert len(read_training_table(path, label="y", environment="site")) == 2


def test_body_mass_index_is_no_row_index(tmp_path: Path, frame: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    table = read(tmp_path, frame.assign(body_mass_index=rng.normal(25, 3, 40).round(1), paid=rng.integers(0, 9, 40)))
    assert not table.schema.dropped


def test_features_named_by_the_user_are_used_as_they_are(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["row_id"] = np.arange(40)
    table = read(tmp_path, frame, features=["row_id"])
    assert [feature.name for feature in table.schema.features] == ["row_id"]
    with pytest.raises(ValueError, match="cannot be a feature"):
        read(tmp_path, frame.assign(day="2020-01-01"), features=["day"])


def test_identifiers_are_found_among_columns_that_are_no_features_too(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame = frame.assign(subject_id=[1, 2, 3, 4] * 10, count=range(500, 540), dose=[1, 2] * 20, run_id=7)
    schema = read(tmp_path, frame, features=["x"]).schema
    assert schema.identifiers == ("subject_id", "count")
    assert set(schema.dropped.values()) == {"not among the features you named"}


def test_rows_without_label_or_environment_are_left_out_and_counted(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["y"] = frame["y"].astype(object)
    frame.loc[:4, "y"] = None
    frame.loc[[6, 9], "site"] = None
    table = read(tmp_path, frame)
    assert len(table) == 33
    assert "5 of 40 rows have no label" in table.notes[0]
    assert "2 of 40 rows have no environment" in table.notes[1]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0, 1], [0, 1]),
        ([0.0, 1.0], [0, 1]),
        ([True, False], ["false", "true"]),
        (["sick", "well"], ["sick", "well"]),
        (["01", "1"], ["01", "1"]),
        (["01", "02"], ["01", "02"]),
        (["1_0", "2_0"], ["1_0", "2_0"]),
        (["1.0", "0.0"], [0, 1]),
        (["+1", "-1"], [-1, 1]),
    ],
)
def test_labels_may_be_numbers_booleans_or_text(
    tmp_path: Path, frame: pd.DataFrame, values: list[object], classes: list[object]
) -> None:
    path = tmp_path / "t.parquet"
    frame.assign(y=values * 20).to_parquet(path)
    table = read_training_table(path, label="y", environment="site")
    assert np.unique(table.y).tolist() == classes


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("y", ["Yes", "yes", "No", "no"], "Column 'y' of .* holds 'No' and 'no', 'Yes' and 'yes', which differ"),
        ("site", ["General", "general", "North", "South"], "'site' of .* holds 'General' and 'general', which differ "),
        ("site", ["St. Mary", "St.  Mary", "St.Mary", "x"], "holds 'St.  Mary' and 'St. Mary' and 'St.Mary', which"),
    ],
)
def test_names_that_differ_only_in_letter_case_or_blanks_are_refused(
    tmp_path: Path, frame: pd.DataFrame, column: str, values: list[str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        read(tmp_path, frame.assign(**{column: values * 10}))


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("site", ["1", "1.0", "2", "2.0"], "holds '1' and '1.0', '2' and '2.0', which differ only"),
        ("y", ["1", "1.0", "0", "0.0"], "holds '0' and '0.0', '1' and '1.0', which differ only"),
        ("site", ["Zu\u0308rich", "Z\u00fcrich", "Bern", "Basel"], r"holds 'Zu\\u0308rich' and 'Zürich', which differ"),
        (
            "site",
            ["Be\u200brn", "Bern", "Basel", "\ufeffBasel"],
            r"'Basel' and '\\ufeffBasel', 'Bern' and 'Be\\u200brn'",
        ),
    ],
)
def test_names_that_look_alike_and_are_written_differently_are_refused(
    tmp_path: Path, frame: pd.DataFrame, column: str, values: list[str], says: str
) -> None:
    """A hospital would be held out and trained on, and a class be two."""
    with pytest.raises(ValueError, match=says):
        read(tmp_path, frame.assign(**{column: values * 10}))


@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.int64(), pa.float64()])
def test_environments_that_are_long_numbers_stay_apart(tmp_path: Path, frame: pd.DataFrame, kind: Any) -> None:
    """Not so by the fifteen digits that are safe to print of a floating-point number."""
    numbers = [10**17, 10**17 + 64] * 20
    table = pa.table({"y": frame["y"], "x": frame["x"], "site": pa.array(numbers).cast(kind, safe=False)})
    found = read_training_table(table, label="y", environment="site").environments
    assert np.unique(found).tolist() == ["100000000000000000", "100000000000000064"]


def test_a_zero_with_a_sign_is_the_class_zero(frame: pd.DataFrame) -> None:
    table = read_training_table(frame.assign(y=[-0.0, 0.0, 1.0, 1.0] * 10), label="y", environment="site")
    assert table.classes.tolist() == [0, 1]


def test_names_that_differ_in_more_than_blanks_are_different(tmp_path: Path, frame: pd.DataFrame) -> None:
    table = read(tmp_path, frame.assign(site=["ward 1 11", "ward 11 1", " b", "b "] * 10))
    assert np.unique(table.environments).tolist() == ["b", "ward 1 11", "ward 11 1"]


def test_classes_and_environments_are_counted_and_the_positive_class_is_named(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    classes, environments, columns = read(tmp_path, frame.assign(y=["yes", "no", "no", "no"] * 10)).contents
    assert columns == "Columns that are used: 1 numeric (x)."
    assert classes == "Classes of 'y' with their rows: no (30), yes (10); yes is the positive one."
    assert environments == "Environments of 'site' with their rows: a (20), b (20)."
    many = read(tmp_path, frame.assign(y=[0, 1, 2, 1] * 10, site=[f"s{j % 19}" for j in range(40)])).contents
    assert "positive" not in many[0]
    assert many[1].startswith("Environments of 'site' with their rows: s0 (3), s1 (3), s10 (2)")
    assert many[1].endswith(" and 9 more.")


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({}, {"label": "Y"}, "Did you mean 'y'"),
        ({}, {"label": "site"}, "two different columns"),
        ({"y": 1}, {}, "at least two classes"),
        ({"y": np.linspace(0, 1, 40) * 60.5}, {}, "are no classes"),
        ({"site": np.arange(40)}, {}, "names rows, not environments"),
        ({"x": 1.0}, {}, "no column that could be a feature"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    tmp_path: Path, frame: pd.DataFrame, changes: dict[str, object], options: dict[str, object], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        read(tmp_path, frame.assign(**changes), **options)


@pytest.mark.parametrize(
    "name", ["patient_id", "PatientID", "MRN", "subject number", "id_person", "case_id", "patientid"]
)
def test_a_column_that_names_subjects_is_known_by_its_name(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    frame[name] = [f"P{i % 35}" for i in range(40)]
    table = read(tmp_path, frame)
    assert table.subject == name
    assert table.identifiers is not None
    assert table.identifiers[37] == "P2"


@pytest.mark.parametrize("name", ["id", "bed_id", "patient_bed_id", "complaint", "blood pressure", "patient_remark"])
def test_other_columns_that_repeat_name_no_subjects(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    frame[name] = [f"v{i % 35}" for i in range(40)]
    table = read(tmp_path, frame)
    assert name in table.schema.dropped
    assert table.subject == ""
    assert table.identifiers is None


def test_no_other_column_stands_in_for_subjects_that_are_all_different(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["case_id"] = [f"C{i % 30}" for i in range(40)]
    frame["patient_id"] = [f"P{i}" for i in range(39)] + [None]
    table = read(tmp_path, frame)
    assert table.subject == "patient_id"
    assert table.identifiers is None
