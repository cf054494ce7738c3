"""Few fits serve every held-out environment, and none of them has seen what it judges or who it judges for."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from eber.compare.blocks import LEAST_JUDGED, blocks_for, folds_judged, lines_through, plan_blocks
from eber.compare.folds import plan_folds
from eber.tuning.search import MAX_FOLDS


@pytest.mark.parametrize("n", range(2, 14))
def test_every_two_environments_are_left_out_together_once(n: int) -> None:
    lines = lines_through(n)
    pairs = Counter(pair for line in lines for pair in combinations(line, 2))
    assert set(pairs) == set(combinations(range(n), 2))
    assert set(pairs.values()) == {1}
    assert max(Counter(unit for line in lines for unit in line).values()) <= MAX_FOLDS


def test_so_few_fits_are_enough() -> None:
    assert {n: len(lines_through(n)) for n in (4, 5, 6, 8, 9, 13, 20)} == {
        4: 6,
        5: 10,
        6: 9,
        8: 12,
        9: 12,
        13: 13,
        20: 13,
    }


@pytest.mark.parametrize("n", [14, 20, 31])
def test_more_environments_share_the_lines(n: int) -> None:
    lines = lines_through(n)
    together = {pair for line in lines for pair in combinations(line, 2)}
    assert together == set(combinations(range(n), 2))
    assert max(Counter(unit for line in lines for unit in line).values()) == MAX_FOLDS


def table(sizes: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    environments = np.repeat(list(sizes), list(sizes.values()))
    return np.arange(len(environments)) % 2, environments


def test_environments_that_are_only_trained_on_are_judged_in_too() -> None:
    plan = plan_folds(*table({"a": 30, "b": 30, "c": 30, "tiny": 6}))
    assert list(plan.folds) == ["a", "b", "c"]
    assert blocks_for(("a",), plan.blocks) == [("a", "b"), ("a", "c"), ("a", "tiny")]
    assert folds_judged(("a", "tiny"), plan.folds, plan.blocks) == [["a"]]


def test_environments_that_are_held_out_together_are_left_out_together() -> None:
    plan = plan_folds(*table({**dict.fromkeys("abcd", 30), "s1": 15, "s2": 15}))
    small = plan.folds["2 small environments"]
    own = blocks_for(small, plan.blocks)
    assert own
    assert all(set(small) <= set(block) or set(small).isdisjoint(block) for block in plan.blocks)


def test_a_block_leaves_two_environments_and_every_class() -> None:
    assert plan_folds(*table(dict.fromkeys("abc", 30))).blocks == (), "a fit without two of three has a single one"
    y, environments = table(dict.fromkeys("abcdefgh", 30))
    y[np.isin(environments, ["a", "b"])] = 2
    y[~np.isin(environments, ["a", "b"]) & (y == 2)] = 0
    blocks = plan_folds(y, environments).blocks
    assert len(blocks) == 11
    assert not any({"a", "b"} <= set(block) for block in blocks), "without both nothing is left of a class"


def test_a_fold_that_few_others_would_judge_for_is_searched_alone() -> None:
    y, environments = table(dict.fromkeys("abcd", 30))
    blocks = plan_blocks([("a",), ("b",), ("c",), ("d",)], y, environments)
    assert len(blocks_for(("a",), blocks)) == LEAST_JUDGED
    assert blocks_for(("a",), blocks[1:]) == []
