"""Columns in pieces: what networks see of them, and where they are cut."""

import numpy as np
import pytest
import torch

from eber import EBERClassifier, ERMClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.nn import column_pieces
from eber.nn.column_pieces import ColumnPieces, knots_of, through_pieces

# Fits of a few epochs are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

rng = np.random.default_rng(0)


def pieces_between(*knots):
    """The pieces of the second of three columns."""
    pieces = ColumnPieces([1] * (len(knots) - 1))
    pieces.place([np.array(knots, dtype=np.float32)])
    return pieces


def test_a_piece_rises_between_its_ends_and_is_level_elsewhere():
    x = torch.tensor([[9.0, value, 9.0] for value in (-5.0, 0.0, 1.0, 2.0, 5.0, 8.0, 99.0)])
    seen = pieces_between(0, 2, 8)(x)
    assert torch.equal(seen[:, :3], x)
    np.testing.assert_allclose(seen[:, 3], [-0.5, -0.5, 0, 0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(seen[:, 4], [-0.5, -0.5, -0.5, -0.5, 0, 0.5, 0.5], atol=1e-7)


def test_a_linear_layer_on_pieces_is_any_function_that_is_linear_in_each():
    knots, heights = np.array([-2.0, -1.0, 0.5, 3.0]), np.array([4.0, -1.0, 2.0, 0.0])
    x = np.linspace(-2, 3, 101)
    seen = pieces_between(*knots)(torch.tensor(np.column_stack([x * 0, x, x * 0]))).numpy()[:, 3:]
    wanted = np.interp(x, knots, heights)
    np.testing.assert_allclose(seen @ np.diff(heights) + heights[[0, -1]].mean(), wanted, atol=1e-6)


def test_models_side_by_side_see_their_own_pieces():
    own = [pieces_between(0, 1, 2), pieces_between(-3, 0, 3)]
    x = torch.tensor(rng.normal(size=(2, 7, 3)).astype(np.float32))
    expected = torch.stack([pieces(rows) for pieces, rows in zip(own, x, strict=True)])
    assert torch.equal(through_pieces(own, x), expected)


def test_pieces_lie_between_quantiles_and_between_all_of_few_values():
    n = 1001
    X = np.column_stack(
        [np.arange(n), rng.integers(0, 2, n), rng.integers(0, 4, n), np.r_[np.zeros(900), np.arange(1, 102)]]
    ).astype(np.float32)
    knots = knots_of(X, 4)
    assert list(knots) == [0, 2, 3]  # yes/no has nothing between
    assert knots[0].tolist() == [0, 250, 500, 750, 1000]
    assert knots[2].tolist() == [0, 1, 2, 3]
    assert knots[3].tolist() == [0, 25, 50, 76, 101]  # of the different values, since most quantiles are zero


def test_there_are_no_more_pieces_than_a_table_of_many_columns_bears(monkeypatch):
    X = rng.normal(size=(50, 6)).astype(np.float32)
    monkeypatch.setattr(column_pieces, "MAX_PIECES", 24)
    assert [len(own) - 1 for own in knots_of(X, 16).values()] == [4] * 6
    monkeypatch.setattr(column_pieces, "MAX_PIECES", 6)
    assert [len(own) - 1 for own in knots_of(X, 16).values()] == [2] * 6
    monkeypatch.setattr(column_pieces, "MAX_PIECED_COLUMNS", 5)
    assert knots_of(X, 16) == {}


def test_no_more_rows_than_are_needed_are_looked_at(monkeypatch):
    monkeypatch.setattr(column_pieces, "ROWS_LOOKED_AT", 10)
    X = np.arange(100, dtype=np.float32)[:, None]
    assert knots_of(X, 3)[0].tolist() == knots_of(X[::10], 3)[0].tolist()


def stairs():
    """Two environments; y follows steps of the first column."""
    X = rng.uniform(-2, 2, size=(2000, 2))
    y = (np.floor(X[:, 0] * 3).astype(int) % 2 == 0).astype(int)
    return X, np.where(rng.random(2000) < 0.05, 1 - y, y), np.arange(2000) % 2


@pytest.mark.parametrize("classifier", [EBERClassifier, ERMClassifier])
def test_pieces_let_a_small_network_follow_steps(classifier):
    X, y, e = stairs()
    scores = [
        classifier(epochs=20, column_pieces=pieces, random_state=0).fit(X, y, environments=e).score(X, y)
        for pieces in (None, 32)
    ]
    assert scores[0] < 0.75
    assert scores[1] > 0.85


@pytest.mark.parametrize("classifier", [EBERClassifier, ERMClassifier])
def test_pieces_are_those_of_the_training_rows_and_are_saved(classifier, tmp_path):
    train = draw(ParametricParameters(n=30, m_validation=1, m_test=1, d=4), random_state=0).train
    model = classifier(epochs=2, column_pieces=5, random_state=0).fit(train.X, train.y, environments=train.environments)
    assert model.piece_columns_.tolist() == np.repeat(np.arange(4), 5).tolist()
    new = 3 * train.X[::-1] + 1
    expected = model.predict_proba(new)
    np.testing.assert_allclose(np.vstack([model.predict_proba(row[None]) for row in new]), expected, atol=1e-12)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(classifier.load(tmp_path / "model").predict_proba(new), expected)


def test_pieces_are_refused_where_rows_are_no_columns():
    images = rng.normal(size=(20, 1, 8, 8))
    with pytest.raises(ValueError, match="column_pieces=4 cuts the columns of a table, and featurizer is 'cnn'"):
        ERMClassifier(featurizer="cnn", column_pieces=4).fit(images, np.arange(20) % 2)
