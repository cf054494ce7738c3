"""One pass over rows says everything, and every other answer is a part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.exceptions import AdaptationWarning
from eber.method import inference

# Fits of a few epochs are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
X, e = rows.X, rows.environments
FITS: dict[str, tuple[int, dict[str, Any]]] = {
    "two classes": (2, {}),
    "three classes": (3, {}),
    "five classes": (5, {}),
    "pseudo-environments": (2, {"pseudo_environments": 3}),
    "supplied weights": (2, {"prediction_weights": "uniform"}),
}


def labels(n_classes: int) -> np.ndarray:
    return np.digitize(X[:, 1], np.quantile(X[:, 1], np.arange(1, n_classes) / n_classes))


@pytest.fixture(scope="module", params=FITS)
def fitted(request: pytest.FixtureRequest) -> EBERClassifier:
    n_classes, options = FITS[request.param]
    y = labels(n_classes)
    return EBERClassifier(epochs=8, learning_rate=0.01, random_state=0, **options).fit(X, y, environments=e)


def test_every_answer_is_a_part_of_one_explanation(fitted: EBERClassifier) -> None:
    explanation = fitted.explain(X)
    np.testing.assert_array_equal(fitted.predict_proba(X), explanation.p_y_given_x)
    np.testing.assert_array_equal(fitted.predict_environment_proba(X), explanation.p_e_given_x)
    np.testing.assert_allclose(fitted.transform(X), explanation.mean_z, rtol=0, atol=1e-12)
    pd.testing.assert_frame_equal(fitted.explain_uncertainty(X), explanation.uncertainty)
    n, m, K = len(X), len(fitted.environments_), len(fitted.classes_)
    assert explanation.p_e_given_x.shape == (n, m)
    assert explanation.p_y_given_xe.shape == (n, fitted.pseudo_environments or m, K)
    assert explanation.mean_z.shape == (n, fitted.latent_dim_)
    for p in (explanation.p_y_given_x, explanation.p_y_given_xe, explanation.p_e_given_x):
        np.testing.assert_allclose(p.sum(-1), 1, atol=1e-12)


def test_an_explanation_as_a_frame_has_the_columns_of_the_command_and_keeps_the_index(fitted: EBERClassifier) -> None:
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    explanation = fitted.explain(frame)
    table = explanation.to_frame()
    assert list(table.index) == list(frame.index) == list(explanation.uncertainty.index)
    assert list(table.columns) == [
        "predicted",
        *(f"p({label})" for label in fitted.classes_),
        *(f"uncertainty_{name}" for name in ("total", "within_environments", "between_environments")),
        *(f"z{j + 1}" for j in range(fitted.latent_dim_)),
        *(f"p(environment {name})" for name in fitted.environments_),
    ]
    np.testing.assert_array_equal(table["predicted"], fitted.predict(X))
    np.testing.assert_array_equal(table[f"p({fitted.classes_[1]})"], explanation.p_y_given_x[:, 1])
    np.testing.assert_array_equal(table[f"p(environment {fitted.environments_[2]})"], explanation.p_e_given_x[:, 2])
    np.testing.assert_array_equal(table["z1"], explanation.mean_z[:, 0])
    assert list(fitted.explain(X[:3]).to_frame().index) == [0, 1, 2]


@pytest.mark.filterwarnings(f"ignore::{AdaptationWarning.__module__}.AdaptationWarning")
@pytest.mark.parametrize("options", [{}, {"pseudo_environments": 3}])
def test_an_explanation_is_adapted_without_asking_the_networks_again(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = EBERClassifier(epochs=8, learning_rate=0.01, random_state=0, **options).fit(X, labels(2), environments=e)
    explanation = fitted.explain(X[e < 2])
    expected = fitted.adapt(X[e < 2])
    answers = expected.explain(X[e < 2])
    with monkeypatch.context() as patch:
        patch.setattr(inference, "in_chunks", None)
        adapted = fitted.adapt(explanation)
        found = explanation.adapted(adapted.member_adaptations())
        probabilities, latents, p_e = found.p_y_given_x, found.mean_z, found.p_e_given_x
    np.testing.assert_allclose(adapted.adaptation_.mixture, expected.adaptation_.mixture, atol=1e-12)
    np.testing.assert_allclose(probabilities, answers.p_y_given_x, atol=1e-12)
    np.testing.assert_allclose(latents, answers.mean_z, atol=1e-12)
    np.testing.assert_allclose(p_e, answers.p_e_given_x, atol=1e-12)
    assert np.abs(p_e - explanation.p_e_given_x).max() > 1e-9, "something was adapted"
    with pytest.raises(ValueError, match="explained by an adapted classifier; give the rows themselves"):
        expected.adapt(answers)


@pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning")
def test_a_model_of_many_classes_that_was_saved_before_float32_stays_in_float64(tmp_path: Path) -> None:
    fitted = EBERClassifier(epochs=1, random_state=0, hidden_dims=(4,)).fit(X, labels(16), environments=e)
    assert fitted.auto_prediction_ == "expansion_float32"
    fast = fitted.predict_proba(X)
    fitted.save(tmp_path / "new")
    np.testing.assert_array_equal(EBERClassifier.load(tmp_path / "new").predict_proba(X), fast)
    fitted.auto_prediction_ = "expansion"  # what such a model has kept
    fitted.save(tmp_path / "old")
    loaded = EBERClassifier.load(tmp_path / "old")
    assert loaded._integral().half.dtype == torch.float64  # type: ignore[union-attr]
    exact = loaded.predict_proba(X)
    assert 0 < np.abs(exact - fast).max() < 1e-6
    loaded.set_params(prediction="expansion")
    np.testing.assert_array_equal(loaded.predict_proba(X), exact)


def test_a_model_that_was_saved_before_the_expansion_keeps_its_samples(tmp_path: Path) -> None:
    """It has not kept what "auto" stands for."""
    fitted = EBERClassifier(epochs=2, random_state=0).fit(X, labels(4), environments=e)
    assert fitted.auto_prediction_ == "expansion"
    expanded = fitted.predict_proba(X)
    fitted.save(tmp_path / "new")
    np.testing.assert_array_equal(EBERClassifier.load(tmp_path / "new").predict_proba(X), expanded)
    del fitted.auto_prediction_
    fitted.save(tmp_path / "old")
    old = EBERClassifier.load(tmp_path / "old")
    sampled = old.predict_proba(X)
    assert np.abs(sampled - expanded).max() > 1e-6
    old.set_params(prediction="monte_carlo", prediction_points=1000)
    np.testing.assert_array_equal(old.predict_proba(X), sampled)
