"""The hooks of the ablations: environment weights and posteriors that are supplied in place of learned ones."""

import numpy as np
import pytest
from scipy.special import logsumexp

from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.datasets.parametric_oracle import ParametricOracle
from eber.method import aggregates
from eber.method.posteriors import GridPosterior

# Fits of one or two epochs are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

sample = draw(ParametricParameters(n=30, m_validation=1, m_test=4, d=4), random_state=0)
X, y, e = sample.train.X, sample.train.y, sample.train.environments
oracle = ParametricOracle(sample.parameters, sample.centres)


def fit(**parameters):
    return EBERClassifier(**{"epochs": 2, "random_state": 0, **parameters}).fit(X, y, environments=e)


def uniform(X):
    return np.full((len(X), 6), 1 / 6)


@pytest.mark.parametrize("hook", ["training_weights", "prediction_weights"])
def test_uniform_by_name_and_by_hand_are_the_same(hook):
    named, by_hand = fit(**{hook: "uniform"}), fit(**{hook: uniform})
    np.testing.assert_allclose(named.predict_proba(X), by_hand.predict_proba(X), atol=1e-6)
    assert np.abs(named.predict_proba(X) - fit().predict_proba(X)).max() > 1e-4


def test_training_weights_act_at_the_fit_and_prediction_weights_at_prediction():
    learned, in_training = fit(), fit(training_weights="uniform")
    before = learned.predict_proba(X)
    assert np.ptp(in_training.predict_environment_proba(X)) > 0  # prediction still uses the learned h
    at_prediction = learned.set_params(prediction_weights="uniform").predict_proba(X)
    np.testing.assert_allclose(learned.predict_environment_proba(X), 1 / 6)
    np.testing.assert_array_equal(at_prediction, fit(prediction_weights="uniform").predict_proba(X))
    assert np.abs(at_prediction - before).max() > 1e-4
    np.testing.assert_array_equal(learned.set_params(prediction_weights="learned").predict_proba(X), before)


def test_the_oracles_weights_are_used_as_they_are():
    model = fit(training_weights=oracle.environment_proba, prediction_weights=oracle.environment_proba)
    np.testing.assert_allclose(
        model.predict_environment_proba(X), oracle.environment_proba(X.astype(np.float32)), atol=1e-9
    )


def test_weights_that_sum_to_one_only_in_float32_still_give_probabilities():
    model = fit(prediction_weights=lambda X: uniform(X) * (1 + 5e-5))
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda X: np.full((len(X), 5), 0.2), r"weights have shape \(180, 5\), expected \(180, 6\)"),
        (lambda X: np.full(6, 1 / 6), r"weights have shape \(6,\), expected \(180, 6\)"),
        (lambda X: np.full((len(X), 6), 0.2), "not a distribution at row 0"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 4, np.eye(6)[0] * 2 - 1 / 6, 1 / 6), "at row 4"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 7, np.nan, np.full(6, 1 / 6)), "at row 7"),
    ],
)
def test_weights_that_are_no_distribution_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        fit(training_weights=weights)
    model = fit(epochs=1).set_params(prediction_weights=weights)
    for call in (model.predict_proba, model.predict_environment_proba, model.transform):
        with pytest.raises(ValueError, match=message):
            call(X)


def test_weights_of_an_unknown_name_are_refused_after_the_fit_too():
    with pytest.raises(ValueError, match=r"'prediction_weights' parameter .* Got 'oracle'"):
        fit(epochs=1).set_params(prediction_weights="oracle").predict_proba(X)


def test_adaptation_needs_the_learned_weights():
    with pytest.raises(ValueError, match="set prediction_weights='learned' first"):
        fit(epochs=1, prediction_weights="uniform").adapt(X)


@pytest.fixture(scope="module")
def with_oracle_posteriors():
    return fit(posteriors=oracle.posteriors)


def test_supplied_posteriors_leave_only_decoder_f0_and_h_to_learn(with_oracle_posteriors):
    model = with_oracle_posteriors
    assert model.module_.g is None
    assert all(np.all(np.isfinite(values)) for values in model.history_.values())
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-9)
    assert "spread of mu over environments in units of sigma" not in [d.name for d in model.diagnostics_]
    with pytest.raises(ValueError, match="decompose needs learned posteriors"):
        model.decompose(X, y, environments=e)


def test_predictions_from_supplied_posteriors_are_sums_over_their_grid(with_oracle_posteriors):
    """Equation (pred) written out: weights of h and f0, the decoder on the nodes, z averaged likewise."""
    model, grid = with_oracle_posteriors, oracle.posteriors(X.astype(np.float32))
    f1, log_f0 = model.module_.f1[0], model.module_.log_p_y_given_xe(model._features(X)).detach().numpy()
    logits = grid.z @ f1.weight.detach().numpy().T + f1.bias.detach().numpy()  # (Q, 2)
    p_y_given_z = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))[grid.index]  # (m, W, 2)
    w = np.einsum("kmn,nm->nkm", np.exp(log_f0), model.predict_environment_proba(X))
    proba = np.einsum("nkm,nkmw,mwj->nj", w, np.exp(grid.log_q), p_y_given_z)
    mean_z = np.einsum("nkm,nkmw,mw->n", w, np.exp(grid.log_q), grid.z[grid.index, 0])
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-9)
    np.testing.assert_allclose(model.transform(X)[:, 0], mean_z, atol=1e-8)


def test_supplied_posteriors_are_asked_for_in_parts_of_bounded_size(with_oracle_posteriors, monkeypatch):
    model, asked = with_oracle_posteriors, []
    whole = model.predict_proba(X)

    def watched(X):
        grid = oracle.posteriors(X)
        asked.append(grid.log_q.size)
        return grid

    monkeypatch.setattr(aggregates, "CHUNK_ELEMENTS", 100_000)
    np.testing.assert_allclose(model.set_params(posteriors=watched).predict_proba(X), whole, atol=1e-12)
    model.set_params(posteriors=oracle.posteriors)
    assert len(asked) > 3
    assert max(asked) <= 100_000


def changed(**fields):
    """The oracle's posteriors with fields replaced by functions of them."""

    def posteriors(X):
        grid = oracle.posteriors(X)
        return GridPosterior(**{**vars(grid), **{name: change(getattr(grid, name)) for name, change in fields.items()}})

    return posteriors


@pytest.mark.parametrize(
    ("posteriors", "message"),
    [
        (changed(log_q=lambda q: q[:-1]), r"log_q of shape \(63, 2, 6, \d+\), expected .* = \(64, 2, 6, '...'\)"),
        (changed(log_q=lambda q: np.repeat(q, 2, axis=1)), r"log_q of shape \(64, 4, 6, "),
        (changed(log_q=lambda q: q[:, :, :5], index=lambda i: i[:5]), r"log_q of shape \(64, 2, 5, "),
        (changed(z=lambda z: np.hstack([z, z])), "have 2 latent dimensions, but latent_dim is 1"),
    ],
)
def test_posteriors_that_do_not_fit_are_refused(posteriors, message):
    with pytest.raises(ValueError, match=message):
        fit(posteriors=posteriors)


def test_posteriors_of_another_type_are_refused():
    with pytest.raises(TypeError, match="must return a GridPosterior, got ndarray"):
        fit(posteriors=lambda X: X)


def test_supplied_posteriors_know_one_reading():
    with pytest.raises(ValueError, match="Supplied posteriors need objective='stratified', got 'decomposed'"):
        fit(posteriors=oracle.posteriors, objective="decomposed")
