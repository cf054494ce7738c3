"""Adaptation to the unlabelled rows of a new environment: the estimate, what it is worth, and when it says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from eber import EBERClassifier
from eber.datasets.prototypes import draw
from eber.exceptions import AdaptationWarning
from eber.method.adaptation import adapt_mixture, estimate_mixture

TOLERANCE = 1e-7  # of the likelihood, in nats a row


def likelihood(log_p_e_given_x, prior, mixture):
    """Mean of log p(x) under a mixture of environments, up to what does not depend on it."""
    with np.errstate(divide="ignore"):
        return logsumexp(log_p_e_given_x + np.log(mixture) - np.log(prior), axis=1).mean()


@st.composite
def rows_and_prior(draw):
    """Any p(e|x), sharp or flat, for few or many rows, with any training mixture."""
    n, m = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    logits = draw(arrays(float, (n, m), elements=st.floats(-30, 30)))
    prior = draw(arrays(float, m, elements=st.floats(-4, 4)))
    return log_softmax(logits, axis=1), softmax(prior)


@settings(deadline=None, max_examples=200)
@given(rows_and_prior())
def test_the_estimate_is_a_distribution_that_nothing_beats(case):
    """Karush-Kuhn-Tucker: D_e = mean p(x|e)/p(x) is at most one, and one wherever the mixture has weight."""
    log_p, prior = case
    mixture = estimate_mixture(log_p, prior)
    assert mixture.min() >= 0
    assert mixture.sum() == pytest.approx(1, abs=1e-12)
    log_ratio = log_p - np.log(prior)
    with np.errstate(divide="ignore"):
        log_p_x = logsumexp(log_ratio + np.log(mixture), axis=1, keepdims=True)
    D = np.exp(log_ratio - log_p_x).mean(0)
    assert D.max() <= 1 + TOLERANCE
    assert mixture @ D == pytest.approx(1, abs=1e-9)
    assert likelihood(log_p, prior, mixture) >= likelihood(log_p, prior, prior) - 1e-12


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sharpness", [0.1, 1.0, 5.0])
def test_the_estimate_is_that_of_a_general_optimiser(seed, sharpness):
    rng = np.random.default_rng(seed)
    log_p = log_softmax(sharpness * rng.standard_normal((60, 4)) + rng.standard_normal(4), axis=1)
    prior = rng.dirichlet(np.full(4, 2.0))
    found = minimize(
        lambda t: -likelihood(log_p, prior, softmax(t)), np.zeros(4), method="BFGS", options={"gtol": 1e-10}
    )
    mixture = estimate_mixture(log_p, prior)
    assert likelihood(log_p, prior, mixture) >= -found.fun - TOLERANCE
    if sharpness >= 1:
        np.testing.assert_allclose(mixture, softmax(found.x), atol=2e-3)


def test_two_environments_by_hand():
    """Rows of which a share s is surely from the first environment: the mixture is s, whatever the training had."""
    sure = np.log([[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]])
    for s in (0.0, 0.1, 0.5, 0.9, 1.0):
        log_p = sure[(np.arange(200) >= 200 * s).astype(int)]
        np.testing.assert_allclose(estimate_mixture(log_p, np.array([0.3, 0.7])), [s, 1 - s], atol=1e-6)


def test_training_rows_give_back_the_training_mixture():
    rng = np.random.default_rng(0)
    log_p = log_softmax(rng.standard_normal((500, 5)), axis=1)
    prior = np.exp(log_p).mean(0)
    np.testing.assert_allclose(estimate_mixture(log_p, prior), prior, atol=1e-6)


def test_overlapping_environments_do_not_stop_it_short():
    """Where plain EM would still be far from the maximum after ten thousand steps."""
    rng = np.random.default_rng(0)
    log_p = log_softmax(0.3 * rng.standard_normal((3000, 36)), axis=1)
    prior = np.exp(log_p).mean(0)
    shifted = (np.exp(log_p) / prior) @ rng.dirichlet(np.full(36, 0.3))
    log_p = log_p[rng.choice(3000, 3000, p=shifted / shifted.sum())]
    mixture = estimate_mixture(log_p, prior)
    ratio = np.exp(log_p) / prior
    assert (ratio / (ratio @ mixture)[:, None]).mean(0).max() <= 1 + TOLERANCE


def reasons(log_p, prior):
    return " / ".join(adapt_mixture(log_p, prior).reasons)


def shifted_rows(n, sharpness=4.0, seed=0):
    """Rows of three environments, nearly all from the first, and the training mixture of equal parts."""
    rng = np.random.default_rng(seed)
    e = rng.choice(3, size=n, p=[0.9, 0.05, 0.05])
    return log_softmax(sharpness * np.eye(3)[e] + 0.1 * rng.standard_normal((n, 3)), axis=1), np.full(3, 1 / 3)


def test_many_rows_of_a_shifted_mixture_are_trusted():
    adaptation = adapt_mixture(*shifted_rows(500))
    assert adaptation.trusted
    assert adaptation.mixture[0] > 0.85
    assert adaptation.p_value < 1e-6
    assert adaptation.effective_rows == pytest.approx(500 * adaptation.sharpness)


def test_it_says_when_not_to_be_trusted():
    assert reasons(*shifted_rows(500)) == ""
    assert "59 rows are few for 3 environments; give at least 60" in reasons(*shifted_rows(59))
    assert "p(e|x) is almost flat" in reasons(*shifted_rows(20_000, sharpness=0.2))
    log_p, _ = shifted_rows(500)
    assert "the new rows fit the training mixture as well" in reasons(log_p, np.exp(log_p).mean(0))
    assert "there is one training environment" in reasons(np.zeros((100, 1)), np.ones(1))


def test_the_gain_is_that_of_the_likelihood():
    log_p, prior = shifted_rows(500)
    adaptation = adapt_mixture(log_p, prior)
    expected = likelihood(log_p, prior, adaptation.mixture) - likelihood(log_p, prior, prior)
    assert adaptation.log_likelihood_gain == pytest.approx(expected, abs=1e-12)


# Four Gaussian prototypes, where the pooled rule and the new environment's own rule are known.


def nll(proba, y):
    return -np.log(proba[np.arange(len(y)), y]).mean()


def fit(data, seed=0, **parameters):
    """About a thousand steps, with a step size that makes them enough."""
    settings = {"epochs": 20, "batch_size": 128, "learning_rate": 5e-3, "random_state": seed, **parameters}
    return EBERClassifier(**settings).fit(data.train.X, data.train.y, environments=data.train.environments)


@pytest.fixture(scope="module")
def prototypes():
    return draw(random_state=0)


@pytest.fixture(scope="module")
def model(prototypes):
    return fit(prototypes)


def test_adaptation_closes_most_of_the_gap_to_the_new_environments_own_rule(prototypes, model):
    """No mixture of training environments can close more than about 0.82 of it: theirs all lie short of the new one."""
    closed, possible = [], []
    for seed in range(3):
        data = prototypes if seed == 0 else draw(random_state=seed)
        fitted = model if seed == 0 else fit(data, seed)
        X, y, p = data.test.X, data.test.y, data.parameters
        pooled, own = nll(p.pooled_label_proba(X), y), nll(p.own_label_proba(X), y)
        plain, adapted = nll(fitted.predict_proba(X), y), nll(fitted.adapt(X).predict_proba(X), y)
        assert plain == pytest.approx(pooled, abs=0.03)  # alone, no row says more than the pooled rule
        closed.append((pooled - adapted) / (pooled - own))
        possible.append((pooled - nll(p.label_proba(X, p.mixtures[-1]), y)) / (pooled - own))
    assert np.mean(closed) > 0.65
    assert min(closed) > 0.6
    assert np.mean(closed) < np.mean(possible)


def test_adaptation_finds_the_environment_nearest_to_the_new_one(prototypes, model):
    adaptation = model.adapt(prototypes.test.X).adaptation_
    assert adaptation.mixture[5] > 0.99
    assert adaptation.trusted


def test_the_original_is_untouched(prototypes, model):
    X = prototypes.test.X
    before, weights = model.predict_proba(X), model.predict_environment_proba(X)
    adapted = model.adapt(X)
    assert np.abs(adapted.predict_proba(X) - before).max() > 0.1
    np.testing.assert_array_equal(model.predict_proba(X), before)
    np.testing.assert_array_equal(model.predict_environment_proba(X), weights)
    assert not hasattr(model, "adaptation_")


def test_the_adapted_copy_reweights_environments_by_bayes_rule(prototypes, model):
    X = prototypes.test.X
    mixed = X[: len(X) // 2].tolist() + prototypes.train.X[:: len(prototypes.train) // 1000].tolist()
    adapted = model.adapt(mixed)
    a = adapted.adaptation_
    expected = model.predict_environment_proba(X) * a.mixture / a.training_mixture
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(adapted.predict_environment_proba(X), expected, atol=1e-12)


def test_every_answer_of_an_adapted_copy_is_finite(prototypes, model):
    """Environments that are ruled out have weight zero, whose logarithm is not finite."""
    data = prototypes.test.select(np.arange(50))
    adapted = model.adapt(prototypes.test.X)
    assert adapted.adaptation_.mixture.min() < 1e-6
    assert np.all(np.isfinite(adapted.predict_proba(data.X)))
    assert np.all(np.isfinite(adapted.transform(data.X)))
    assert np.all(np.isfinite(adapted.explain_uncertainty(data.X)))
    table = adapted.decompose(data.X, data.y, environments=np.full(50, 5))
    assert abs(table.loc["residual", "model"]) < 1e-10
    assert np.all(np.isfinite(table.drop([f"L_e[{j}]" for j in range(5)])))


def test_an_adapted_copy_adapts_from_the_training_mixture_again(prototypes, model):
    X, others = prototypes.test.X, prototypes.train.X[prototypes.train.environments == 0]
    twice, once = model.adapt(X).adapt(others), model.adapt(others)
    np.testing.assert_array_equal(twice.adaptation_.mixture, once.adaptation_.mixture)
    np.testing.assert_array_equal(twice.adaptation_.training_mixture, model.environment_prior_)
    np.testing.assert_array_equal(twice.predict_proba(X), once.predict_proba(X))


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")  # two epochs are no good fit
def test_a_refit_forgets_the_adaptation(prototypes, model):
    small = prototypes.train.select(np.arange(len(prototypes.train)) % 20 == 0)
    adapted = model.adapt(prototypes.test.X).set_params(epochs=2)
    adapted.fit(small.X, small.y, environments=small.environments)
    assert not hasattr(adapted, "adaptation_")


def test_few_rows_and_rows_like_the_training_ones_are_warned_of(prototypes, model):
    with pytest.warns(AdaptationWarning, match="Do not trust this adaptation: 30 rows are few for 6 environments"):
        model.adapt(prototypes.test.X[:30])
    with pytest.warns(AdaptationWarning, match="the new rows fit the training mixture as well") as caught:
        adapted = model.adapt(prototypes.train.X)
    assert caught[0].filename == __file__  # it points at who called
    assert not adapted.adaptation_.trusted


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")  # two epochs, and bad ways to fit on purpose
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tie_weight": 0.0}, "'stratified' objective with tie_weight=0 does not bind components to environments"),
        ({"tie_weight": 0.0, "objective": "algorithm"}, "'algorithm' objective with tie_weight=0"),
        ({"env_loss_weight": 0.0}, "without an environment loss; fit with env_loss_weight > 0"),
        ({"learning_rate": 1e-9}, "almost flat"),
    ],
)
def test_fits_that_do_not_tie_components_to_environments_are_warned_of(parameters, message, prototypes):
    fitted = fit(prototypes, epochs=2, **parameters).set_params(tie_weight=0.5, env_loss_weight=1.0)
    with pytest.warns(AdaptationWarning) as caught:
        fitted.adapt(prototypes.test.X)
    assert any(
        message in str(warning.message) for warning in caught
    )  # it is the fit that counts, not what was set since


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")  # two epochs
@pytest.mark.parametrize("objective", ["decomposed", "collapsed"])
def test_readings_that_contain_the_tie_need_no_other(objective, prototypes):
    adaptation = fit(prototypes, epochs=2, objective=objective, tie_weight=0.0).adapt(prototypes.test.X).adaptation_
    assert not any("bind components" in reason for reason in adaptation.reasons)
