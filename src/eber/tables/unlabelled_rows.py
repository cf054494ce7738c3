"""A sample of rows of a new environment without their labels, and the model that has adapted its mixture to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eber.estimators import EBERClassifier
from eber.tables.files import TableFile
from eber.tables.model_folder import TableModel
from eber.tables.predictions import PredictionReport
from eber.tables.schema import as_at_the_fit
from eber.tables.training import decode

ADAPTATION_ROWS = 50_000
"""Rows that an adaptation is estimated from; a larger file gives a random sample of so many."""


@dataclass(frozen=True)
class DrawnRows:
    """A random sample of rows: those with the largest marks, so that samples of several files make one of all.

    Parameters
    ----------
    X : array of shape (n, d)
        As the classifier takes them.
    marks : array of shape (n,)
        Drawn evenly from 0 to 1.
    """

    X: NDArray[np.float64]
    marks: NDArray[np.float64]

    def joined(self, other: DrawnRows, size: int) -> DrawnRows:
        """At most `size` rows of both, in the order of their marks, whichever came first."""
        X, marks = np.concatenate([self.X, other.X]), np.concatenate([self.marks, other.marks])
        best = np.argsort(-marks)[:size]
        return DrawnRows(X[best], marks[best])


def draw_rows(model: TableModel, file: TableFile, size: int, rng: np.random.Generator) -> DrawnRows:
    """At most `size` rows, each row of the file as likely as any other, in one pass."""
    file = as_at_the_fit(file, model.schema)
    names = [feature.name for feature in model.schema.features]
    kept, marks = np.empty((0, len(model.preprocessing.names_out))), np.empty(0)
    n_rows = 0
    for table in file.batches(names):
        X = model.preprocessing.transform(decode(table, file, model.schema, n_rows))
        n_rows += len(X)
        drawn = rng.random(len(X))
        if len(marks) == size:
            chosen = drawn > marks.min()
            X, drawn = X[chosen], drawn[chosen]
        kept, marks = np.concatenate([kept, X]), np.concatenate([marks, drawn])
        if len(marks) > size:
            best = np.argpartition(-marks, size)[:size]
            kept, marks = kept[best], marks[best]
    file.require_unchanged()
    return DrawnRows(kept, marks)


def require_adaptable(model: TableModel) -> None:
    """Refuse a model that has no mixture of environments."""
    if not isinstance(model.classifier, EBERClassifier):
        raise ValueError(f"Only EBER can be adapted to new rows; this model is {model.card['method']}.")
    if model.calibration is not None and model.calibration.n_labels:
        raise ValueError("This model has learned from labels of a new environment, which adapting would undo.")


def adapted(model: TableModel, sample: DrawnRows, file: TableFile, report: PredictionReport, force: bool) -> TableModel:
    """The model with the mixture of these rows, which the report is told."""
    if not len(sample.X):
        raise ValueError(f"{file.title} has columns but no rows.")
    assert isinstance(model.classifier, EBERClassifier)
    classifier = model.classifier.adapt(sample.X, force=force)
    report.adaptation = classifier.adaptation_
    report.adaptation_record = getattr(classifier, "adaptation_record_", None)
    weights = classifier.environment_mixture().tolist()
    report.mixture = dict(zip(map(str, classifier.environments_), weights, strict=True))
    return replace(model, classifier=classifier)
