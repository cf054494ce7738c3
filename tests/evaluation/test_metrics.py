"""Metrics agree with scikit-learn, with hand calculation, and with their own laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from eber.evaluation.metrics import METRICS, find_metric, reliability, score

CLASSES = np.array([0, 1])


def draw(seed: int, n_classes: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities; labels follow the probabilities, and every class occurs."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    y = np.array([rng.choice(n_classes, p=row) for row in proba])
    y[:n_classes] = np.arange(n_classes)
    return y, proba


seeds = st.integers(0, 10_000)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_metrics_equal_scikit_learns(n_classes: int) -> None:
    y, proba = draw(0, n_classes)
    ours = score(y, proba, np.arange(n_classes), METRICS)
    sk = sklearn.metrics
    one_hot = np.eye(n_classes)[y]
    assert ours["nll"] == pytest.approx(sk.log_loss(y, proba))
    assert ours["accuracy"] == sk.accuracy_score(y, proba.argmax(1))
    if n_classes == 2:
        assert ours["brier"] == pytest.approx(sk.brier_score_loss(y, proba[:, 1]))
        assert ours["auroc"] == pytest.approx(sk.roc_auc_score(y, proba[:, 1]))
        assert ours["auprc"] == pytest.approx(sk.average_precision_score(y, proba[:, 1]))
    else:
        assert ours["brier"] == pytest.approx(np.sum((proba - one_hot) ** 2) / len(y))
        assert ours["auroc"] == pytest.approx(sk.roc_auc_score(y, proba, multi_class="ovr"))
        assert ours["auprc"] == pytest.approx(sk.average_precision_score(one_hot, proba, average="macro"))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_certain_and_right_is_better_than_certain_and_wrong(name: str, n_classes: int) -> None:
    metric = find_metric(name)
    y = np.arange(30) % n_classes
    right, wrong = np.eye(n_classes)[y], np.eye(n_classes)[(y + 1) % n_classes]
    classes = np.arange(n_classes)
    assert metric.is_better(metric(y, right, classes), metric(y, wrong, classes))


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_relabelling_classes_changes_nothing(seed: int) -> None:
    """Names and order of classes are a convention; three classes, since AUPRC of two is of the second one."""
    y, proba = draw(seed, 3)
    order = np.array([2, 0, 1])
    names = np.array(["a", "b", "c"])
    assert score(names[y], proba[:, order], names[order], METRICS) == pytest.approx(
        score(y, proba, np.arange(3), METRICS)
    )


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_ece_is_at_most_the_root_of_brier(seed: int) -> None:
    """|E(y − p) in a bin| ≤ E|y − p| ≤ √E(y − p)², by Jensen twice."""
    y, proba = draw(seed, 2)
    scores = score(y, proba, CLASSES, ["ece", "brier"])
    assert 0 <= scores["ece"] <= math.sqrt(scores["brier"]) + 1e-12


@given(seeds, st.floats(0.2, 5.0))
@settings(max_examples=25, deadline=None)
def test_ranking_metrics_see_only_the_ranking(seed: int, power: float) -> None:
    y, proba = draw(seed, 2)
    p = proba[:, 1] ** power
    bent = np.column_stack([1 - p, p])
    names = ["auroc", "auprc"]
    assert score(y, bent, CLASSES, names) == pytest.approx(score(y, proba, CLASSES, names))


def test_a_row_with_probability_zero_costs_36_and_not_infinity() -> None:
    value = find_metric("nll")([0, 1], [[1.0, 0.0], [1.0, 0.0]], CLASSES)
    assert value == pytest.approx(-math.log(np.finfo(np.float64).eps) / 2, rel=1e-6)


def test_ece_by_hand() -> None:
    """Bins [0.2, 0.3) and [0.9, 1]: promised 0.2 and 0.95, came 0.5 and 1."""
    p = np.array([0.2, 0.2, 0.9, 1.0])
    value = find_metric("ece")([0, 1, 1, 1], np.column_stack([1 - p, p]), CLASSES)
    assert value == pytest.approx((2 * 0.3 + 2 * 0.05) / 4)


def test_ece_sees_errors_that_confidence_would_hide() -> None:
    """Where p = 0.2, 0.3 came, and where p = 0.8, 0.9: right on average over both, which share the confidence 0.8."""
    p = np.repeat([0.2, 0.8], 10)
    y = np.r_[np.ones(3), np.zeros(7), np.ones(9), np.zeros(1)]
    assert find_metric("ece")(y, np.column_stack([1 - p, p]), CLASSES) == pytest.approx(0.1)


def test_ece_of_calibrated_predictions_goes_to_zero() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=100_000)
    y = rng.uniform(size=p.size) < p
    assert find_metric("ece")(y, np.column_stack([1 - p, p]), [False, True]) < 0.01


def test_ece_of_many_classes_is_that_of_the_predicted_class() -> None:
    proba = np.tile([0.7, 0.2, 0.1], (10, 1))
    y = np.r_[np.zeros(5), np.full(5, 2)]
    assert find_metric("ece")(y, proba, [0, 1, 2]) == pytest.approx(0.2)


def test_reliability_counts_every_row_once_and_leaves_empty_bins_empty() -> None:
    y, proba = draw(3, 2)
    proba[:, 1] = np.clip(proba[:, 1], 0.5, 1.0)
    proba[:, 0] = 1 - proba[:, 1]
    curve = reliability(y, proba, CLASSES)
    assert curve.count.sum() == len(y)
    assert curve.count[:5].sum() == 0
    assert np.isnan(curve.promised[:5]).all()


@pytest.mark.parametrize("name", ["auroc", "auprc"])
def test_ranking_metrics_of_one_class_are_nan_and_silent(name: str) -> None:
    assert math.isnan(find_metric(name)([0, 0], [[0.5, 0.5], [0.4, 0.6]], CLASSES))


def test_float32_probabilities_are_taken_as_they_are() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    proba = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert math.isfinite(find_metric("nll")(np.zeros(50), proba, [0, 1, 2]))


@pytest.mark.parametrize(
    ("y", "proba", "classes", "message"),
    [
        ([0, 1], [[0.5, 0.5], [2.0, -1.0]], [0, 1], r"Row 1 holds \[2.0, -1.0\]"),
        ([0, 1], [[0.5, 0.5], [0.3, 0.3]], [0, 1], "Row 1 holds"),
        ([0, 1], [[0.5, 0.5], [math.nan, 1.0]], [0, 1], "Row 1 holds"),
        ([0, 7], [[0.5, 0.5], [0.5, 0.5]], [0, 1], "Row 1 has label .*7.*not among the classes"),
        ([0, 1], [[0.5, 0.5]], [0, 1], r"shape \(1, 2\)"),
        ([], np.empty((0, 2)), [0, 1], "no rows"),
        ([0], [[1.0]], [0], "at least two classes"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(y: list, proba: list, classes: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score(y, proba, classes, ["nll"])


def test_an_unknown_metric_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'nnl'; there are nll, accuracy"):
        score([0], [[1.0, 0.0]], [0, 1], ["nnl"])


def test_a_missing_value_is_printed_as_a_dash() -> None:
    assert find_metric("nll").format(math.nan) == "–"
    assert find_metric("nll").format(0.25) == "0.250"


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows(name: str, n_classes: int) -> None:
    y, proba = draw(3, n_classes)
    counts = np.random.default_rng(4).integers(0, 4, size=len(y))
    rows, classes = np.repeat(np.arange(len(y)), counts), np.arange(n_classes)
    weighted = find_metric(name)(y, proba, classes, 0.25 * counts)
    assert weighted == pytest.approx(find_metric(name)(y[rows], proba[rows], classes), rel=1e-10)
    assert find_metric(name)(y, proba, classes) != pytest.approx(weighted, rel=1e-4)


def test_rows_of_weight_zero_do_not_make_a_class_present() -> None:
    y, proba = np.array([0, 0, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.5, 0.5]])
    assert math.isnan(find_metric("auroc")(y, proba, CLASSES, [1, 1, 0]))
    with pytest.raises(ValueError, match="Weights must be 3 numbers from zero on"):
        find_metric("nll")(y, proba, CLASSES, [1, 1, -1])
