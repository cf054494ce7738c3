"""The tests say what scipy says, and do not cry wolf."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eber.evaluation.significance import compare_with_reference


def by_seed(values: np.ndarray) -> dict[int, float]:
    return dict(enumerate(values.tolist()))


def draw(seed: int, n: int = 8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=n)  # the luck of each seed's data, which all methods share
    return {method: data + rng.normal(size=n) for method in ("EBER", "ERM", "IRM", "Fishr")}


@pytest.mark.parametrize("higher_is_better", [False, True])
def test_p_values_and_correction_equal_scipys(higher_is_better: bool) -> None:
    scores = draw(0)
    comparisons = compare_with_reference(
        {name: by_seed(v) for name, v in scores.items()}, "EBER", higher_is_better=higher_is_better
    )
    side = "greater" if higher_is_better else "less"
    raw = [stats.ttest_rel(scores["EBER"], scores[name], alternative=side).pvalue for name in comparisons]
    assert [c.p_value for c in comparisons.values()] == pytest.approx(raw)
    assert [c.p_corrected for c in comparisons.values()] == pytest.approx(
        stats.false_discovery_control(raw, method="by")
    )


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_turning_the_metric_around_changes_nothing(seed: int) -> None:
    scores = draw(seed)
    lower = compare_with_reference({m: by_seed(v) for m, v in scores.items()}, "EBER", higher_is_better=False)
    higher = compare_with_reference({m: by_seed(-v) for m, v in scores.items()}, "EBER", higher_is_better=True)
    for method, comparison in lower.items():
        assert comparison.p_corrected == pytest.approx(higher[method].p_corrected)
        assert comparison.advantage == pytest.approx(higher[method].advantage)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_correction_never_lowers_a_p_value_and_intervals_hold_the_mean(seed: int) -> None:
    for comparison in compare_with_reference(
        {m: by_seed(v) for m, v in draw(seed).items()}, "EBER", higher_is_better=True
    ).values():
        assert comparison.p_corrected >= comparison.p_value
        assert comparison.low < comparison.advantage < comparison.high
        # A two-sided 95 % interval above zero is the one-sided test at 2.5 %.
        assert (comparison.low > 0) == (comparison.p_value < 0.025)


def test_nobody_is_better_and_the_tests_do_not_cry_wolf() -> None:
    """Under the null raw p < 5 % in 5 % of cases, any corrected p < 5 % in at most 5 %, and intervals hold zero."""
    repetitions, level = 600, 0.05
    raw = alarms = covered = 0
    for seed in range(repetitions):
        comparisons = compare_with_reference(
            {m: by_seed(v) for m, v in draw(seed, n=5).items()}, "EBER", higher_is_better=True
        )
        raw += comparisons["ERM"].p_value < level
        covered += comparisons["ERM"].low < 0 < comparisons["ERM"].high
        alarms += any(c.p_corrected < level for c in comparisons.values())
    assert stats.binomtest(raw, repetitions, level).pvalue > 0.001
    assert stats.binomtest(covered, repetitions, 0.95).pvalue > 0.001
    assert stats.binomtest(alarms, repetitions, level, alternative="greater").pvalue > 0.001


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(0)
    eber, erm = rng.normal(0.25, 0.01, 10), rng.normal(0.65, 0.01, 10)
    comparison = compare_with_reference({"EBER": by_seed(eber), "ERM": by_seed(erm)}, "EBER", higher_is_better=False)[
        "ERM"
    ]
    assert comparison.p_corrected < 1e-6
    assert comparison.advantage == pytest.approx(0.4, abs=0.02)


def test_pairing_by_seed_finds_what_spread_between_seeds_hides() -> None:
    luck = np.linspace(-10, 10, 10)
    better = luck + 0.1 + 0.01 * np.random.default_rng(0).normal(size=10)
    scores = {"EBER": by_seed(better), "ERM": by_seed(luck)}
    assert compare_with_reference(scores, "EBER", higher_is_better=True)["ERM"].p_corrected < 1e-6
    assert stats.ttest_ind(better, luck, alternative="greater").pvalue > 0.4


def test_only_common_seeds_are_compared() -> None:
    scores = {"EBER": {0: 1.0, 1: 2.0, 2: 3.5, 9: 100.0}, "ERM": {0: 0.9, 1: 1.7, 2: 3.3, 5: -100.0}}
    comparison = compare_with_reference(scores, "EBER", higher_is_better=True)["ERM"]
    assert comparison.n_units == 3
    assert comparison.advantage == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("other", "reason"),
    [({0: 1.5}, "one seed"), ({7: 1.0}, "no seed"), ({0: 1.0, 1: math.nan, 2: 2.0}, r"not finite for seeds \[1\]")],
)
def test_without_enough_to_go_by_there_is_no_p_value_but_a_reason(other: dict[int, float], reason: str) -> None:
    scores = {"EBER": {0: 1.0, 1: 2.0, 2: 4.0}, "ERM": other, "IRM": {0: 0.5, 1: 1.0, 2: 3.0}}
    comparisons = compare_with_reference(scores, "EBER", higher_is_better=True)
    assert math.isnan(comparisons["ERM"].p_value)
    assert math.isnan(comparisons["ERM"].p_corrected)
    assert re.search(reason, comparisons["ERM"].reason)
    # It is not counted in the family of the others either.
    assert comparisons["IRM"].p_corrected == pytest.approx(comparisons["IRM"].p_value)


def test_environments_are_named_where_they_are_the_units() -> None:
    scores = {"EBER": {"a": 1.0, "b": 2.0, "c": 4.0}, "ERM": {"a": 1.0, "b": math.nan, "c": 2.0}, "IRM": {"c": 1.0}}
    comparisons = compare_with_reference(scores, "EBER", higher_is_better=True, unit="environment")
    assert comparisons["ERM"].reason == "scores are not finite for environments ['b']"
    assert comparisons["IRM"].reason == "one environment cannot show a spread; run at least two"


def test_seeds_that_change_nothing_prove_nothing() -> None:
    """A deterministic method differs from another by the same amount each time; t would be infinite."""
    scores = {"EBER": dict.fromkeys(range(5), 0.3), "ERM": dict.fromkeys(range(5), 0.2)}
    comparison = compare_with_reference(scores, "EBER", higher_is_better=True)["ERM"]
    assert math.isnan(comparison.p_value)
    assert comparison.advantage == pytest.approx(0.1)
    assert "same for every seed" in comparison.reason


def test_equal_scores_are_no_evidence() -> None:
    values = {0: 0.1 + 0.2, 1: 0.7}
    comparison = compare_with_reference({"EBER": values, "ERM": {0: 0.3, 1: 0.7}}, "EBER", higher_is_better=True)["ERM"]
    assert comparison.p_value == comparison.p_corrected == 1.0


def test_a_missing_reference_is_named() -> None:
    with pytest.raises(ValueError, match="'EBER'; there are ERM"):
        compare_with_reference({"ERM": {0: 1.0}}, "EBER", higher_is_better=True)
