"""A frame in memory is read as the same table in a file is."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eber.tables.files import open_table
from eber.tables.training import read_training_table

SITES = {"site": ["a", "b"] * 20, "y": [0, 0, 1, 1] * 10}


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda frame: pa.Table.from_pandas(frame, preserve_index=False)])
def test_frames_of_every_kind_give_the_same_rows(kind: Any) -> None:
    frame = pd.DataFrame(
        {
            **SITES,
            "age": np.linspace(20, 90, 40),
            "lactate": [None, "<0.5", "1.5", "NA"] * 10,
            "step": pd.Categorical(["low", "high"] * 20, ["low", "high"], ordered=True),
        }
    )
    frame.loc[3, "age"] = np.nan
    one, other = (read_training_table(table, label="y", environment="site") for table in (frame, kind(frame)))
    assert one.schema == other.schema
    assert one.notes == other.notes
    for name, values in one.columns.values.items():
        np.testing.assert_array_equal(values, other.columns.values[name])


def test_nan_of_polars_is_missing_as_that_of_pandas_is() -> None:
    """Also as a label: seen to fail, a row of no class became one of class 'None'."""
    frame = pl.DataFrame({**SITES, "y": [0.0, 1.0, 1.0, float("nan")] * 10, "x": [1.0, float("nan")] * 20})
    table = read_training_table(frame, label="y", environment="site")
    assert len(table) == 30
    assert set(table.y) == {0, 1}


def test_an_index_of_pandas_is_no_column_and_doubled_names_are_told_apart() -> None:
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"], index=["x", "y"])
    assert open_table(frame).names == ("a", "a.2")


@pytest.mark.parametrize("kind", [lambda f: f, pl.from_pandas, lambda f: pa.Table.from_pandas(f)])
def test_categories_of_numbers_stay_categories(kind: Any) -> None:
    """A ward of number 2 is not twice the ward of number 1, where somebody has said so."""
    wards = pd.Series([1, 2, 3, 3] * 10)
    numbers = kind(pd.DataFrame({**SITES, "ward": wards}))
    categories = kind(pd.DataFrame({**SITES, "ward": wards.astype(str).astype("category")}))
    kinds = [
        read_training_table(table, label="y", environment="site").schema.features[0].kind
        for table in (numbers, categories, pd.DataFrame({**SITES, "ward": wards.astype("category")}))
    ]
    assert kinds == ["numeric", "categorical", "categorical"]


def fingerprint(table: Any) -> str:
    return open_table(table).fingerprint


def test_the_fingerprint_of_a_frame_is_that_of_the_file_it_would_be(tmp_path: Path) -> None:
    frame = pd.DataFrame(SITES)
    (content,) = open_table(frame).parts
    (tmp_path / "t.parquet").write_bytes(content)
    assert fingerprint(frame) == fingerprint(tmp_path / "t.parquet") == hashlib.sha256(content).hexdigest()
    assert fingerprint(frame) != fingerprint(frame.iloc[::-1])
    assert fingerprint(str(tmp_path / "t.parquet")) == fingerprint(tmp_path / "t.parquet"), "a path may be text"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (3, "A table is a path, or a DataFrame of pandas, polars or pyarrow; int is none of these"),
        ({"a": [1]}, "dict is none of these"),
        (pd.Series([1]), "Series is none of these"),
        (pl.Series([1]), "Series is none of these"),
        (pl.LazyFrame({"a": [1]}), "collect it first"),
        (pd.DataFrame({"a": [1, "x"]}), "Column 'a' of DataFrame holds values of several kinds"),
        (pd.DataFrame({"a": []}), "DataFrame has columns but no rows"),
        (pd.DataFrame(), "DataFrame has columns but no rows|no rows"),
    ],
)
def test_what_is_no_table_is_said_in_a_sentence(table: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says) as error:
        open_table(table).read()
    assert str(error.value).endswith(".")
