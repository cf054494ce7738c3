"""Quasars and stars: filters, coordinates, environments, and errors that say where."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.quasar import load_quasar, most_shifted_environment


def sky(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Good objects all over the sky."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({band: rng.uniform(15, 21, n).round(5) for band in "ugriz"})
    return table.assign(
        **{"class": rng.choice(["QSO", "STAR"], n), "ra": rng.uniform(0, 360, n), "dec": rng.uniform(-90, 90, n)}
    )


def write(table: pd.DataFrame, path: Path, first_line: str = "") -> Path:
    path.write_text(first_line + table.to_csv(index=False))
    return path


def test_features_are_adjacent_colours_and_r(tmp_path: Path) -> None:
    table = sky()
    data = load_quasar(write(table, tmp_path / "sky.csv"))
    assert data.feature_names == ("u-g", "g-r", "r-i", "i-z", "r")
    np.testing.assert_allclose(data.X[:, 0], table["u"] - table["g"])
    np.testing.assert_allclose(data.X[:, 3], table["i"] - table["z"])
    np.testing.assert_allclose(data.X[:, 4], table["r"])
    np.testing.assert_array_equal(data.y, table["class"] == "QSO")


def test_what_is_no_good_measurement_of_a_quasar_or_star_is_dropped(tmp_path: Path) -> None:
    table = sky(60).assign(zWarning=0, clean=1, mode=1)
    table.loc[0, "class"] = "GALAXY"
    table.loc[1, "r"] = 13.99
    table.loc[2, "r"] = 22.01
    table.loc[3, "u"] = -9999.0
    table.loc[4, "z"] = np.nan
    table.loc[5, "zWarning"] = 4
    table.loc[6, "clean"] = 0
    table.loc[7, "mode"] = 2
    table.loc[8, "r"] = 14.0
    table.loc[9, "r"] = 22.0
    data = load_quasar(write(table, tmp_path / "sky.csv"))
    np.testing.assert_allclose(data.extra["ra"], table["ra"][8:])


def test_a_skyserver_export_is_read_whatever_its_capitals(tmp_path: Path) -> None:
    table = sky(50)
    plain = load_quasar(write(table, tmp_path / "plain.csv"))
    export = table.assign(objid=np.arange(50) + 1237648720142532608).rename(columns={"class": "Class", "ra": "RA"})
    path = tmp_path / "export.csv.gz"
    path.write_bytes(gzip.compress(b"#Table1\n" + export.rename(columns=str.upper).to_csv(index=False).encode()))
    data = load_quasar(path)
    np.testing.assert_array_equal(data.X, plain.X)
    np.testing.assert_array_equal(data.identifiers, export["objid"])
    assert plain.identifiers is None


def test_latitude_environments_are_quintiles_of_the_distance_from_the_plane(tmp_path: Path) -> None:
    data = load_quasar(write(sky(), tmp_path / "sky.csv"))
    assert [str(name) for name in data.environment_names] == [f"b_q{k}" for k in range(1, 6)]
    previous = 0.0
    for name in data.environment_names:
        distance = np.abs(data.extra["b"][data.environments == name])
        assert len(distance) == 80
        assert distance.min() >= previous
        previous = distance.max()


def test_longitude_environments_are_steps_of_72_degrees(tmp_path: Path) -> None:
    data = load_quasar(write(sky(), tmp_path / "sky.csv"), binning="longitude")
    for name in data.environment_names:
        low, high = (int(edge) for edge in str(name).split("_")[1:])
        longitude = data.extra["l"][data.environments == name]
        assert high - low == 72
        assert np.all((low <= longitude) & (longitude < high))


def test_the_galactic_centre_is_where_it_belongs(tmp_path: Path) -> None:
    table = sky()
    table.loc[0, ["ra", "dec"]] = 266.405, -28.936
    galactic = load_quasar(write(table, tmp_path / "sky.csv")).extra
    assert min(galactic["l"][0], 360 - galactic["l"][0]) < 0.01
    assert abs(galactic["b"][0]) < 0.01


def test_the_most_shifted_environment_has_the_prevalence_farthest_from_the_rest() -> None:
    environments = np.repeat(["a", "b", "c"], 10)
    y = np.concatenate([np.arange(10) < 5, np.arange(10) < 6, np.arange(10) < 1]).astype(int)
    data = MultiEnvironmentData(np.zeros((30, 1)), y, environments)
    assert most_shifted_environment(data) == "c"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("u", "bright", r"line 5, column 'u': 'bright' is not a number"),
        ("ra", 400.0, r"line 5, column 'ra': 400\.0 is not between 0 and 360"),
        ("dec", -91.0, r"line 5, column 'dec'"),
        ("class", "PLANET", r"line 5, column 'class': 'PLANET'"),
        ("g", -3.0, r"line 5, column 'g': -3\.0 is not between"),
    ],
)
def test_a_wrong_cell_is_reported_with_line_and_column(
    tmp_path: Path, column: str, value: object, message: str
) -> None:
    table = sky(30).astype({column: object})
    table.loc[3, column] = value
    with pytest.raises(ValueError, match=message):
        load_quasar(write(table, tmp_path / "sky.csv"))


def test_line_numbers_count_the_line_that_skyserver_puts_first(tmp_path: Path) -> None:
    table = sky(30).astype({"u": object})
    table.loc[3, "u"] = "bright"
    with pytest.raises(ValueError, match="line 6"):
        load_quasar(write(table, tmp_path / "sky.csv", "#Table1\n"))


def test_a_missing_and_a_repeated_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column 'dec'"):
        load_quasar(write(sky().drop(columns="dec"), tmp_path / "sky.csv"))
    with pytest.raises(ValueError, match="'z' more than once"):
        load_quasar(write(sky().assign(Z=0.5), tmp_path / "sky.csv"))


@pytest.mark.parametrize("identifier", ["specObjID", "objID"])
def test_a_repeated_object_is_reported(tmp_path: Path, identifier: str) -> None:
    table = sky(30).assign(**{identifier: [*range(29), 7]})
    with pytest.raises(ValueError, match=f"line 31, column '{identifier.lower()}': '7' was already on line 9"):
        load_quasar(write(table, tmp_path / "sky.csv"))


def test_a_cut_off_download_is_reported_as_such(tmp_path: Path) -> None:
    content = gzip.compress(sky().to_csv(index=False).encode())
    path = tmp_path / "sky.csv.gz"
    for cut in (len(content) // 2, 15):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=r"sky\.csv\.gz.*cut off"):
            load_quasar(path)


def test_an_environment_with_one_class_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="environment 'b_q1' has only class 1"):
        load_quasar(write(sky().assign(**{"class": "QSO"}), tmp_path / "sky.csv"))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "astropy.coordinates", None)
    with pytest.raises(ImportError, match=r"astropy is needed .*: pip install 'eber\[data\]'"):
        load_quasar(write(sky(), tmp_path / "sky.csv"))


def test_the_real_table_has_the_known_prevalences(data_dir: Path) -> None:
    data = load_quasar(data_dir)
    assert len(data) == 38_768
    assert data.y.mean() == pytest.approx(0.464, abs=5e-4)
    prevalence = [data.y[data.environments == name].mean() for name in data.environment_names]
    np.testing.assert_allclose(prevalence, [0.287, 0.468, 0.496, 0.535, 0.532], atol=5e-4)
    assert most_shifted_environment(data) == "b_q1"
