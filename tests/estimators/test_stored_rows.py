"""Rows on disk, visited in blocks of neighbours: shuffled once is as good as in memory, file order is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from eber import EBERClassifier
from eber import training as loop
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators.stored_rows import StoredRows, fit_stored
from eber.objectives.base import Batch

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 256 rows of ten columns, so that a small table has many."""
    monkeypatch.setattr(loop, "ELEMENTS_AT_ONCE", 2_560)


@pytest.mark.usefixtures("short_blocks")
def test_shuffled_once_is_as_good_as_in_memory_and_the_order_of_the_files_is_not() -> None:
    """Files are sorted by environment."""
    data = draw(ParametricParameters(n=2_000, m_validation=1, m_test=12), random_state=0)
    train, new = data.train, data.test
    X, e = train.X.astype(np.float32), train.environments.astype(np.int32)

    def nll(classifier: EBERClassifier) -> float:
        p = classifier.predict_proba(new.X)[np.arange(len(new.y)), new.y]
        return float(-np.log(np.clip(p, 1e-12, None)).mean())

    def from_disk(order: np.ndarray) -> float:
        classifier = EBERClassifier(epochs=3, random_state=0)
        names = np.arange(6)
        rows = StoredRows(X[order], train.y[order].astype(np.uint8), e[order], np.array([0, 1]), names)
        fit_stored(classifier, rows)
        return nll(classifier)

    in_memory = nll(EBERClassifier(epochs=3, random_state=0).fit(X, train.y, environments=train.environments))
    sorted_by_environment = np.argsort(e, kind="stable")
    shuffled = from_disk(np.random.default_rng(0).permutation(len(e)))
    in_file_order = from_disk(sorted_by_environment)
    print(in_memory, shuffled, in_file_order)
    assert abs(shuffled - in_memory) < 0.02
    assert in_file_order > in_memory + 0.1


@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("n", [1, 64, 700, 1024])
def test_every_row_is_visited_once_in_a_pass_and_passes_differ(n: int) -> None:
    rows = Batch(torch.arange(10 * n, dtype=torch.float32).view(n, 10), torch.zeros(n).byte(), torch.zeros(n).short())
    visits = loop.NeighbouringRows(rows, 64)
    generator = torch.Generator().manual_seed(0)
    passes = []
    for _ in range(2):
        batches = list(visits.one_pass([generator]))
        assert sum(len(batch.y[0]) for batch in batches) == n
        assert len(batches) == -(-n // 64)
        assert all(batch.y.dtype == batch.e.dtype == torch.int64 for batch in batches)
        passes.append(torch.cat([batch.x[0, :, 0] for batch in batches]))
    for visited in passes:
        assert torch.equal(visited.sort().values, rows.x[:, 0])
    assert n == 1 or not torch.equal(*passes)
