"""Parameters act, or say that they cannot."""

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.model_selection import cross_val_score

from eber import EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.exceptions import EnvironmentWarning, FitWarning
from eber.method import aggregates
from eber.method.diagnostics import _environment_signs
from eber.method.posteriors import GridPosterior

rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
X, y, e = rows.X, rows.y, rows.environments

# Fits of an epoch are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


def fit(classifier=EBERClassifier, labels=y, **parameters):
    return classifier(**{"epochs": 1, "random_state": 0, **parameters}).fit(X, labels, environments=e)


def test_more_quadrature_nodes_than_are_of_use_are_refused_before_the_fit_and_after():
    with pytest.raises(ValueError, match=r"1000 quadrature nodes .* ask for 1000 samples"):
        fit(prediction_points=1000, decoder_hidden_dims=(4,))
    with pytest.raises(ValueError, match="500 quadrature nodes"):
        fit().set_params(prediction="quadrature", prediction_points=500).predict_proba(X)
    assert np.isfinite(fit(prediction="quadrature", prediction_points=200).predict_proba(X)).all()


def test_quadrature_while_training_has_nodes_enough_by_default():
    """With one node z is always the mean, and nothing keeps the components from becoming ever narrower or wider."""
    default, named = fit(expectation="quadrature"), fit(expectation="quadrature", expectation_points=8)
    np.testing.assert_array_equal(default.predict_proba(X), named.predict_proba(X))
    assert min(default.history_["kl"]) >= 0
    with pytest.raises(ValueError, match="expectation_points=1: so few"):
        fit(expectation="quadrature", expectation_points=1)


@pytest.mark.parametrize(
    "change", [{"objective": "decomposed"}, {"expectation_points": 3}, {"expectation": "quadrature"}]
)
def test_sampled_couplings_are_refused_where_there_are_none(change):
    with pytest.raises(ValueError, match="coupling='sampled' needs"):
        fit(coupling="sampled", **change)


@pytest.mark.parametrize("change", [{"objective": "collapsed"}, {"training_weights": "uniform"}])
def test_weights_that_nothing_trains_are_warned_of(change):
    with pytest.warns(FitWarning, match=r"p\(e\|x\) is not learned"):
        fit(env_loss_weight=0, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prediction": "bogus"}, "'prediction' parameter"),
        ({"prediction_points": 0}, "'prediction_points' parameter"),
        ({"posteriors": lambda X: None}, "this fit's posteriors were learned"),
    ],
)
def test_what_is_changed_after_a_fit_is_checked(change, message):
    fitted = fit().set_params(**change)
    for call in (fitted.predict_proba, fitted.transform, fitted.predict_environment_proba):
        with pytest.raises(ValueError, match=message):
            call(X)


def test_a_penalty_that_never_switches_on_is_warned_of():
    with pytest.warns(FitWarning, match=r"never gets its weight of 100: anneal_steps=500, but training has 4 steps"):
        fit(VRExClassifier, anneal_steps=500, penalty_weight=100)


def test_resetting_the_optimizer_changes_what_follows():
    once = fit(IRMClassifier, anneal_steps=2, penalty_weight=10.0)
    again = fit(IRMClassifier, anneal_steps=2, penalty_weight=10.0, reset_optimizer=True)
    assert not np.array_equal(once.predict_proba(X), again.predict_proba(X))


def test_environments_that_lack_classes_are_named_in_one_warning():
    labels = np.where(X[:, 0] > np.median(X[:, 0]), "high", "low").astype(object)
    labels[::7] = "other"
    labels[(e == e[0]) & (labels == "other")] = "low"
    labels[e == e[-1]] = "low"
    with pytest.warns(EnvironmentWarning) as caught:
        fit(labels=labels)
    (message,) = (str(w.message) for w in caught if w.category is EnvironmentWarning)
    assert f"Environment {e[0]} has no row of class 'other'" in message
    assert f"Environment {e[-1]} has only class 'low'" in message


@pytest.mark.parametrize(
    "values", [pd.date_range("2024-01-01", periods=len(X)), pd.to_timedelta(np.arange(len(X)), "D")]
)
def test_a_column_of_dates_or_durations_is_refused_by_name(values):
    frame = pd.DataFrame(X).add_prefix("x").assign(admitted=values)
    with pytest.raises(ValueError, match="Column 'admitted' of X is not numeric"):
        ERMClassifier(epochs=1).fit(frame, y)
    with pytest.raises(ValueError, match="Column 'admitted' of X is not numeric"):
        ERMClassifier(epochs=1).fit(frame[["admitted"]], y)


@pytest.mark.parametrize("change", [1.0, np.nan])
def test_supplied_posteriors_that_are_no_distributions_are_refused(change):
    log_q = special.log_softmax(np.zeros((2, 2, 3, 5)), axis=3)
    grid, index = np.linspace(-1, 1, 5)[:, None], np.tile(np.arange(5), (3, 1))
    GridPosterior(grid, index, log_q)
    log_q[1, 0, 2] += change
    with pytest.raises(ValueError, match="row 1, class 0, environment 2 is no distribution"):
        GridPosterior(grid, index, log_q)


@pytest.mark.parametrize("sizes", [(2850, 150), (2600, 150, 150, 100)])
def test_environments_of_unequal_size_are_no_bad_sign(sizes):
    index = np.repeat(np.arange(len(sizes)), sizes)
    sure = np.log(np.where(index[:, None] == np.arange(len(sizes)), 0.97, 0.03 / (len(sizes) - 1)))
    assert not any(sign.alarming for sign in _environment_signs(sure, index)[:2])
    base_rates = np.log(np.broadcast_to(np.array(sizes) / sum(sizes), sure.shape))
    entropy_of_mean, cross_entropy, _ = _environment_signs(base_rates, index)
    assert cross_entropy.alarming  # it knows their sizes and nothing else
    assert not entropy_of_mean.alarming


def test_the_latent_and_the_decomposition_of_many_classes_stay_small(monkeypatch):
    """Points of a single row are worked through in parts, too."""
    labels = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0.2, 0.8, 4)))
    fitted = fit(labels=labels)
    expected = (
        fitted.predict_proba(X[:3]),
        fitted.transform(X[:3]),
        fitted.decompose(X[:2], labels[:2], environments=e[:2]),
    )
    monkeypatch.setattr(aggregates, "CHUNK_ELEMENTS", 20_000)
    parts = (
        fitted.predict_proba(X[:3]),
        fitted.transform(X[:3]),
        fitted.decompose(X[:2], labels[:2], environments=e[:2]),
    )
    for whole, in_parts in zip(expected, parts, strict=True):
        np.testing.assert_allclose(in_parts, whole, atol=1e-12)


def test_warnings_point_at_the_users_line_through_scikit_learn_and_joblib():
    with pytest.warns(EnvironmentWarning) as caught:
        cross_val_score(EBERClassifier(epochs=1, random_state=0), X, y, cv=2)
    assert {w.filename for w in caught if w.category is EnvironmentWarning} == {__file__}


def test_a_model_is_not_saved_over_a_file(tmp_path):
    (tmp_path / "model").write_text("mine")
    with pytest.raises(FileExistsError, match="is a file: a model is a folder"):
        fit(ERMClassifier).save(tmp_path / "model")
    assert (tmp_path / "model").read_text() == "mine"
