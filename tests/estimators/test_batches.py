"""``batch_size="auto"``: small tables as ever, larger batches with longer steps for large ones."""

import numpy as np
import pytest

from eber import EBERClassifier, VRExClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators import batches

rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train  # 240 rows

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


def fit(kind, **parameters):
    return kind(epochs=2, random_state=0, **parameters).fit(rows.X, rows.y, environments=rows.environments)


@pytest.mark.parametrize(
    ("n_rows", "batch"),
    [(1, 64), (99_999, 64), (100_000, 128), (200_000, 256), (799_999, 512), (800_000, 1024), (10**9, 1024)],
)
def test_batches_double_with_the_rows(n_rows, batch):
    assert batches.batch_rows("auto", n_rows) == batch
    assert batches.scaled_learning_rate(1e-3, "auto", n_rows) == pytest.approx(1e-3 * np.sqrt(batch / 64), rel=1e-15)


@pytest.mark.parametrize("kind", [EBERClassifier, VRExClassifier])
def test_small_tables_are_fitted_as_with_batches_of_64(kind):
    np.testing.assert_array_equal(
        fit(kind, batch_size="auto").predict_proba(rows.X), fit(kind, batch_size=64).predict_proba(rows.X)
    )


@pytest.mark.parametrize("kind", [EBERClassifier, VRExClassifier])
def test_large_tables_are_fitted_with_the_batch_and_step_size_that_auto_stands_for(kind, monkeypatch):
    monkeypatch.setattr(batches, "ROWS_FOR_DOUBLE", 120)  # so that 240 rows are as 200,000 are
    auto, named = fit(kind, batch_size="auto"), fit(kind, batch_size=256, learning_rate=2e-3)
    assert auto.n_steps_ == 2
    np.testing.assert_array_equal(auto.predict_proba(rows.X), named.predict_proba(rows.X))


def test_a_size_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'batch_size' parameter"):
        fit(EBERClassifier, batch_size="large")
