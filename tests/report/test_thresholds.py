"""Sensitivity, specificity, predictive values and net benefit are those that one counts by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from eber.report.thresholds import Counts, count_at_thresholds, counts_as_json, share, threshold_lines, useful_range


def rows(seed: int = 0, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Events and probabilities, many of them exactly at a threshold."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.5, rng.integers(0, 101, n) / 100, rng.random(n))
    return rng.random(n) < p, p


@pytest.mark.parametrize("seed", range(3))
def test_counts_at_a_threshold_are_those_of_brute_force(seed: int) -> None:
    event, p = rows(seed)
    counts = count_at_thresholds("all", event, p)
    for percent in range(101):
        called = np.array([probability >= percent / 100 for probability in p])
        tp, fp = int((called & event).sum()), int((called & ~event).sum())
        fn, tn = int((~called & event).sum()), int((~called & ~event).sum())
        assert counts.measures(percent) == {
            "called": (tp + fp, len(p)),
            "sensitivity": (tp, tp + fn),
            "specificity": (tn, tn + fp),
            "ppv": (tp, tp + fp),
            "npv": (tn, tn + fn),
        }
        if percent < 100:
            odds = (percent / 100) / (1 - percent / 100)
            assert counts.net_benefit(percent) == pytest.approx(tp / len(p) - fp / len(p) * odds)
            assert counts.net_benefit_of_all(percent) == pytest.approx(event.mean() - (1 - event.mean()) * odds)
    assert math.isnan(counts.net_benefit(100))


def test_honest_probabilities_help_and_constant_ones_do_not() -> None:
    event, p = rows(n=4000)
    found = useful_range(count_at_thresholds("all", event, p))
    assert found is not None
    assert found[0] < 10
    assert found[1] > 80
    assert useful_range(count_at_thresholds("all", event, np.full(len(p), 0.3))) is None


def test_there_is_no_share_of_nothing() -> None:
    nobody = count_at_thresholds("one class", np.zeros(5, dtype=bool), np.full(5, 0.2))
    assert threshold_lines([nobody], 50)[0][2] == "–"
    assert share(0, 0) == "–"


def test_names_cannot_end_the_script_that_holds_them() -> None:
    none = np.zeros(101, dtype=np.int64)
    text = str(counts_as_json(["</script>"], [[Counts("</script><b>", 0, 1, none, none)]]))
    assert "<" not in text
    assert json.loads(text)["counts"][0][0]["name"] == "</script><b>"
