"""New rows that are unlike the training rows are remarked on, and rows that are like them are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eber.tables.preprocessing import Preprocessing
from eber.tables.schema import Feature, Schema
from eber.tables.training import FeatureColumns
from eber.tables.unlike_training import UnlikeTraining

FEATURES = (Feature("age", "numeric"), Feature("ward", "categorical"))


def columns(age: np.ndarray, ward: list[str | None]) -> FeatureColumns:
    return FeatureColumns({"age": age, "ward": pa.array(ward, type=pa.string())}, len(age))


@pytest.fixture
def trained() -> Preprocessing:
    """Ages from 17 to 98, of which one in fifty is missing; the ward is always known."""
    age = np.linspace(17, 98, 300)
    age[10:270:50] = np.nan
    return Preprocessing.fit(columns(age, ["a", "b"] * 150), Schema("y", "e", FEATURES, (), {}))


def remarks(trained: Preprocessing, *batches: FeatureColumns) -> list[str]:
    unlike = UnlikeTraining(trained)
    for batch in batches:
        unlike.count(batch)
    return unlike.sentences()


def test_an_age_in_days_is_remarked_on(trained: Preprocessing) -> None:
    days = columns(np.linspace(7000, 36_000, 80), ["a"] * 80)
    expected = "Column 'age': 80 of 80 rows lie beyond anything in training (17 to 98)."
    assert remarks(trained, days) == [expected]
    assert remarks(trained, *(days.select(np.arange(start, start + 20)) for start in range(0, 80, 20))) == [expected]


def test_columns_that_are_empty_are_remarked_on(trained: Preprocessing) -> None:
    assert remarks(trained, columns(np.full(80, np.nan), [None] * 80)) == [
        "Column 'age': 80 of 80 values are missing (2 % in training).",
        "Column 'ward': 80 of 80 values are missing (none in training).",
    ]


def test_one_row_is_enough_where_training_was_long(trained: Preprocessing) -> None:
    assert remarks(trained, columns(np.array([20_000.0]), [None])) == [
        "Column 'age': 1 of 1 row lies beyond anything in training (17 to 98).",
        "Column 'ward': 1 of 1 value is missing (none in training).",
    ]


def test_one_row_far_outside_is_enough_where_training_was_short() -> None:
    trained = Preprocessing.fit(columns(np.linspace(17, 98, 40), ["a", "b"] * 20), Schema("y", "e", FEATURES, (), {}))
    for age, remarked in ((98.5, 0), (20_000.0, 1), (-100.0, 1), (-1.7e308, 1)):
        assert len(remarks(trained, columns(np.array([age]), ["a"]))) == remarked


def test_millions_of_rows_are_judged_as_their_share_is(trained: Preprocessing) -> None:
    for share, remarked in ((0.04, 0), (0.06, 1)):
        unlike = UnlikeTraining(trained, 10_000_000, {"age": round(share * 10_000_000)})
        unlike.missing = {"age": 0, "ward": 0}
        assert len(unlike.sentences()) == remarked


@pytest.mark.parametrize("rows", [1, 5, 40, 400])
def test_rows_that_are_alike_are_seldom_remarked_on(rows: int) -> None:
    """Of 600 draws at most 2 % for the two columns together, and as many again for the luck of 600 draws."""
    rng = np.random.default_rng(rows)
    remarked = 0
    for _ in range(600):
        age = rng.lognormal(size=50 + rows)
        age[rng.random(len(age)) < 0.1] = np.nan
        everyone = columns(age, [None if missing else "a" for missing in rng.random(len(age)) < 0.1])
        schema = Schema("y", "e", FEATURES, (), {})
        trained = Preprocessing.fit(everyone.select(np.arange(50)), schema)
        remarked += bool(remarks(trained, everyone.select(np.arange(50, 50 + rows))))
    assert remarked <= 24


def test_a_model_without_these_figures_gives_no_remarks(trained: Preprocessing) -> None:
    old: list[Any] = [
        {key: value for key, value in entry.items() if key not in ("rows", "missing", "low", "high")}
        for entry in trained.to_json()
    ]
    assert remarks(Preprocessing.from_json(old), columns(np.full(80, 1e6), [None] * 80)) == []
