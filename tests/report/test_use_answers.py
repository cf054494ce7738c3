"""What the page advises follows from the scores: a winner, a tie, nothing better than the average rate, too few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eber.compare.summary import ComparisonSummary, LeaderTest, MethodSummary
from eber.evaluation.metrics import METRICS, find_metric
from eber.report import use_answers as use

FOLDS = tuple("abcdef")


def row(method: str, scores: list[float], p: float | None = None) -> MethodSummary:
    """A method with these NLLs, and the leader's test against it."""
    by_fold = {fold: dict.fromkeys(METRICS, score) for fold, score in zip(FOLDS, scores, strict=False)}
    test = None if p is None else LeaderTest(6, 0.1, 0.0, 0.2, p)
    means = dict.fromkeys(METRICS, float(np.mean(scores)))
    return MethodSummary(method, by_fold, means, 0.0, 1.0, 1.0, {"EBER": 3}.get(method, 0), test)


def summary(*rows: MethodSummary, adapted: MethodSummary | None = None, folds: int = 6) -> ComparisonSummary:
    """All of them, best first."""
    return ComparisonSummary(find_metric("nll"), rows, adapted, FOLDS[:folds], 1, True)


GOOD = [0.3, 0.32, 0.28, 0.3, 0.31, 0.29]


@pytest.mark.parametrize("leads", [True, False])
def test_a_table_of_noise_is_called_that(leads: bool) -> None:
    """Whether the row without a model leads, or is behind by no more than chance can do."""
    behind = [value + 0.01 for value in GOOD]
    rows = (
        (row("No model", GOOD), row("EBER", behind, p=0.5))
        if leads
        else (row("EBER", GOOD), row("No model", behind, p=0.06))
    )
    given = summary(*rows)
    assert use.badge(given) == use.Badge("Nothing better than the average rate", "bad")
    assert "no method is significantly better" in use.reference(given)
    assert f"NLL {0.3 if leads else 0.31:.3f}, and no" in use.reference(given), "of the row, not of another reckoning"


def test_a_winner_and_a_tie_are_told_apart() -> None:
    worse, rate = [value + 0.1 for value in GOOD], row("No model", [0.6] * 6, p=0.002)
    for p, badge in ((0.001, "Clear winner"), (0.3, "Tie")):
        given = summary(row("EBER", GOOD), row("ERM", worse, p=p), rate)
        assert use.badge(given).text == badge
        assert "NLL 0.600; EBER is significantly better (p = 0.002)" in use.reference(given)
    assert "ERM, which is advised and cannot be told from it, has 0.400" in use.reference(given)
    assert use.badge(summary(row("EBER", GOOD), rate)).text == "Better than the average rate"


def test_without_the_row_of_no_model_nothing_is_said_of_the_average_rate() -> None:
    """Methods chosen by name may leave it out: then the page says that it does not know."""
    given = summary(row("EBER", GOOD), row("ERM", [value + 0.1 for value in GOOD], p=0.001))
    assert use.badge(given).text == "Clear winner"
    assert use.badge(summary(row("EBER", GOOD))).text == "Compared with nothing"
    assert "better than giving everybody the average rate is not known: No model" in use.reference(given)


def test_the_badge_says_too_few_where_the_verdict_does() -> None:
    behind = [value + gain for value, gain in zip(GOOD, [0.6, 0.01, 0.5, 0.01, 0.02, 0.02], strict=True)]
    rate = row("No model", behind, p=0.2)
    assert rate.test is not None
    given = summary(row("EBER", GOOD), replace(rate, test=replace(rate.test, low=0.01)))
    assert use.badge(given).text == "Too few environments to be sure"
    assert given.verdict.startswith("Too few environments to be sure")
    assert "EBER does better in each of" in use.reference(given)
    assert "too few for a test" in use.reference(given)


def test_two_environments_are_not_enough() -> None:
    given = summary(row("EBER", [0.1, 0.2]), row("No model", [0.3, 0.4], p=0.01), folds=2)
    assert use.badge(given).text == "Not enough environments"
    assert "cannot show" in use.reference(given)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ([-0.1, -0.12, -0.09, -0.11, -0.1, -0.1], "Yes, for EBER"),
        ([0.1, 0.12, 0.09, 0.11, 0.1, 0.1], "No: "),
        ([0.1, -0.1, 0.05, -0.06, 0.02, -0.01], "There is no telling"),
    ],
)
def test_whether_to_adapt_is_answered_as_far_as_the_numbers_allow(change: list[float], says: str) -> None:
    plain = [0.5, 0.52, 0.48, 0.5, 0.51, 0.49]
    adapted = row("EBER", [a + d for a, d in zip(plain, change, strict=True)])
    answer = use.adaptation(summary(row("EBER", plain), adapted=adapted))
    assert answer.startswith(says)
    assert f"better in {sum(d < 0 for d in change)} of 6 held-out environments" in answer
    other = use.adaptation(summary(row("ERM", plain), row("EBER", plain, p=0.9), adapted=adapted))
    assert "ERM, which is advised here, has nothing to adapt" in other


def test_every_metric_is_spelled_out() -> None:
    assert all(metric.full_name and metric.meaning for metric in METRICS.values())
