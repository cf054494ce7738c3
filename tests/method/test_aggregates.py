"""The paper's aggregates against brute-force integration over z, and the laws they obey."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eber.method.aggregates import CHUNK_ELEMENTS, Conditionals, row_chunks
from tests.small_networks import make_conditionals

GRID = torch.linspace(-40, 40, 20_001, dtype=torch.float64)
STEP = float(GRID[1] - GRID[0])

cases = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 10_000)


def densities(c: Conditionals) -> torch.Tensor:
    """Log q(z; x, k, e) on the grid, (S, K, m, B)."""
    B = c.mu.shape[-1]
    return c.log_q_zxye(GRID[None, :, None].expand(1, -1, B))


def integral(values: torch.Tensor) -> torch.Tensor:
    return values.sum(0) * STEP


def test_components_are_normals() -> None:
    c = make_conditionals(0)
    expected = stats.norm(c.mu[0].numpy(), c.log_sigma[0].exp().numpy()).logpdf(GRID.numpy()[:, None, None, None])
    np.testing.assert_allclose(densities(c), expected, rtol=1e-9)


def test_joint_weights_sum_to_one_over_labels_and_environments_together() -> None:
    c = make_conditionals(1, K=3, m=4)
    torch.testing.assert_close(c.log_w.exp().sum((0, 1)), torch.ones(4, dtype=torch.float64))


@cases
@given(seeds)
def test_every_aggregate_is_a_density(seed: int) -> None:
    c = make_conditionals(seed)
    log_n, y = densities(c), torch.tensor([0, 1, 0, 1])
    for log_q in (c.log_q_zx(log_n), c.log_q_zxy(log_n, y), c.log_q_zxe(log_n), log_n):
        torch.testing.assert_close(integral(log_q.exp()), torch.ones_like(log_q[0]), rtol=1e-9, atol=1e-9)


@cases
@given(seeds)
def test_aggregates_are_the_mixtures_they_are_named_after(seed: int) -> None:
    """Written out as sums over environments and labels, one by one."""
    c = make_conditionals(seed, K=3, m=2, B=2)
    log_n, y = densities(c), torch.tensor([2, 1])
    p_e, p_y = c.log_p_e_given_x.exp(), c.log_p_y_given_xe.exp()
    for b in range(2):
        joint = [[p_e[e, b] * p_y[k, e, b] for e in range(2)] for k in range(3)]
        q_x = sum(joint[k][e] * log_n[:, k, e, b].exp() for k in range(3) for e in range(2))
        torch.testing.assert_close(c.log_q_zx(log_n)[:, b].exp(), q_x)
        label = int(y[b])
        total = joint[label][0] + joint[label][1]
        q_xy = sum(joint[label][e] / total * log_n[:, label, e, b].exp() for e in range(2))
        torch.testing.assert_close(c.log_q_zxy(log_n, y)[:, b].exp(), q_xy)
        q_xe = sum(p_y[k, 1, b] * log_n[:, k, 1, b].exp() for k in range(3))
        torch.testing.assert_close(c.log_q_zxe(log_n)[:, 1, b].exp(), q_xe)


@cases
@given(seeds)
def test_prior_is_the_label_average_of_the_posteriors(seed: int) -> None:
    """q(z;x) = sum_k p(k|x) q(z;x,k)."""
    c = make_conditionals(seed)
    log_n, B = densities(c), c.mu.shape[-1]
    average = sum(
        c.log_p_y_given_x[k].exp() * c.log_q_zxy(log_n, torch.full((B,), k)).exp() for k in range(c.mu.shape[1])
    )
    torch.testing.assert_close(c.log_q_zx(log_n).exp(), average)


@cases
@given(seeds)
def test_kl_is_at_most_the_surprise_of_the_label(seed: int) -> None:
    """KL(q(z;x,y) || q(z;x)) <= -log p(y|x), since q(z;x,y) is one of the mixture's parts."""
    c = make_conditionals(seed)
    log_n, y = densities(c), torch.tensor([0, 1, 1, 0])
    log_q_zxy, log_q_zx = c.log_q_zxy(log_n, y), c.log_q_zx(log_n)
    kl = integral(log_q_zxy.exp() * (log_q_zxy - log_q_zx))
    surprise = -c.log_p_y_given_x.gather(0, y[None])[0]
    assert (kl >= -1e-9).all()
    assert (kl <= surprise + 1e-9).all()


@cases
@given(seeds)
def test_relabelling_environments_changes_no_aggregate(seed: int) -> None:
    c = make_conditionals(seed, m=4)
    order = torch.tensor([2, 0, 3, 1])
    permuted = Conditionals(
        c.mu[:, :, order], c.log_sigma[:, :, order], c.log_p_y_given_xe[:, order], c.log_p_e_given_x[order]
    )
    y = torch.tensor([0, 1, 1, 0])
    a, b = densities(c), densities(permuted)
    torch.testing.assert_close(c.log_q_zx(a), permuted.log_q_zx(b))
    torch.testing.assert_close(c.log_q_zxy(a, y), permuted.log_q_zxy(b, y))
    torch.testing.assert_close(c.log_p_e_given_xy(y)[order], permuted.log_p_e_given_xy(y))


def test_points_are_moved_into_their_components() -> None:
    c = make_conditionals(3, L=2)
    points = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    everywhere = c.component_points(points)
    assert everywhere.shape == (2, 5, 2, 3, 4)
    torch.testing.assert_close(
        everywhere[:, 3, 1, 2, 0], c.mu[:, 1, 2, 0] + c.log_sigma[:, 1, 2, 0].exp() * points[:, 3]
    )
    y = torch.tensor([1, 0, 1, 0])
    torch.testing.assert_close(c.posterior_points(y, points)[..., 0], everywhere[:, :, 1, :, 0])
    torch.testing.assert_close(c.posterior_points(y, points)[..., 1], everywhere[:, :, 0, :, 1])


@pytest.mark.parametrize("per_row", [1, 1000, 10 * CHUNK_ELEMENTS])
def test_chunks_cover_every_row_once_in_order(per_row: int) -> None:
    rows = [i for chunk in row_chunks(23, per_row) for i in range(23)[chunk]]
    assert rows == list(range(23))
    assert all(
        (chunk.stop - chunk.start) * per_row <= max(CHUNK_ELEMENTS, per_row) for chunk in row_chunks(23, per_row)
    )
