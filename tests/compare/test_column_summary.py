"""A column that stops working somewhere is named, and a small environment is not blamed for being small."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eber.compare.column_summary import summarise_columns


def kept(values: dict[str, float], error: float = 0.01) -> dict[str, list[dict[str, Any]]]:
    """One column with these importances by fold."""
    return {
        fold: [
            {
                "importance_columns": np.array(["age"]),
                "importance": np.full((1, 3), value),
                "importance_error": np.array([error]),
            }
        ]
        for fold, value in values.items()
    }


WORKS = {"a": 0.2, "b": 0.22, "c": 0.18, "d": 0.21, "e": 0.19}


def test_a_column_that_stops_working_is_named_with_its_environment() -> None:
    (column,) = summarise_columns(kept({**WORKS, "f": -0.02}))
    assert column.stops_in == ("f",)
    assert math.isclose(column.mean, np.mean([*WORKS.values(), -0.02]))


def test_a_column_that_works_everywhere_is_not() -> None:
    (column,) = summarise_columns(kept({**WORKS, "f": 0.15}))
    assert column.stops_in == ()
    assert column.matters


def test_an_environment_that_is_too_small_to_tell_is_not_blamed() -> None:
    (column,) = summarise_columns({**kept(WORKS), **kept({"f": -0.02}, error=0.1)})
    assert column.stops_in == ()


def test_a_column_that_works_nowhere_does_not_stop() -> None:
    (column,) = summarise_columns(kept({"a": 0.01, "b": -0.01, "c": 0.0, "d": 0.005, "f": -0.2}))
    assert column.stops_in == ()
    assert not column.matters


def test_two_environments_are_too_few_to_say_how_it_varies() -> None:
    (column,) = summarise_columns(kept({"a": 0.2, "b": 0.1}))
    assert math.isnan(column.low)
    assert not column.matters
