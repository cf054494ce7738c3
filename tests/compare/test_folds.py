"""Environments are held out as the documentation says, and those that cannot be are named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eber.compare.folds import MAX_FOLDS, MIN_ROWS, plan_folds


def table(sizes: dict[str, int], one_class: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    environments = np.repeat(list(sizes), list(sizes.values()))
    y = np.arange(len(environments)) % 2
    y[np.isin(environments, one_class)] = 0
    return y, environments


def test_each_environment_is_held_out_alone() -> None:
    plan = plan_folds(*table({"a": 30, "b": 40, "c": 50}))
    assert plan.folds == {"a": ("a",), "b": ("b",), "c": ("c",)}
    assert plan.remarks == ()


def test_small_environments_are_held_out_together_or_not_at_all() -> None:
    together = plan_folds(*table({"a": 30, "b": MIN_ROWS - 1, "c": MIN_ROWS - 1}))
    assert together.folds["2 small environments"] == ("b", "c")
    alone = plan_folds(*table({"a": 30, "b": 30, "c": 5}))
    assert "c" not in alone.folds
    assert "c: fewer than" in alone.remarks[0]


def test_an_environment_of_one_class_is_held_out_and_named() -> None:
    plan = plan_folds(*table({"a": 30, "b": 30, "c": 30}, one_class=("b",)))
    assert "b" in plan.folds
    assert any(remark.startswith("b: all rows are of one class") for remark in plan.remarks)


def test_an_environment_with_a_class_of_its_own_cannot_be_held_out() -> None:
    y, environments = table({"a": 30, "b": 30, "c": 30})
    y[environments == "c"] = 2
    plan = plan_folds(y, environments)
    assert set(plan.folds) == {"a", "b"}
    assert any("c cannot be held out" in remark for remark in plan.remarks)


def test_one_environment_or_none_that_can_be_held_out_is_refused() -> None:
    with pytest.raises(ValueError, match="needs at least two"):
        plan_folds(*table({"a": 30}))
    with pytest.raises(ValueError, match="No environment can be held out"):
        plan_folds(*table({"a": 2, "b": 3}))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=MAX_FOLDS + 1, max_size=80))
def test_many_environments_are_dealt_whole_into_folds(sizes: list[int]) -> None:
    y, environments = table({f"e{j:03d}": size for j, size in enumerate(sizes)})
    plan = plan_folds(y, environments)
    members = [name for fold in plan.folds.values() for name in fold]
    assert len(plan.folds) <= MAX_FOLDS
    assert len(members) == len(set(members))
