"""Sepsis: the summaries against a plain loop, the exclusions, the environments, and three ways to store the records."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

from eber.datasets.sepsis import FEATURES, MEASUREMENTS, MissingnessFilter, load_sepsis, sepsis_preprocessing
from eber.datasets.sepsis_records import COLUMNS


def stay(rng: np.random.Generator, hours: int, onset: int | None = None, unit: int | None = None) -> pd.DataFrame:
    """Hourly records; `onset` is the hour at which the label is set, from 0."""
    table = pd.DataFrame(rng.normal(80, 10, (hours, len(COLUMNS))).round(2), columns=list(COLUMNS))
    measured = list(MEASUREMENTS)
    table[measured] = table[measured].mask(rng.random((hours, len(measured))) < 0.7)
    return table.assign(
        Age=round(rng.uniform(20, 90), 2),
        Gender=rng.integers(2),
        Unit1=np.nan if unit is None else float(unit == 1),
        Unit2=np.nan if unit is None else float(unit == 2),
        HospAdmTime=-3.5,
        ICULOS=np.arange(1, hours + 1),
        SepsisLabel=0 if onset is None else (np.arange(hours) >= onset).astype(int),
    )


@pytest.fixture
def stays() -> dict[str, pd.DataFrame]:
    """In each of the six environments, one stay that becomes septic after the first day and one that does not."""
    rng = np.random.default_rng(0)
    table = {}
    for source, first in [("A", 1), ("B", 100_001)]:
        for k, unit in enumerate([1, 2, None]):
            table[f"training_set{source}/p{first + 2 * k:06d}"] = stay(rng, 40, onset=30, unit=unit)
            table[f"training_set{source}/p{first + 2 * k + 1:06d}"] = stay(rng, 10 + k, unit=unit)
    return table


def write_psv(stays: dict[str, pd.DataFrame], folder: Path) -> Path:
    for name, table in stays.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(folder / f"{name}.psv", sep="|", index=False, na_rep="NaN")
    return folder


def write_zip(stays: dict[str, pd.DataFrame], path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, table in stays.items():
            archive.writestr(f"{name}.psv", table.to_csv(sep="|", index=False, na_rep="NaN"))
    return path


def write_parquet(stays: dict[str, pd.DataFrame], path: Path) -> Path:
    parts = [table.assign(patient_id=Path(name).name, source=name[12]) for name, table in stays.items()]
    pd.concat(parts, ignore_index=True).to_parquet(path)
    return path


@given(
    hours=st.lists(st.integers(1, 40), min_size=1, max_size=5), seed=st.integers(0, 10**6), window=st.integers(1, 30)
)
@settings(max_examples=25, deadline=None)
def test_summaries_are_those_of_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, hours: list[int], seed: int, window: int
) -> None:
    rng = np.random.default_rng(seed)
    stays = {f"training_setA/p{k:06d}": stay(rng, n) for k, n in enumerate(hours)}
    path = write_parquet(stays, tmp_path_factory.mktemp("sepsis") / "stays.parquet")
    data = load_sepsis(path, hours=window, require_both_classes=False)
    for row, table in zip(data.X, stays.values(), strict=True):
        first = table.iloc[:window]
        for name in MEASUREMENTS:
            seen = first[name].dropna()
            expected = [np.nan] * 4 if seen.empty else [seen.iloc[-1], seen.mean(), seen.min(), seen.max()]
            start = FEATURES.index(f"{name}_last")
            np.testing.assert_allclose(row[start : start + 5], [*expected, first[name].isna().mean()], atol=1e-12)
        np.testing.assert_array_equal(row[-3:], first[["Age", "Gender", "HospAdmTime"]].iloc[0])


def test_folder_zip_and_parquet_give_the_same_data(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    parquet = load_sepsis(write_parquet(stays, tmp_path / "stays.parquet"))
    (tmp_path / "unpacked").mkdir()
    halves = tmp_path / "halves"
    halves.mkdir()
    for source in "AB":
        part = {name: table for name, table in stays.items() if f"set{source}" in name}
        write_zip(part, halves / f"training_set{source}.zip")
    for path in (
        write_psv(stays, tmp_path / "unpacked"),
        write_psv(stays, tmp_path / "nested" / "sepsis" / "training").parents[1],
        write_zip(stays, tmp_path / "stays.zip"),
        halves,
    ):
        data = load_sepsis(path)
        np.testing.assert_array_equal(data.X, parquet.X)
        np.testing.assert_array_equal(data.y, parquet.y)
        np.testing.assert_array_equal(data.environments, parquet.environments)
        np.testing.assert_array_equal(data.identifiers, parquet.identifiers)


def test_the_source_is_told_by_the_patient_number_where_no_folder_tells(
    tmp_path: Path, stays: dict[str, pd.DataFrame]
) -> None:
    flat = {name.replace("training_setA/", "training/").replace("training_setB/", ""): t for name, t in stays.items()}
    data = load_sepsis(write_psv(flat, tmp_path))
    assert data.identifiers is not None
    assert {str(name)[0] for name in data.environment_names} == {"A", "B"}
    np.testing.assert_array_equal(
        [name[0] for name in data.environments], np.where(data.identifiers > "p100000", "B", "A")
    )


def test_environments_are_source_and_unit(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    data = load_sepsis(write_psv(stays, tmp_path))
    expected = [f"{source}_{unit}" for source in "AB" for unit in ("unit1", "unit2", "unknown") for _ in range(2)]
    assert list(data.environments) == expected


@pytest.mark.parametrize(
    ("onset", "kept", "label"), [(0, False, None), (23, False, None), (24, True, 1), (None, True, 0)]
)
def test_sepsis_within_the_window_excludes_and_later_sepsis_is_the_label(
    tmp_path: Path, stays: dict[str, pd.DataFrame], onset: int | None, kept: bool, label: int | None
) -> None:
    stays["training_setA/p000099"] = stay(np.random.default_rng(1), 30, onset=onset, unit=1)
    data = load_sepsis(write_psv(stays, tmp_path))
    rows = np.flatnonzero(data.identifiers == "p000099")
    assert len(rows) == int(kept)
    if kept:
        assert data.y[rows[0]] == label


def test_max_per_source_takes_the_lowest_numbers_of_each(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    data = load_sepsis(write_psv(stays, tmp_path), max_per_source=2)
    assert data.identifiers is not None
    assert list(data.identifiers) == ["p000001", "p000002", "p100001", "p100002"]


def test_stays_that_end_within_the_window_can_be_left_out(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    """A stay of exactly 24 hours has no later; from either format."""
    rng = np.random.default_rng(1)
    stays = {name: table for name, table in stays.items() if len(table) > 24}
    stays["training_setA/p000098"], stays["training_setA/p000099"] = stay(rng, 24), stay(rng, 25)
    for path in (write_psv(stays, tmp_path / "psv"), write_parquet(stays, tmp_path / "stays.parquet")):
        every, longer = (
            load_sepsis(path, only_longer_stays=only, require_both_classes=False).identifiers for only in (False, True)
        )
        assert every is not None
        assert set(every) - set(longer if longer is not None else ()) == {"p000098"}


def test_one_class_in_an_environment_is_an_error_unless_allowed(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    del stays["training_setB/p100003"]
    write_psv(stays, tmp_path)
    with pytest.raises(ValueError, match="environment 'B_unit2' has only class 0"):
        load_sepsis(tmp_path)
    assert len(load_sepsis(tmp_path, require_both_classes=False)) == 11


def test_bad_records_are_refused_with_file_line_and_column(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    name = "training_setA/p000003"
    path = write_psv(stays, tmp_path) / f"{name}.psv"
    whole = path.read_text()
    lines = whole.splitlines()

    def load_with(content: str) -> None:
        path.write_text(content)
        load_sepsis(tmp_path)

    bad_cell = lines[4].split("|")
    bad_cell[2] = "warm"
    with pytest.raises(ValueError, match=r"p000003\.psv, line 5, column 'Temp': 'warm' is not a number"):
        load_with("\n".join([*lines[:4], "|".join(bad_cell), *lines[5:]]))
    with pytest.raises(ValueError, match=r"p000003\.psv, line 5 has 40 cells instead of 41"):
        load_with("\n".join([*lines[:4], lines[4].rsplit("|", 1)[0], *lines[5:]]))
    with pytest.raises(ValueError, match=r"p000003\.psv, line 41 has 12 cells instead of 41"):
        load_with("\n".join([*lines[:-1], "|".join(lines[-1].split("|")[:12])]))
    with pytest.raises(ValueError, match=r"p000003\.psv, line 5, column 'SepsisLabel': '1\.0' is neither 0 nor 1"):
        load_with("\n".join([*lines[:4], lines[4][:-1] + "1.0", *lines[5:]]))
    with pytest.raises(ValueError, match=r"p000003\.psv, line 5 has 40 cells instead of 41"):
        load_with("\n".join([*lines[:4], lines[4].replace("|", "", 1), "|" + lines[5], *lines[6:]]))
    with pytest.raises(ValueError, match=r"p000003\.psv has no column 'Resp'"):
        load_with(whole.replace("|Resp|", "|Respiration|"))
    with pytest.raises(ValueError, match=r"p000003\.psv has no hours"):
        load_with(lines[0] + "\n")
    with pytest.raises(ValueError, match="another order"):
        load_with(whole.replace("HR|O2Sat", "O2Sat|HR"))
    path.write_text(whole)
    with pytest.raises(ValueError, match="'p000003', record 1, column 'Gender': 3 is not between 0 and 1"):
        load_sepsis(write_psv({name: stays[name].assign(Gender=3)}, tmp_path))
    for column, value in (("Temp", -9999), ("HR", np.inf), ("Lactate", -9999), ("O2Sat", 1e6)):
        spoiled = stays[name].copy()
        spoiled[column] = spoiled[column].astype(float)
        spoiled.iloc[2, spoiled.columns.get_loc(column)] = value
        with pytest.raises(ValueError, match=f"'p000003', record 3, column '{column}': .* is not between"):
            load_sepsis(write_psv({name: spoiled}, tmp_path))
    with pytest.raises(ValueError, match="'p000003', record 1 is in Unit1 and Unit2"):
        load_sepsis(write_psv({name: stays[name].assign(Unit1=1, Unit2=1)}, tmp_path))
    with pytest.raises(ValueError, match="'p000003', record 2, column 'ICULOS': hours must rise, but 39 follows 40"):
        load_sepsis(write_psv({name: stays[name].assign(ICULOS=np.arange(63, 23, -1) - 23)}, tmp_path))
    with pytest.raises(ValueError, match="patient 'p000003' twice"):
        load_sepsis(write_psv({name: stays[name], "copy/p000003": stays[name]}, tmp_path))


def test_bad_parquet_files_are_refused(tmp_path: Path, stays: dict[str, pd.DataFrame]) -> None:
    path = write_parquet(stays, tmp_path / "stays.parquet")
    table = pd.read_parquet(path)
    table.drop(columns="Lactate").to_parquet(path)
    with pytest.raises(ValueError, match="no column 'Lactate'"):
        load_sepsis(path)
    pd.concat([table, table.iloc[:3]]).to_parquet(path)
    with pytest.raises(ValueError, match=f"row {len(table) + 1}: patient 'p000001' occurs again"):
        load_sepsis(path)
    table.assign(SepsisLabel=2).to_parquet(path)
    with pytest.raises(ValueError, match="row 1, column 'SepsisLabel': 2 is neither 0 nor 1"):
        load_sepsis(path)
    table.assign(source="C").to_parquet(path)
    with pytest.raises(ValueError, match="'C' is neither 'A' nor 'B'"):
        load_sepsis(path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="damaged, cut off or no parquet file"):
        load_sepsis(path)


def test_a_missing_path_and_an_empty_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="eber data fetch sepsis"):
        load_sepsis(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"has no \.psv files"):
        load_sepsis(tmp_path)


def test_preprocessing_learns_from_the_training_rows_only() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(5, 3, (200, 3))
    X[:8, 0] = np.nan  # 4 %: kept
    X[:12, 1] = np.nan  # 6 %: dropped
    pipeline = sepsis_preprocessing().fit(X)
    new = np.array([[np.nan, 1.0, 5.0], [100.0, np.nan, np.nan]])
    result = pipeline.transform(new)
    assert result.shape == (2, 2)
    filled = np.where(np.isnan(X[:, 0]), np.nanmedian(X[:, 0]), X[:, 0])
    assert result[0, 0] == pytest.approx((np.nanmedian(X[:, 0]) - filled.mean()) / filled.std())
    assert result[1, 0] == pytest.approx((100 - filled.mean()) / filled.std())
    assert list(pipeline.get_feature_names_out(["a", "b", "c"])) == ["a", "c"]
    with pytest.raises(ValueError, match="every feature is missing in more than 5%"):
        sepsis_preprocessing().fit(np.where(np.arange(200)[:, None] < 50, np.nan, X))


def test_the_filter_is_a_proper_scikit_learn_transformer() -> None:
    check_estimator(MissingnessFilter(max_missing=0.5), on_skip=None)


def test_the_real_records_give_the_known_counts(data_dir: Path) -> None:
    data = load_sepsis(data_dir)
    found = {
        str(name): (int(np.sum(rows := data.environments == name)), round(100 * float(data.y[rows].mean()), 1))
        for name in data.environment_names
    }
    assert found == {
        "A_unit1": (5012, 4.9),
        "A_unit2": (5380, 2.5),
        "A_unknown": (9103, 6.3),
        "B_unit1": (6697, 2.4),
        "B_unit2": (6827, 4.0),
        "B_unknown": (5948, 3.0),
    }
    assert len(data) == 38_967
    train, held_out = data.split("A_unknown")
    assert sepsis_preprocessing().fit(train.X).transform(held_out.X).shape == (9103, 61)


def test_the_original_files_agree_with_the_parquet_file(data_dir: Path) -> None:
    folder = data_dir / "sepsis"
    sample = load_sepsis(folder / "physionet2019_sample_psv.zip")
    everything = load_sepsis(folder / "physionet2019_training.parquet")
    assert everything.identifiers is not None
    assert sample.identifiers is not None
    rows = np.searchsorted(everything.identifiers, sample.identifiers)
    np.testing.assert_array_equal(everything.identifiers[rows], sample.identifiers)
    np.testing.assert_array_equal(everything.X[rows], sample.X)
    np.testing.assert_array_equal(everything.y[rows], sample.y)
    np.testing.assert_array_equal(everything.environments[rows], sample.environments)
