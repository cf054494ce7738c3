"""The parametric simulation draws what the paper describes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from eber.datasets.parametric import ParametricParameters, assign_branches, draw

SMALL = ParametricParameters(n=30, m_validation=6, m_test=8)


def test_defaults_are_the_papers_baseline():
    p = ParametricParameters()
    assert (p.m_train, p.m_validation, p.m_test, p.n, p.d) == (6, 12, 50, 500, 10)
    assert (p.Delta, p.phi_0, p.sigma_delta, p.sigma_z) == (2 * np.pi, np.pi / 2, 0.05, 0.35)
    assert (p.sigma_phase, p.rho, p.sigma_branch, p.sigma_noise, p.beta_0, p.beta_1) == (0.05, 0.1, 0.1, 1, 0, 4)
    assert p.branches == (-3, -2, -1, 0, 1, 2)


def test_collections_have_the_stated_sizes_and_share_no_environment():
    sample = draw(SMALL, random_state=0)
    for data, m in ((sample.train, 6), (sample.validation, 6), (sample.test, 8)):
        names, counts = np.unique(data.environments, return_counts=True)
        assert len(names) == m
        assert set(counts) == {30}
        assert data.X.shape == (30 * m, 10)
        assert set(data.y) == {0, 1}
        assert data.extra["z"].shape == (30 * m,)
    named = [set(data.environment_names) for data in (sample.train, sample.validation, sample.test)]
    assert len(set.union(*named)) == 20


@given(m=st.integers(1, 60), seed=st.integers(0, 2**32 - 1))
def test_every_branch_is_taken_as_often_as_any_other_up_to_one(m, seed):
    b = assign_branches((-3, -2, -1, 0, 1, 2), m, np.random.default_rng(seed))
    counts = [np.sum(b == value) for value in range(-3, 3)]
    assert sum(counts) == m
    assert max(counts) - min(counts) <= 1


def test_branches_left_over_are_random():
    remainders = {tuple(assign_branches((-3, -2, -1, 0, 1, 2), 2, np.random.default_rng(s))) for s in range(40)}
    assert len(remainders) > 8


def test_the_same_seed_gives_the_same_draw_and_another_seed_another():
    first, again, other = (draw(SMALL, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.test.X, again.test.X)
    np.testing.assert_array_equal(first.train.y, again.train.y)
    assert not np.any(first.train.X == other.train.X)


def test_collections_come_from_different_random_streams():
    sample = draw(SMALL, random_state=1)
    noise = [set(data.X[:, 3:].ravel()) for data in (sample.train, sample.validation, sample.test)]
    assert len(set.union(*noise)) == sum(len(values) for values in noise)


def test_the_test_environments_do_not_depend_on_how_many_were_trained_on():
    more = draw(ParametricParameters(n=30, m_validation=6, m_test=8, m_train=12), random_state=1)
    np.testing.assert_array_equal(more.test.X, draw(SMALL, random_state=1).test.X)


def test_adding_noise_columns_changes_nothing_else():
    wide = draw(ParametricParameters(n=30, m_validation=6, m_test=8, d=50), random_state=1)
    narrow = draw(SMALL, random_state=1)
    np.testing.assert_array_equal(wide.train.X[:, :3], narrow.train.X[:, :3])
    np.testing.assert_array_equal(wide.train.y, narrow.train.y)


def test_the_draw_follows_the_model():
    """Standardised residuals of each equation have mean 0 and variance 1; labels have the stated frequencies."""
    p = ParametricParameters(n=2000, beta_0=0.3)
    sample = draw(p, random_state=0)
    data, z = sample.train, sample.train.extra["z"]
    residuals = np.column_stack(
        [
            (z - np.repeat(sample.centres, p.n)) / p.sigma_z,
            (data.X[:, 0] - np.cos(z)) / p.sigma_phase,
            (data.X[:, 1] - np.sin(z)) / p.sigma_phase,
            (data.X[:, 2] - p.rho * z) / p.sigma_branch,
            data.X[:, 3:] / p.sigma_noise,
        ]
    )
    rows = len(data)
    np.testing.assert_allclose(residuals.mean(axis=0), 0, atol=4.5 / np.sqrt(rows))
    np.testing.assert_allclose(residuals.var(axis=0), 1, atol=4.5 * np.sqrt(2 / rows))
    correlations = np.corrcoef(residuals.T) - np.eye(residuals.shape[1])
    assert np.abs(correlations).max() < 4.5 / np.sqrt(rows)
    p_y1 = expit(0.3 + 4 * np.sin(z / 2))
    assert abs(np.mean(data.y - p_y1)) < 4.5 * np.sqrt(np.mean(p_y1 * (1 - p_y1)) / rows)
    assert abs(np.mean((data.y - p_y1) * np.sin(z / 2))) < 4.5 / 2 / np.sqrt(rows)


def test_centres_lie_about_their_branches():
    p = ParametricParameters(m_train=600, n=1, m_validation=1, m_test=1)
    sample = draw(p, random_state=0)
    deviation = sample.centres - p.phi_0 - p.Delta * np.repeat(np.arange(-3, 3), 100)
    assert abs(deviation.mean()) < 4.5 * 0.05 / np.sqrt(600)
    assert deviation.std() == pytest.approx(0.05, rel=0.15)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"d": 2}, "d is 2; .* at least 3"),
        ({"m_train": 0}, "m_train is 0"),
        ({"sigma_z": 0.0}, "sigma_z is 0.0; .* must be positive"),
        ({"sigma_noise": -1.0}, "sigma_noise is -1.0"),
        ({"branches": (1, 1)}, "each branch once"),
    ],
)
def test_impossible_parameters_are_refused_by_name(bad, message):
    with pytest.raises(ValueError, match=message):
        ParametricParameters(**bad)
