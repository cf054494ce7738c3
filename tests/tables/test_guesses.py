"""What a column of numbers means: alarms where there is reason, and none at columns as they usually are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.tables.choices import ColumnChoices
from eber.tables.guesses import missing_codes
from eber.tables.training import TrainingTable, read_training_table

N = 2000
RNG = np.random.default_rng(0)


def with_codes(values: np.ndarray, *codes: float, rows: int = 40) -> np.ndarray:
    """Some rows replaced by each code."""
    values = values.astype(float)
    for code in codes:
        values[np.random.default_rng(int(abs(code))).permutation(len(values))[:rows]] = code
    return values


AGES = RNG.integers(0, 100, N)
ADULTS = RNG.integers(18, 98, N)
CRP = np.round(RNG.lognormal(2, 1.2, N), 1)
LIKERT = RNG.integers(1, 6, N)

CODED = {
    "a laboratory value with -999": (with_codes(CRP, -999), [-999]),
    "blood pressure with -9, which is below nothing else than zero": (
        with_codes(RNG.normal(120, 15, N).round(), -9),
        [-9],
    ),
    "adults' ages with 999": (with_codes(ADULTS, 999), [999]),
    "a scale from 1 to 5 with 99": (with_codes(LIKERT, 99), [99]),
    "a scale with -88 and 99": (with_codes(LIKERT, -88, 99), [-88, 99]),
    "a survey with -1, -8 and -9": (with_codes(RNG.integers(0, 50, N), -1, -8, -9), [-9, -8, -1]),
    "years with 9999": (with_codes(RNG.integers(1950, 2025, N), 9999), [9999]),
    "z-scores with -999": (with_codes(RNG.normal(size=N), -999), [-999]),
    "days since contact, nearly all 999": (np.where(np.arange(N) % 20 == 0, RNG.integers(0, 28, N), 999), [999]),
    "sevens and nines for refused and unknown": (with_codes(RNG.integers(0, 60, N), 777, 999), [777, 999]),
}

PLAIN = {
    "ages up to 99": AGES,
    "ages of adults with many of 99": with_codes(ADULTS, 99),
    "scores from 0 to 100": RNG.integers(0, 101, N),
    "shares in percent with many of 99": with_codes(RNG.integers(40, 101, N), 99),
    "oxygen saturation": np.clip(RNG.normal(96, 2, N).round(), 70, 100),
    "counts": RNG.poisson(4, N),
    "long-tailed counts": np.floor(RNG.lognormal(4, 1.5, N)),
    "years": RNG.integers(1900, 2025, N),
    "temperatures in Celsius": RNG.normal(2, 6, N).round(),
    "differences of scores": RNG.integers(-10, 11, N),
    "worse, same, better": RNG.integers(-1, 2, N),
    "prices": RNG.choice([9, 19, 49, 99, 199, 499, 799, 999], N),
    "a single 9999": np.r_[CRP[:-1], 9999],
    "scale from 1 to 5": LIKERT,
    "zero or one": RNG.integers(0, 2, N),
    "zero or 99": RNG.choice([0, 99], N),
    "glucose with a ceiling": np.minimum(np.floor(RNG.lognormal(5.2, 0.8, N)), 999),
}


@pytest.mark.parametrize("name", CODED)
def test_codes_for_missing_values_are_found(name: str) -> None:
    values, codes = CODED[name]
    assert sorted(missing_codes(np.asarray(values, float))) == codes


@pytest.mark.parametrize("name", PLAIN)
def test_numbers_that_are_only_extreme_are_believed(name: str) -> None:
    assert missing_codes(np.asarray(PLAIN[name], float)) == {}


def frame(**columns: object) -> pd.DataFrame:
    """Rows of four sites with a feature that decides the label."""
    x = np.random.default_rng(1).normal(size=N)
    return pd.DataFrame({"site": [f"s{j % 4}" for j in range(N)], "y": (x > 0).astype(int), "x": x.round(3), **columns})


def read(tmp_path: Path, table: pd.DataFrame, **said: object) -> TrainingTable:
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    return read_training_table(path, label="y", environment="site", choices=ColumnChoices(**said))  # type: ignore[arg-type]


def kinds(table: TrainingTable) -> dict[str, str]:
    return {feature.name: feature.kind for feature in table.schema.features}


def test_a_code_is_named_with_its_count_and_believed_only_when_told_so(tmp_path: Path) -> None:
    crp = with_codes(CRP, -999)
    table = read(tmp_path, frame(crp=crp))
    (note,) = [note for note in table.notes if "'crp'" in note]
    assert note.startswith(f"Column 'crp' has -999 in 40 of {N} rows, apart from its other values (")
    assert "--numeric crp" in note
    assert "--missing -999" in note
    np.testing.assert_array_equal(np.isnan(table.columns.values["crp"]), crp == -999)
    believed = read(tmp_path, frame(crp=crp), numeric=("crp",))
    np.testing.assert_array_equal(believed.columns.values["crp"], crp)
    assert not any("'crp'" in note for note in believed.notes)


def test_a_value_that_the_user_calls_missing_is_so_in_every_column(tmp_path: Path) -> None:
    rows = np.arange(N) < 2
    columns = {
        "a": np.where(rows, -5, AGES),
        "b": np.where(rows, "-5.0", np.resize(["z", "-5.01", "-50"], N)),
        "c": np.where(rows, "lost", "found"),
    }
    table = read(tmp_path, frame(**columns, d=AGES), missing=("-5", "lost"))
    assert np.isnan(table.columns.values["a"][:2]).all()
    assert table.columns.values["c"].null_count == 2
    assert table.columns.values["b"].null_count == 2, "-5.0 is the same number"
    assert table.schema.missing == ("-5", "lost")


IDENTIFIERS = {
    "object_number": np.random.default_rng(2).integers(1, 10**6, N),
    "SampleNr": np.random.default_rng(2).permutation(5 * N)[:N],
    "case_no": np.random.default_rng(2).permutation(5 * N)[:N],
    "entry": np.sort(np.random.default_rng(3).permutation(2 * N)[:N]) + 17,
    "which": np.random.default_rng(4).integers(1, N + 1, N),
    "long": [123456789012345678 + 1000 * (j * 7919 % 400) for j in range(N)],
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_whole_numbers_that_name_rows_are_no_feature(name: str, tmp_path: Path) -> None:
    """`which` is 1, ..., N drawn with replacement: 63 % of its values are different."""
    table = read(tmp_path, frame(**{name: IDENTIFIERS[name]}))
    assert name in table.schema.dropped
    assert name in table.schema.identifiers, "it is copied into predictions"
    assert kinds(read(tmp_path, frame(**{name: IDENTIFIERS[name]}), numeric=(name,)))[name] == "numeric"


MEASURED = {
    "age": AGES,
    "platelets": np.random.default_rng(2).normal(250_000, 60_000, N).round(),
    "number_of_steps": np.random.default_rng(2).lognormal(8.5, 0.6, N).round(),
    "cell number": np.random.default_rng(2).normal(5_000, 1500, N).round(),
    "income": np.random.default_rng(2).lognormal(10, 0.7, N).round(),
    "income sorted": np.sort(np.random.default_rng(2).lognormal(10, 0.7, N).round()),
    "year": np.random.default_rng(2).integers(1950, 2025, N),
    "zip": np.random.default_rng(2).choice([10115, 20095, 80331, 50667], N),
    "population": np.random.default_rng(2).choice([20_310_415, 19_990_117, 20_051_233, 21_777_231], N),
}


@pytest.mark.parametrize("name", MEASURED)
def test_whole_numbers_that_measure_something_stay_features(name: str, tmp_path: Path) -> None:
    assert kinds(read(tmp_path, frame(**{name: MEASURED[name]})))[name] == "numeric"


def test_days_written_without_dashes_are_dates(tmp_path: Path) -> None:
    days = pd.date_range("2019-11-01", periods=N).strftime("%Y%m%d")
    for values in (days, days.astype(int)):
        assert "dates" in read(tmp_path, frame(seen=values)).schema.dropped["seen"]
    assert kinds(read(tmp_path, frame(seen=days), numeric=("seen",)))["seen"] == "numeric"


def test_numbers_that_are_filled_up_with_zeros_are_names(tmp_path: Path) -> None:
    table = read(
        tmp_path, frame(zip=[f"{j * 37 % 90:05d}" for j in range(N)], agent=["007", "12", "113", "008"] * (N // 4))
    )
    assert kinds(table)["zip"] == "categorical"
    assert any("'agent'" in note and "filled up with zeros, such as '007'" in note for note in table.notes)
    told = read(tmp_path, frame(zip=[f"{j * 37 % 90:05d}" for j in range(N)]), numeric=("zip",))
    assert kinds(told)["zip"] == "numeric"
    plain = read(tmp_path, frame(age=["05", *map(str, AGES[1:])], share=[f"0.{j % 90}" for j in range(N)]))
    assert kinds(plain) == {"x": "numeric", "age": "numeric", "share": "numeric"}, "one slip makes no names"


def test_few_whole_numbers_are_asked_about_in_one_sentence(tmp_path: Path) -> None:
    table = read(tmp_path, frame(ward=RNG.integers(1, 4, N), pain=RNG.integers(0, 10, N), sex=RNG.integers(1, 3, N)))
    assert (
        "Columns 'ward', 'pain' hold few different whole numbers and are taken as numbers; where these are codes of "
        in (" ".join(table.notes))
    )
    told = read(tmp_path, frame(ward=RNG.integers(1, 4, N)), categorical=("ward",))
    assert kinds(told)["ward"] == "categorical"
    assert not told.notes


def test_texts_in_a_column_that_is_said_to_be_numeric_are_missing(tmp_path: Path) -> None:
    dose = ["high" if j % 3 == 0 else str(j % 9) for j in range(N)]
    assert kinds(read(tmp_path, frame(dose=dose)))["dose"] == "categorical"
    table = read(tmp_path, frame(dose=dose), numeric=("dose",))
    assert np.isnan(table.columns.values["dose"]).sum() == len([d for d in dose if d == "high"])
    with pytest.raises(ValueError, match=r"'dose' of .* is said to be numeric, but none of its values is a number"):
        read(tmp_path, frame(dose="high"), numeric=("dose",))


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"categorical": ("x",), "numeric": ("x",)}, "both categorical and numeric"),
        ({"categorical": ("y",)}, "is the label or the environment"),
        ({"numeric": ("X",)}, "Did you mean 'x'"),
        ({"positive": "2"}, "the positive class is one of two: '2' is not"),
    ],
)
def test_what_contradicts_itself_or_the_table_is_refused(tmp_path: Path, said: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read(tmp_path, frame(), **said)


@pytest.mark.parametrize(
    ("classes", "positive"),
    [
        (("control", "case"), "case"),
        (("nein", "ja"), "ja"),
        (("sick", "well"), "sick"),
        (("alive", "dead"), "dead"),
        (("+", "-"), "+"),
        (("0", "1"), "1"),
        (("-1", "1"), "1"),
        (("True", "False"), "true"),
        (("benign", "malignant"), "malignant"),
        (("healthy", "sepsis"), "sepsis"),
    ],
)
@pytest.mark.parametrize("is_frequent", [False, True])
def test_the_positive_class_is_the_one_that_a_clinician_means(
    tmp_path: Path, classes: tuple[str, str], positive: str, is_frequent: bool
) -> None:
    first = 3 if is_frequent else 1
    y = [classes[0] if j % 4 < first else classes[1] for j in range(N)]
    table = read(tmp_path, frame(z=AGES).assign(y=y, site=[f"s{j // 4 % 4}" for j in range(N)]))
    assert str(table.classes[1]).lower() == positive
    assert table.contents[0].endswith(f"; {table.classes[1]} is the positive one.")


def test_otherwise_it_is_the_rarer_one_and_the_user_may_say(tmp_path: Path) -> None:
    y = np.where(np.arange(N) % 5 == 0, "A", "B")
    table = read(tmp_path, frame().assign(y=y))
    assert table.classes.tolist() == ["B", "A"]
    assert "A is the positive one (the rarer of the two; --positive says otherwise)" in table.contents[0]
    told = read(tmp_path, frame().assign(y=y), positive="B")
    assert told.classes.tolist() == ["A", "B"]
    assert read(tmp_path, frame().assign(y=np.where(y == "A", 1, 2))).classes.tolist() == [2, 1]


def test_a_minus_is_a_finding_beside_a_plus_and_missing_elsewhere(tmp_path: Path) -> None:
    signs = ["+", "-", "-", "+", "-"] * (N // 5)
    table = read(
        tmp_path,
        frame(smear=signs, grade=["++", "-", "+", "-", "+++"] * (N // 5), dose=["1", "-", "2"] * 666 + ["1", "2"]),
    )
    assert kinds(table) == {"x": "numeric", "smear": "boolean", "grade": "categorical", "dose": "numeric"}
    assert table.columns.values["smear"][:3].tolist() == [1, 0, 0]
    assert table.schema.signs == ("smear", "grade")
    assert np.isnan(table.columns.values["dose"]).sum() == 666


def test_a_class_that_says_unknown_is_remarked_on(tmp_path: Path) -> None:
    y = np.where(np.arange(N) < 30, "unknown", np.where(np.arange(N) % 3 == 0, "yes", "no"))
    table = read(tmp_path, frame().assign(y=y))
    assert table.notes[0].startswith("Check label 'y': 'unknown' (30 rows) is a class of its own here; where it means")
    coded = read(tmp_path, frame().assign(y=np.where(y == "unknown", "-999", np.where(y == "yes", "1", "0"))))
    assert coded.notes[0].startswith("Check label 'y': '-999' (30 rows) is a class of its own here; where it means")
    told = read(tmp_path, frame().assign(y=y), missing=("unknown",))
    assert told.notes == (f"30 of {N} rows have no label and are left out.",)
    assert told.classes.tolist() == ["no", "yes"]


def test_columns_are_listed_by_kind_and_the_list_is_cut(tmp_path: Path) -> None:
    many = {f"c{j}": RNG.normal(size=N).round(3) for j in range(200)}
    line = read(tmp_path, frame(ward=["a", "b", "c", "d", "e"] * (N // 5), **many)).contents[2]
    assert line == "Columns that are used: 201 numeric (x, c0, c1, c2, c3, c4 and 195 more); 1 categorical (ward)."
