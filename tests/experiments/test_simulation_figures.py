"""Figures of the simulations show what they were given, and can be written to a file."""

import io

import numpy as np
import pytest

from eber.datasets.motivating import run_motivating
from eber.datasets.parametric import ParametricParameters, draw
from eber.datasets.parametric_oracle import ParametricOracle
from eber.experiments.figures.simulation_figures import (
    environment_probability_figure,
    label_probability_figure,
    motivating_figure,
)


@pytest.fixture(scope="module")
def oracle():
    p = ParametricParameters(n=2, m_train=12, m_validation=1, m_test=1)
    return ParametricOracle(p, draw(p, random_state=0).centres)


def values_of(axes):
    """What a panel shows as colours."""
    return np.asarray(axes.collections[0].get_array())


def written(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    return file.getvalue().startswith(b"\x89PNG")


def test_the_motivating_figure_has_the_three_panels_of_the_paper():
    result = run_motivating(m_convergence=(5, 20, 50), repetitions=5, draws=500, random_state=0)
    figure = motivating_figure(result)
    weights, approximation, errors = figure.axes
    np.testing.assert_array_equal(weights.lines[0].get_ydata(), result.weights[0])
    np.testing.assert_array_equal(approximation.lines[1].get_ydata(), result.conditional)
    np.testing.assert_array_equal(errors.lines[1].get_ydata(), result.convergence.uniform.mean(axis=0))
    assert (errors.get_xscale(), errors.get_yscale()) == ("log", "log")
    assert written(figure)


def test_the_label_figure_shows_bayes_x_beside_each_predictor(oracle):
    figure = label_probability_figure(oracle, {"constant": lambda X: np.full((len(X), 2), 0.5)})
    lines, bayes, constant, _ = figure.axes
    assert [line.get_label() for line in lines.lines] == ["Bayes-x", "constant"]
    curve = np.asarray(lines.lines[0].get_ydata())
    # Five changes of branch, at each of which the label turns over.
    assert np.sum(np.diff(curve > 0.5)) == 5
    assert (bayes.get_title("left"), constant.get_title("left")) == ("Bayes-x", "constant")
    assert set(np.unique(values_of(constant))) == {0.5}
    assert written(figure)


def test_the_environment_figure_orders_environments_by_centre(oracle):
    shuffled = np.random.default_rng(0).permutation(12)
    figure = environment_probability_figure(
        ParametricOracle(oracle.parameters, oracle.centres[shuffled]),
        lambda X: oracle.environment_proba(X)[:, shuffled],
    )
    true, learned, _ = figure.axes
    np.testing.assert_allclose(values_of(true), values_of(learned), rtol=1e-6)
    most_probable = np.argmax(values_of(true), axis=0)
    assert most_probable[0] < 2
    assert most_probable[-1] >= 10
    assert written(figure)
