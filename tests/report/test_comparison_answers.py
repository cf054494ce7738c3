"""The sentences and charts of a comparison's page follow from its numbers."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from eber.evaluation.intervals import half_width
from eber.evaluation.metrics import find_metric
from eber.report import comparison_answers as answers
from eber.report.charts import Chart, label, new_figure


def held_out(proba: np.ndarray, labels: np.ndarray, ece: float) -> SimpleNamespace:
    """One method on one fold."""
    row = SimpleNamespace(method="EBER", means={"ece": ece})
    summary = SimpleNamespace(folds=("a",), recommended=row, rows=(row,))
    return SimpleNamespace(summary=summary, predictions=lambda method, fold: [(labels, proba)])


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Honest probabilities and labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return (rng.random(n) < p).astype(int), np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize("metric", ["nll", "accuracy", "brier", "auroc"])
def test_a_fold_is_as_unsure_as_scores_of_rows_drawn_anew(metric: str) -> None:
    """The interval's half width is 1.96 times the spread over many draws of as many rows."""
    labels, proba = drawn(400)
    scores = [find_metric(metric)(*drawn(400, seed), np.arange(2)) for seed in range(1, 301)]
    assert half_width(metric, labels, proba) == pytest.approx(1.96 * np.std(scores), rel=0.2)


def test_the_area_counts_ties_by_half() -> None:
    labels = np.array([0, 0, 1, 1, 0, 1])
    proba = np.array([0.2, 0.5, 0.5, 0.9, 0.7, 0.7])
    ranks, positive = stats.rankdata(proba), labels == 1
    above = (ranks[positive] - stats.rankdata(proba[positive])) / 3
    assert above.mean() == pytest.approx(roc_auc_score(labels, proba))
    assert half_width("auroc", labels, np.stack([1 - proba, proba], axis=1)) > 0


def test_scores_without_a_standard_error_have_no_interval() -> None:
    assert math.isnan(half_width("ece", *drawn(50)))
    assert math.isnan(half_width("auroc", np.zeros(5, dtype=int), np.full((5, 2), 0.5)))


def test_a_prediction_interval_holds_a_new_environment_nineteen_times_of_twenty() -> None:
    rng = np.random.default_rng(0)
    metric = find_metric("nll")
    hits = 0
    for _ in range(2000):
        scores = rng.normal(0.5, 0.05, 9)
        low, high = answers.prediction_interval(scores[:8].tolist(), metric)
        hits += low <= scores[8] <= high
    assert hits / 2000 == pytest.approx(0.95, abs=0.02)
    assert answers.prediction_interval([0.9, 0.99, 0.8], find_metric("auroc"))[1] == 1.0


def test_honest_probabilities_are_not_blamed_for_chance() -> None:
    labels, proba = drawn(300)
    chance = answers.chance_ece(held_out(proba, labels, 0.0), "EBER")  # type: ignore[arg-type]
    assert 0.02 < chance < 0.12
    assert answers.trust(held_out(proba, labels, chance)).startswith("As far as")  # type: ignore[arg-type]
    assert answers.trust(held_out(proba, labels, 3 * chance)).startswith("With care")  # type: ignore[arg-type]


def test_names_cannot_become_markup() -> None:
    assert label("<b>Ash & ford</b>") == "&lt;b&gt;Ash &amp; ford&lt;/b&gt;"
    figure = new_figure(100)
    figure.add_scatter(x=[1], y=[1], name="</script><b>")
    text = str(Chart("c", figure, "", (), ()).json)
    assert "<" not in text
    assert json.loads(text)["data"][0]["name"] == "</script><b>"
