"""What keeps the cost down when environments are many: sampled couplings and pseudo-environments."""

import numpy as np
import pytest
import torch

from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators.eber_fitting import LARGE_BATCH, MAX_EXACT_ENVIRONMENTS
from eber.evaluation.metrics import score
from tests.small_networks import make_networks

pytestmark = pytest.mark.filterwarnings(
    "ignore:Environment .* has only class:eber.exceptions.EnvironmentWarning",
    "ignore::eber.exceptions.FitWarning",
)


@pytest.fixture(scope="module")
def data():
    return draw(ParametricParameters(m_train=36, n=150), random_state=0)


def nll(classifier, rows):
    return score(rows.y, classifier.predict_proba(rows.X), classifier.classes_, ("nll",))["nll"]


def fit(rows, **parameters):
    classifier = EBERClassifier(epochs=20, random_state=0, **parameters)
    return classifier.fit(rows.X, rows.y, environments=rows.environments)


@pytest.fixture(scope="module")
def exact(data):
    return fit(data.train)


@pytest.fixture(scope="module")
def shared(data):
    return fit(data.train, pseudo_environments=9)


def test_sampled_couplings_end_where_the_exact_ones_do(data, exact):
    assert nll(fit(data.train, coupling="sampled"), data.test) == pytest.approx(nll(exact, data.test), abs=0.02)


def test_sampled_couplings_of_pseudo_environments_end_where_the_exact_ones_do(data, shared):
    found = fit(data.train, pseudo_environments=9, coupling="sampled")
    assert nll(found, data.test) == pytest.approx(nll(shared, data.test), abs=0.02)


def test_pseudo_environments_do_as_well_as_a_component_for_each_environment(data, exact, shared):
    assert nll(shared, data.test) == pytest.approx(nll(exact, data.test), abs=0.02)


@pytest.mark.parametrize(("m", "sampled"), [(MAX_EXACT_ENVIRONMENTS, False), (MAX_EXACT_ENVIRONMENTS + 1, True)])
def test_couplings_are_sampled_above_a_stated_number_of_environments(m, sampled):
    assert EBERClassifier()._sampled(m, 64) is sampled
    assert EBERClassifier(coupling="exact")._sampled(m, LARGE_BATCH) is False
    assert EBERClassifier(coupling="sampled")._sampled(m, 64) is True
    assert EBERClassifier(pseudo_environments=5)._sampled(m, LARGE_BATCH) is False
    assert EBERClassifier(pseudo_environments=m)._sampled(1_000, 64) is False
    assert EBERClassifier(pseudo_environments=m)._sampled(1_000, LARGE_BATCH) is sampled


def test_environments_of_the_data_keep_their_columns(data, shared):
    p = shared.predict_environment_proba(data.test.X)
    assert p.shape == (len(data.test.X), 36)
    np.testing.assert_allclose(p.sum(1), 1)
    rows = data.train
    position = np.searchsorted(shared.environments_, rows.environments)
    found = shared.predict_environment_proba(rows.X)[np.arange(len(rows.y)), position]
    assert -np.log(found).mean() < np.log(36) - 1  # nats better than a guess
    assert len(shared.environment_prior_) == 9


def test_the_probability_of_an_environment_sums_over_its_pseudo_environments():
    """By hand: p(observed|x) = sum_c p(c|x) p(observed|c), and Bayes' rule for the components that stand for it."""
    module = make_networks(0, m=3, n_observed=5)
    assert module.membership is not None
    x, e = torch.randn(4, 4, dtype=torch.float64), torch.tensor([0, 4, 2, 2])
    with torch.no_grad():
        log_h = module.log_p_e_given_x(x)
        membership = torch.softmax(module.environment_gain * module.membership, 1)  # (3, 5)
        p = membership.T @ log_h.exp()  # (5, 4)
        torch.testing.assert_close(module.log_p_observed_given_x(log_h).exp(), p)
        weights, log_p = module.components_of(e, log_h)
        torch.testing.assert_close(log_p.exp(), p[e, torch.arange(4)])
        torch.testing.assert_close(weights, membership[:, e] * log_h.exp() / p[e, torch.arange(4)])


def test_a_model_with_pseudo_environments_survives_saving(data, shared, tmp_path):
    shared.save(tmp_path / "model")
    loaded = EBERClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(data.test.X), shared.predict_proba(data.test.X))
    np.testing.assert_array_equal(
        loaded.predict_environment_proba(data.test.X), shared.predict_environment_proba(data.test.X)
    )


def test_what_pseudo_environments_cannot_do_is_said(data, shared):
    rows = data.train
    with pytest.raises(ValueError, match="pseudo_environments=None"):
        shared.decompose(rows.X, rows.y, environments=rows.environments)
    with pytest.raises(ValueError, match="pseudo_environments"):
        fit(rows, pseudo_environments=4, training_weights="uniform")
