"""Importance of columns is what shuffling them costs, no more and no less, and noise costs nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from eber.compare import importance
from eber.compare.column_summary import summarise_columns
from eber.compare.importance import MAX_COLUMNS, REPEATS, column_importance
from eber.tables.preprocessing import ColumnEncoding, Preprocessing

Matrix = NDArray[np.float64]


def numeric(n_columns: int) -> Preprocessing:
    """An encoding of so many numeric columns, each by itself."""
    return Preprocessing(tuple(ColumnEncoding(f"x{j}", "numeric") for j in range(n_columns)))


def drawn(n: int, rng: np.random.Generator) -> tuple[Matrix, NDArray[np.int64]]:
    """Two columns that tell the label and one of noise."""
    X = rng.normal(size=(n, 3))
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))).astype(np.int64)


def test_a_column_of_noise_has_an_importance_that_holds_zero() -> None:
    """Over 60 comparisons of six environments: its interval holds zero about 19 times of 20, the others' never do."""
    rng = np.random.default_rng(0)
    held, mattered = 0, 0
    for _ in range(60):
        model = LogisticRegression().fit(*drawn(300, rng))
        kept = {}
        for fold in "abcdef":
            X, labels = drawn(200, rng)
            kept[fold] = [column_importance(model.predict_proba, X, labels, numeric(3))]
        columns = {column.name: column for column in summarise_columns(kept)}
        held += columns["x2"].low <= 0 <= columns["x2"].high
        mattered += columns["x0"].matters and columns["x1"].matters
    assert held >= 51
    assert mattered == 60


def test_it_is_the_loss_of_labels_paired_with_the_columns_of_others() -> None:
    """Expected over all shuffles: the mean over every pair of a row's label and another row's value."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 2000)
    X = np.where(rng.random((2000, 1)) < 0.8, labels[:, None], 1 - labels[:, None]).astype(np.float64)

    def predict(rows: Matrix) -> Matrix:
        return np.concatenate([1 - (0.1 + 0.8 * rows), 0.1 + 0.8 * rows], axis=1)

    def loss(rows: Matrix, of: NDArray[np.int64]) -> Matrix:
        return np.asarray(-np.log(predict(rows)[np.arange(len(of)), of]))

    ones = X.mean()
    shuffled = (1 - ones) * loss(np.zeros_like(X), labels).mean() + ones * loss(np.ones_like(X), labels).mean()
    found = column_importance(predict, X, labels, numeric(1))
    assert found["importance"].shape == (1, REPEATS)
    assert found["importance"].mean() == pytest.approx(shuffled - loss(X, labels).mean(), abs=0.05)
    assert 0 < found["importance_error"][0] < 0.1


def test_columns_that_encode_one_are_shuffled_together() -> None:
    levels = ColumnEncoding("ward", "categorical", levels=("a", "b", "c"), n_levels=3, indicator=True)
    seen = []

    def predict(rows: Matrix) -> Matrix:
        seen.append(rows)
        return np.full((len(rows), 2), 0.5)

    rng = np.random.default_rng(0)
    X = np.concatenate([np.eye(4)[rng.integers(0, 4, 100)], rng.normal(size=(100, 1))], axis=1)
    labels = rng.integers(0, 2, 100)
    encodings = Preprocessing(
        (levels, ColumnEncoding("age", "numeric"), ColumnEncoding("same", "boolean", constant=True))
    )
    found = column_importance(predict, X, labels, encodings)
    assert found["importance_columns"].tolist() == ["ward", "age"]
    assert all((rows[:, :4].sum(axis=1) == 1).all() for rows in seen), "no row has two wards, or none"
    assert (found["importance"] == 0).all()


def test_of_many_columns_those_are_looked_at_that_predictions_live_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chosen without the labels, within a bounded number of predictions."""
    rng = np.random.default_rng(0)
    weights = np.zeros(200)
    weights[[3, 50, 199]] = 3.0
    predicted = []

    def predict(rows: Matrix) -> Matrix:
        predicted.append(len(rows))
        p = 1 / (1 + np.exp(-rows @ weights))
        return np.stack([1 - p, p], axis=1)

    X, labels = rng.normal(size=(3000, 200)), rng.integers(0, 2, 3000)
    found = column_importance(predict, X, labels, numeric(200))
    columns = found["importance_columns"].tolist()
    assert len(columns) == MAX_COLUMNS
    assert {"x3", "x50", "x199"} <= set(columns)
    assert column_importance(predict, X, 1 - labels, numeric(200))["importance_columns"].tolist() == columns
    most = importance.MAX_PREDICTIONS + importance.MAX_SCREENED
    assert sum(predicted) / 2 < 1.1 * most
