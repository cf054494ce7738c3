"""Gaussian prototypes: the closed-form rules agree with brute force and have the figures that the module states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from eber.datasets.prototypes import PrototypeParameters, draw

DEFAULT = PrototypeParameters()
points = st.lists(st.tuples(st.floats(-6, 6), st.floats(-6, 6)), min_size=1, max_size=10).map(np.array)


def expected_nll_in_test_environment(rule):
    """∫ Σ_y p(x,y|e_test) · -log rule(y|x) dx on a grid."""
    side = np.linspace(-8, 8, 161)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    p_x = p_x_given_z(X) @ np.array(DEFAULT.test_mixture) * (side[1] - side[0]) ** 2
    p_y = DEFAULT.own_label_proba(X)
    return -np.sum(p_x[:, None] * p_y * np.log(rule(X)))


def p_x_given_z(X, p=DEFAULT):
    d = len(p.means[0])
    return np.stack([multivariate_normal(mean, p.scale**2 * np.eye(d)).pdf(X) for mean in p.means], axis=-1).reshape(
        len(X), -1
    )


@given(X=points)
def test_rules_agree_with_brute_force(X):
    joint_z = p_x_given_z(X)[:, None, :] * np.array(DEFAULT.mixtures)  # p(x,z|e): (n, m, 4)
    p_y = np.array([[0.95, 0.05], [0.95, 0.05], [0.05, 0.95], [0.05, 0.95]])
    np.testing.assert_allclose(DEFAULT.environment_proba(X), joint_z.sum(-1) / joint_z.sum((1, 2))[:, None], rtol=1e-9)
    joint_y = joint_z.sum(1) @ p_y
    np.testing.assert_allclose(DEFAULT.pooled_label_proba(X), joint_y / joint_y.sum(1, keepdims=True), rtol=1e-9)
    own = (p_x_given_z(X) * np.array(DEFAULT.test_mixture)) @ p_y
    np.testing.assert_allclose(DEFAULT.own_label_proba(X), own / own.sum(1, keepdims=True), rtol=1e-9)


@given(X=points)
def test_the_pooled_rule_is_the_environments_rules_weighted_by_their_probabilities(X):
    by_environment = np.stack([DEFAULT.label_proba(X, mixture) for mixture in DEFAULT.mixtures], axis=1)
    weighted = np.einsum("nm,nmk->nk", DEFAULT.environment_proba(X), by_environment)
    np.testing.assert_allclose(weighted, DEFAULT.pooled_label_proba(X), rtol=1e-9)


def test_expected_scores_are_those_stated():
    assert expected_nll_in_test_environment(DEFAULT.pooled_label_proba) == pytest.approx(0.527, abs=0.0005)
    assert expected_nll_in_test_environment(DEFAULT.own_label_proba) == pytest.approx(0.273, abs=0.0005)
    by_environment = [
        expected_nll_in_test_environment(lambda X, mixture=mixture: DEFAULT.label_proba(X, mixture))
        for mixture in DEFAULT.mixtures
    ]
    assert min(by_environment) == by_environment[-1] == pytest.approx(0.316, abs=0.0005)


def test_no_reweighing_of_the_training_environments_beats_the_nearest_one():
    """The test mixture lies beyond all of theirs."""
    rng = np.random.default_rng(0)
    best = expected_nll_in_test_environment(lambda X: DEFAULT.label_proba(X, DEFAULT.mixtures[-1]))
    for weights in rng.dirichlet(np.full(6, 0.3), size=20):
        mixture = weights @ np.array(DEFAULT.mixtures)
        assert expected_nll_in_test_environment(lambda X, mixture=mixture: DEFAULT.label_proba(X, mixture)) >= best


def test_the_draw_follows_the_model():
    p = PrototypeParameters(n=4000, n_test=4000, scale=0.5)
    sample = draw(p, random_state=0)
    for data, mixtures in ((sample.train, p.mixtures), (sample.test, (p.test_mixture,))):
        prototype = data.extra["z"] - 1
        for name, mixture in zip(data.environment_names, mixtures, strict=True):
            shares = np.bincount(prototype[data.environments == name], minlength=4) / 4000
            np.testing.assert_allclose(shares, mixture, atol=4.5 * 0.5 / np.sqrt(4000))
        residuals = (data.X - np.array(p.means)[prototype]) / 0.5
        np.testing.assert_allclose(residuals.mean(axis=0), 0, atol=4.5 / np.sqrt(len(data)))
        np.testing.assert_allclose(residuals.var(axis=0), 1, atol=4.5 * np.sqrt(2 / len(data)))
        expected = np.array(p.p_y1_given_z)[prototype]
        assert abs(np.mean(data.y - expected)) < 4.5 * np.sqrt(0.05 * 0.95 / len(data))
        assert np.mean(data.y != np.round(expected)) == pytest.approx(0.05, abs=0.02)


def test_rules_score_on_a_draw_as_expected():
    sample = draw(PrototypeParameters(n=1, n_test=20_000), random_state=1)
    X, y = sample.test.X, sample.test.y
    for rule, expected in ((DEFAULT.pooled_label_proba, 0.527), (DEFAULT.own_label_proba, 0.273)):
        assert -np.log(rule(X)[np.arange(len(y)), y]).mean() == pytest.approx(expected, abs=0.02)


def test_draws_are_repeatable_and_the_test_environment_is_new():
    first, again, other = (draw(random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.train.X, again.train.X)
    np.testing.assert_array_equal(first.test.y, again.test.y)
    assert not np.array_equal(first.test.X, other.test.X)
    assert first.test.environment_names == [6]
    assert first.train.environment_names == [0, 1, 2, 3, 4, 5]


def test_any_number_of_coordinates_and_an_absent_prototype():
    p = PrototypeParameters(
        means=((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
        p_y1_given_z=(0.1, 0.9),
        mixtures=((1.0, 0.0), (0.5, 0.5)),
        test_mixture=(0.0, 1.0),
        n=5,
        n_test=5,
    )
    sample = draw(p, random_state=0)
    assert sample.train.X.shape == (10, 3)
    np.testing.assert_allclose(p.own_label_proba(sample.test.X), np.tile([0.1, 0.9], (5, 1)))
    np.testing.assert_allclose(p.environment_proba(sample.train.X).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"scale": 0.0}, "scale is 0.0"),
        ({"means": ((0.0,), (1.0, 2.0))}, "same number of coordinates"),
        ({"p_y1_given_z": (0.5,)}, "one probability for each of 4 means"),
        ({"mixtures": ((0.5, 0.5, 0.5, 0.5),)}, r"mixtures\[0\] is .* summing to 1"),
        ({"test_mixture": (1.0,)}, "test_mixture is"),
        ({"n": 0}, "at least one row"),
    ],
)
def test_impossible_parameters_are_refused_by_name(bad, message):
    with pytest.raises(ValueError, match=message):
        PrototypeParameters(**bad)
