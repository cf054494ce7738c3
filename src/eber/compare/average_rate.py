"""What a method has to beat before it is worth using: the share that each class has in the training environments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from eber.compare.record import ComparisonRecord
from eber.compare.summary import ComparisonSummary, MethodSummary
from eber.evaluation.metrics import Metric
from eber.evaluation.significance import compare_with_reference
from eber.evaluation.wording import LEVEL


@dataclass(frozen=True)
class AverageRate:
    """Predicting the training environments' share of each class, for every row alike.

    Parameters
    ----------
    by_fold : mapping
        Fold to its score by the ranking metric.
    p_values : mapping
        Method to the p-value of the test whether it is better, one-sided, paired by fold and corrected over methods;
        those without one are left out.
    """

    by_fold: Mapping[str, float]
    p_values: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Over the folds where the metric is defined."""
        known = [value for value in self.by_fold.values() if not math.isnan(value)]
        return float(np.mean(known)) if known else math.nan

    @property
    def beaten_by(self) -> list[str]:
        """The methods that are significantly better."""
        return [method for method, p in self.p_values.items() if p < LEVEL]


def compare_with_average_rate(summary: ComparisonSummary, record: ComparisonRecord) -> AverageRate:
    """Score the average rate on every fold, and test each method against it."""
    metric = summary.metric
    by_fold = {fold: _score(record, fold, metric) for fold in summary.folds}
    p_values = {}
    for row in summary.rows:
        scores = {"method": _known(row, metric), "average": {k: v for k, v in by_fold.items() if not math.isnan(v)}}
        test = compare_with_reference(scores, "method", higher_is_better=bool(metric.higher_is_better))["average"]
        if not math.isnan(test.p_value):
            p_values[row.method] = test.p_value
    corrected = stats.false_discovery_control(list(p_values.values()), method="by") if p_values else np.empty(0)
    return AverageRate(by_fold, dict(zip(p_values, corrected.tolist(), strict=True)))


def _score(record: ComparisonRecord, fold: str, metric: Metric) -> float:
    """The metric of constant probabilities, from the numbers of rows alone, or from their weights."""
    held_out, others = set(record.folds[fold]), set(record.environments) - set(record.folds[fold])
    if record.class_weights is not None:
        held, train = (_of_classes(record, record.class_weights, names) for names in (held_out, others))
        classes = np.arange(len(held))
        return metric(classes, np.tile(train / train.sum(), (len(classes), 1)), classes, held)
    held, train = (_of_classes(record, record.environments, names) for names in (held_out, others))
    labels = np.repeat(np.arange(len(held)), held.astype(np.int64))
    return metric(labels, np.tile(train / train.sum(), (len(labels), 1)), np.arange(len(held)))


def _of_classes(
    record: ComparisonRecord, amounts: Mapping[str, Mapping[str, float]], environments: set[str]
) -> NDArray[np.float64]:
    """Rows of each class in some environments, or their weight, (K,)."""
    rows = [[amounts[name].get(label, 0) for label in record.classes] for name in sorted(environments)]
    return np.sum(rows, axis=0, dtype=np.float64)


def _known(row: MethodSummary, metric: Metric) -> dict[str, float]:
    return {fold: scores[metric.name] for fold, scores in row.by_fold.items() if not math.isnan(scores[metric.name])}
