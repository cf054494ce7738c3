"""What the page advises follows from the scores: a winner, a tie, nothing better than the average rate, too few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from eber.compare.average_rate import compare_with_average_rate
from eber.compare.record import ComparisonRecord
from eber.compare.summary import ComparisonSummary, LeaderTest, MethodSummary
from eber.evaluation.metrics import METRICS, find_metric
from eber.report import use_answers as use

FOLDS = tuple("abcdef")
COUNTS = {fold: {"0": 60 + 5 * j, "1": 40 - 3 * j} for j, fold in enumerate(FOLDS)}


def record(folds: tuple[str, ...] = FOLDS) -> ComparisonRecord:
    """Environments with these numbers of rows, each a fold."""
    content: dict[str, Any] = dict.fromkeys(ComparisonRecord.__dataclass_fields__)
    content |= {"classes": ["0", "1"], "environments": COUNTS, "folds": {fold: [fold] for fold in folds}}
    return ComparisonRecord(**content)


def row(method: str, scores: list[float], p: float | None = None) -> MethodSummary:
    """A method with these NLLs, and the leader's test against it."""
    by_fold = {fold: dict.fromkeys(METRICS, score) for fold, score in zip(FOLDS, scores, strict=False)}
    test = None if p is None else LeaderTest(6, 0.1, 0.0, 0.2, p)
    means = dict.fromkeys(METRICS, float(np.mean(scores)))
    return MethodSummary(method, by_fold, means, 0.0, 1.0, 1.0, {"EBER": 3}.get(method, 0), test)


def summary(*rows: MethodSummary, adapted: MethodSummary | None = None, folds: int = 6) -> ComparisonSummary:
    """All of them, best first."""
    return ComparisonSummary(find_metric("nll"), rows, adapted, FOLDS[:folds], 1, True)


def average() -> list[float]:
    """The NLL of the others' share of events, by hand."""
    scores = []
    for fold in FOLDS:
        others = [COUNTS[name] for name in FOLDS if name != fold]
        p = sum(c["1"] for c in others) / sum(c["0"] + c["1"] for c in others)
        y = [0] * COUNTS[fold]["0"] + [1] * COUNTS[fold]["1"]
        scores.append(float(log_loss(y, [p] * len(y))))
    return scores


def test_the_average_rate_is_that_of_the_other_environments() -> None:
    found = compare_with_average_rate(summary(row("EBER", [0.5] * 6)), record())
    assert list(found.by_fold.values()) == pytest.approx(average())


def test_a_table_of_noise_is_called_that() -> None:
    noise = [a + d for a, d in zip(average(), [-0.03, 0.02, -0.02, 0.01, -0.02, 0.01], strict=True)]
    given = summary(row("EBER", noise), row("ERM", [value + 0.01 for value in noise], p=0.5))
    found = compare_with_average_rate(given, record())
    assert use.badge(given, found) == use.Badge("Nothing better than the average rate", "bad")
    assert "no method is significantly better" in use.reference(given, found)


def test_a_winner_and_a_tie_are_told_apart() -> None:
    good = [a - 0.2 - 0.01 * j for j, a in enumerate(average())]
    worse = [value + 0.1 for value in good]
    for p, badge in ((0.001, "Clear winner"), (0.3, "Tie")):
        given = summary(row("EBER", good), row("ERM", worse, p=p))
        assert use.badge(given, compare_with_average_rate(given, record())).text == badge


def test_the_badge_says_too_few_where_the_verdict_does() -> None:
    ahead = [a - gain for a, gain in zip(average(), [0.6, 0.01, 0.5, 0.01, 0.02, 0.02], strict=True)]
    rate = row("No model", average(), p=0.2)
    assert rate.test is not None
    given = summary(row("EBER", ahead), replace(rate, test=replace(rate.test, low=0.01)))
    found = compare_with_average_rate(given, record())
    assert found.beaten_by == []
    assert use.badge(given, found).text == "Too few environments to be sure"
    assert given.verdict.startswith("Too few environments to be sure")
    assert "too few for a test" in use.reference(given, found)


def test_two_environments_are_not_enough() -> None:
    given = summary(row("EBER", [0.1, 0.2]), row("ERM", [0.3, 0.4], p=0.01), folds=2)
    found = compare_with_average_rate(given, record(FOLDS[:2]))
    assert use.badge(given, found).text == "Not enough environments"
    assert "cannot show" in use.reference(given, found)


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
