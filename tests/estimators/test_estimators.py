"""What the fitted classifiers answer: probabilities, their parts, and what does not change them."""

import numpy as np
import pandas as pd
import pytest

from eber import PAPER_FORM, EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.method import aggregates
from eber.objectives.eber import READINGS, TERMS

CLASSIFIERS = [EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier]

# Fits of a few epochs are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
X, y, e = rows.X, rows.y, rows.environments
three = np.digitize(X[:, 1], np.quantile(X[:, 1], [1 / 3, 2 / 3]))  # three classes


@pytest.fixture(scope="module")
def model():
    """A fit that has learned something: components, weights and decoder are far from where they began."""
    return EBERClassifier(epochs=15, learning_rate=0.01, random_state=0).fit(X, y, environments=e)


@pytest.fixture(scope="module")
def model_of_three():
    return EBERClassifier(epochs=5, learning_rate=0.01, random_state=0).fit(X, three, environments=e)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("labels", [y, three])
def test_probabilities_are_probabilities(classifier, labels):
    fitted = classifier(epochs=3, random_state=0).fit(X, labels, environments=e)
    proba = fitted.predict_proba(X)
    assert proba.shape == (len(X), len(set(labels)))
    assert proba.dtype == np.float64
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[proba.argmax(1)])


def test_probabilities_stay_so_at_rows_far_from_all_others(model, model_of_three):
    for fitted in (model, model_of_three):
        proba = fitted.predict_proba(np.array([[1e4, -1e4, 1e4, 0], [-1e30, 0, 0, 1e30], [1e38, 1e38, 1e38, 1e38]]))
        assert np.all((proba >= 0) & (proba <= 1 + 1e-12))
        np.testing.assert_allclose(proba.sum(1), 1, atol=1e-9)


@pytest.mark.parametrize("latent_dim", [1, 2, 3, 4])
@pytest.mark.parametrize("labels", [y, three])
def test_any_latent_dimension_and_number_of_classes(latent_dim, labels):
    fitted = EBERClassifier(latent_dim=latent_dim, prediction_points=8, epochs=1, random_state=0)
    fitted.fit(X, labels, environments=e)
    assert fitted.transform(X).shape == (len(X), latent_dim)
    assert fitted.latent_dim_ == latent_dim
    np.testing.assert_allclose(fitted.predict_proba(X).sum(1), 1, atol=1e-12)


def test_the_latent_has_one_dimension_less_than_classes_unless_told(model, model_of_three):
    assert (model.latent_dim_, model_of_three.latent_dim_) == (1, 2)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_row_is_predicted_alike_alone_and_among_others(classifier):
    fitted = classifier(epochs=3, random_state=0).fit(X, three, environments=e)
    order = np.random.default_rng(0).permutation(len(X))
    whole = fitted.predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(X[order]), whole[order], atol=1e-13)
    np.testing.assert_allclose(np.vstack([fitted.predict_proba(X[i : i + 1]) for i in range(9)]), whole[:9], atol=1e-13)


@pytest.mark.parametrize("prediction", ["auto", "quadrature", "monte_carlo"])
def test_working_in_chunks_changes_nothing(prediction, model, model_of_three, monkeypatch):
    for fitted, labels in ((model, y), (model_of_three, three)):
        fitted.set_params(prediction=prediction, prediction_points=5)

        def answers(fitted=fitted, labels=labels):
            return (
                fitted.predict_proba(X),
                fitted.predict_environment_proba(X),
                fitted.transform(X),
                fitted.explain_uncertainty(X),
                fitted.decompose(X[::8], labels[::8], environments=e[::8])["model"],
            )

        whole = answers()
        with monkeypatch.context() as patch:
            patch.setattr(aggregates, "CHUNK_ELEMENTS", 5_000)
            for a, b in zip(whole, answers(), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-12)
        fitted.set_params(prediction="auto", prediction_points=None)


def test_the_ways_to_integrate_over_z_agree(model, model_of_three):
    """Quadrature against the closed form, and Monte Carlo against it within five of its standard errors."""
    samples = 4000
    for fitted, ways in ((model, ("quadrature", "monte_carlo")), (model_of_three, ("monte_carlo",))):
        exact = fitted.predict_proba(X)  # closed form, or quadrature in two dimensions
        for way in ways:
            points = samples if way == "monte_carlo" else 64
            other = fitted.set_params(prediction=way, prediction_points=points).predict_proba(X)
            error = np.abs(other - exact)
            if way == "quadrature":
                assert error.max() < 1e-6
            else:
                assert error.max() > 0
                # p(1 - p) bounds the variance of p(y|z) under q(z;x).
                assert np.all(error <= 5 * np.sqrt(exact * (1 - exact) / samples) + 1e-9)
        fitted.set_params(prediction="auto", prediction_points=None)


def test_monte_carlo_gives_the_same_answer_every_time():
    fitted = EBERClassifier(latent_dim=3, epochs=1, random_state=0).fit(X, three, environments=e)
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.predict_proba(X))


def test_predictions_are_the_environments_predictions_averaged(model):
    """Equation (pred): with all weight on one environment its own prediction is left, and they average to the whole."""
    p_e = model.predict_environment_proba(X)
    assert p_e.shape == (len(X), 6)
    np.testing.assert_allclose(p_e.sum(1), 1, atol=1e-12)
    parts = []
    for j in range(6):
        model.set_params(prediction_weights=lambda X, j=j: np.tile(np.eye(6)[j], (len(X), 1)))
        parts.append(model.predict_proba(X))
    model.set_params(prediction_weights="learned")
    np.testing.assert_allclose(np.einsum("enk,ne->nk", parts, p_e), model.predict_proba(X), atol=1e-12)


def test_environments_with_other_names_of_the_same_order_are_the_same_environments(model):
    renamed = EBERClassifier(**model.get_params()).fit(X, y, environments=np.array(list("PQRSTU"))[e])
    np.testing.assert_array_equal(renamed.predict_environment_proba(X), model.predict_environment_proba(X))
    np.testing.assert_array_equal(renamed.predict_proba(X), model.predict_proba(X))
    assert renamed.environments_.tolist() == list("PQRSTU")


def test_the_columns_of_p_e_given_x_are_the_environments(model):
    p_e = model.predict_environment_proba(X)
    for j in range(6):
        assert p_e[e == j].mean(0).argmax() == j
    np.testing.assert_allclose(model.environment_prior_, p_e.mean(0), atol=1e-6)


def test_uncertainty_adds_up_and_is_never_negative(model, model_of_three):
    for fitted in (model, model_of_three):
        table = fitted.explain_uncertainty(X)
        assert list(table.columns) == ["total", "within_environments", "between_environments"]
        assert table.to_numpy().min() >= 0
        parts = table["within_environments"] + table["between_environments"]
        np.testing.assert_allclose(parts, table["total"], atol=1e-12)
        assert table["total"].max() <= np.log(len(fitted.classes_)) + 1e-12
        proba = fitted.predict_proba(X)
        np.testing.assert_allclose(table["total"], -(proba * np.log(proba)).sum(1), atol=1e-12)


def test_uncertainty_between_environments_is_seen_where_they_disagree(model):
    table = model.explain_uncertainty(X)
    assert table["between_environments"].max() > 0.05
    model.set_params(prediction_weights=lambda X: np.tile(np.eye(6)[0], (len(X), 1)))
    assert model.explain_uncertainty(X)["between_environments"].max() < 1e-12
    model.set_params(prediction_weights="learned")


def test_uncertainty_keeps_the_index_of_a_frame_and_takes_a_list(model):
    index = [f"patient {i}" for i in range(len(X))]
    named = EBERClassifier(epochs=1, random_state=0).fit(pd.DataFrame(X, index=index), y, environments=e)
    assert list(named.explain_uncertainty(pd.DataFrame(X, index=index)).index) == index
    assert list(model.explain_uncertainty(X[:3].tolist()).index) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning")  # one environment is the point
def test_one_environment_leaves_no_uncertainty_between_environments():
    fitted = EBERClassifier(epochs=2, random_state=0).fit(X, y)
    assert fitted.explain_uncertainty(X)["between_environments"].max() < 1e-12
    np.testing.assert_array_equal(fitted.predict_environment_proba(X), np.ones((len(X), 1)))
    table = fitted.decompose(X, y, environments=["all"] * len(X))
    assert abs(table.loc["R(q)", "model"]) < 1e-12


def test_theorem_1_is_an_identity_under_the_model(model, model_of_three):
    deep = EBERClassifier(latent_dim=3, prediction_points=20, epochs=2, random_state=0).fit(X, three, environments=e)
    for fitted, labels in ((model, y), (model_of_three, three), (deep, three)):
        table = fitted.decompose(X[::4], labels[::4], environments=e[::4])
        assert list(table.columns) == ["model", "observed"]
        assert list(table.index) == [
            *(f"L_e[{j}]" for j in range(6)),
            "E[L_e]",
            "posterior discrepancy",
            "prior discrepancy",
            "R(q)",
            "E[L_e] + R(q)",
            "L",
            "residual",
        ]
        assert np.all(np.isfinite(table))
        assert abs(table.loc["residual", "model"]) < 1e-10
        for column in table:
            t = table[column]
            assert t["R(q)"] == pytest.approx(t["posterior discrepancy"] - t["prior discrepancy"], abs=1e-12)
            assert t["E[L_e] + R(q)"] == pytest.approx(t["E[L_e]"] + t["R(q)"], abs=1e-12)
            assert t["residual"] == pytest.approx(t["L"] - t["E[L_e] + R(q)"], abs=1e-12)


def test_the_bound_of_the_decomposition_bounds_the_likelihood(model):
    table = model.set_params(prediction_points=64).decompose(X, y, environments=e)
    model.set_params(prediction_points=None)
    log_likelihood = np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()
    assert table.loc["L", "observed"] <= log_likelihood
    assert table.loc["posterior discrepancy", "model"] >= 0
    assert table.loc["prior discrepancy", "model"] >= 0


def test_the_observed_column_weighs_environments_by_their_rows(model):
    chosen = (e != 2) & ((e != 0) | (np.arange(len(e)) % 4 == 0))
    table = model.decompose(X[chosen], y[chosen], environments=e[chosen])["observed"]
    assert np.isnan(table["L_e[2]"])  # it has no rows here
    shares = np.bincount(e[chosen], minlength=6) / chosen.sum()
    expected = sum(shares[j] * table[f"L_e[{j}]"] for j in range(6) if j != 2)
    assert table["E[L_e]"] == pytest.approx(expected, abs=1e-12)


def test_the_decomposition_is_named_after_environments_and_refuses_strangers(model):
    hospitals = np.array(list("ABCDEF"))[e]
    named = EBERClassifier(epochs=1, random_state=0).fit(X, y == 1, environments=hospitals)
    assert "L_e[C]" in named.decompose(X, y == 1, environments=hospitals).index
    with pytest.raises(ValueError, match=r"environments has 'Z' at row 3, which is no environment of the fit"):
        named.decompose(X, y == 1, environments=np.where(np.arange(len(e)) == 3, "Z", hospitals))
    with pytest.raises(ValueError, match=r"y has 7 at row 0, which is no class of the fit; it knows \[0, 1\]"):
        model.decompose(X, y + 7, environments=e)
    with pytest.raises(ValueError, match="X has 240 rows, but y has 239 entries"):
        model.decompose(X, y[:-1], environments=e)
    with pytest.raises(ValueError, match="X has 240 rows, but environments has 239 entries"):
        model.decompose(X, y, environments=e[:-1])


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("options", [{}, {"expectation": "quadrature", "expectation_points": 5, "latent_dim": 2}])
def test_every_reading_fits_and_tells_every_term(reading, options):
    fitted = EBERClassifier(objective=reading, tie_weight=0.3, env_loss_weight=0.7, random_state=0, **options)
    history = fitted.set_params(epochs=3, learning_rate=0.01).fit(X, three, environments=e).history_
    assert set(history) == {"loss", *TERMS}
    assert all(len(values) == 3 and np.all(np.isfinite(values)) for values in history.values())
    h = {name: np.array(values) for name, values in history.items()}
    bound = h["likelihood"] - h["kl"] + h["posterior_coupling"] - h["prior_coupling"]
    tie = 0.3 * h["tie"] if reading in ("stratified", "algorithm") else 0.0
    np.testing.assert_allclose(h["loss"], -bound + 0.7 * h["environment_loss"] - tie, rtol=1e-4)
    if reading == "collapsed":
        assert np.all(h["posterior_coupling"] == 0)
        assert np.all(h["prior_coupling"] == 0)
    assert h["loss"][-1] < h["loss"][0]


@pytest.mark.parametrize("classifier", [IRMClassifier, VRExClassifier, FishrClassifier])
def test_the_baselines_tell_risk_and_penalty(classifier):
    history = classifier(epochs=2, penalty_weight=3.0, random_state=0).fit(X, y, environments=e).history_
    loss, risk, penalty = (np.array(history[name]) for name in ("loss", "risk", "penalty"))
    np.testing.assert_allclose(loss, risk + 3.0 * penalty, rtol=1e-5)


def test_the_papers_plain_form_has_nothing_of_the_recipe():
    plain = EBERClassifier.paper_form(epochs=2, random_state=0, average_decay=0.9)
    assert {name: plain.get_params()[name] for name in PAPER_FORM} == {**PAPER_FORM, "average_decay": 0.9}
    plain.set_params(average_decay=None).fit(X, y, environments=e)
    assert plain.module_.environment_gain == 1
    assert plain.module_.bounds is None
    assert set(PAPER_FORM) <= set(EBERClassifier().get_params())
    assert all(EBERClassifier().get_params()[name] != value for name, value in PAPER_FORM.items())
