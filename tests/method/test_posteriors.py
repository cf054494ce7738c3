"""Posteriors supplied on a grid say what is wrong with them."""

import numpy as np
import pytest

from eber.method.posteriors import GridPosterior

Z = np.zeros((5, 1))
INDEX = np.array([[0, 1, 2], [2, 3, 4]])
LOG_Q = np.full((7, 2, 2, 3), -np.log(3))


def test_a_consistent_grid_posterior_is_accepted():
    assert GridPosterior(Z, INDEX, LOG_Q).log_q.shape == (7, 2, 2, 3)


@pytest.mark.parametrize(
    ("z", "index", "log_q", "message"),
    [
        (Z[:, 0], INDEX, LOG_Q, r"z of shape \(Q, L\)"),
        (Z, INDEX[:1], LOG_Q, r"index has shape \(1, 3\)"),
        (Z, INDEX + 1, LOG_Q, "nodes 1 to 5, but the grid has nodes 0 to 4"),
        (Z, INDEX - 1, LOG_Q, "nodes -1 to 3"),
    ],
)
def test_an_inconsistent_grid_posterior_is_refused(z, index, log_q, message):
    with pytest.raises(ValueError, match=message):
        GridPosterior(z, index, log_q)
