"""A saved classifier comes back as it was, and a folder is never left with half of one."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from eber import EBERClassifier, ERMClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators.persistence import FORMAT, FORMAT_VERSION
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import encode_checksummed
from tests.estimators.all_classifiers import CLASSIFIERS

pytestmark = [
    # Fits of one epoch are not good fits, and nothing is to be trusted after them.
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning"),
]


@pytest.fixture(scope="module")
def table():
    """Named columns, text labels, text environments."""
    rows = draw(ParametricParameters(n=25, m_validation=1, m_test=1, d=4), random_state=0).train
    X = pd.DataFrame(rows.X, columns=["pulse", "lactate", "age", "température"])
    return X, np.where(rows.y == 1, "ill", "well"), np.array(list("ABCDEF"))[rows.environments]


@pytest.fixture(scope="module")
def saved(table, tmp_path_factory):
    """A saved classifier, never to be written to."""
    X, y, hospital = table
    folder = tmp_path_factory.mktemp("saved") / "model"
    EBERClassifier(epochs=1, random_state=0).fit(X, y, environments=hospital).save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of the saved classifier that a test may damage."""
    return shutil.copytree(saved, tmp_path / "model")


def fitted(model):
    """Everything learned but the weights, with arrays as lists."""
    values = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "module_"}
    return {k: (v.tolist(), v.dtype.kind) if isinstance(v, np.ndarray) else v for k, v in values.items()}


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_loaded_classifier_is_the_saved_one(classifier, table, tmp_path):
    X, y, hospital = table
    model = classifier(epochs=2, hidden_dims=(5, 4), random_state=0).fit(X, y, environments=hospital)
    model.save(tmp_path / "model")
    loaded = classifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.get_params() == model.get_params()
    assert fitted(loaded) == fitted(model)
    assert loaded.classes_.tolist() == ["ill", "well"]
    assert loaded.feature_names_in_.tolist() == list(X.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(X[X.columns[::-1]])


def test_every_answer_of_a_loaded_classifier_is_the_same(saved, table):
    X, y, hospital = table
    model = EBERClassifier(epochs=1, random_state=0).fit(X, y, environments=hospital)
    loaded = EBERClassifier.load(saved)
    assert set(loaded.history_) >= {"loss", "likelihood", "kl", "environment_loss"}
    assert loaded.diagnostics_ == model.diagnostics_
    np.testing.assert_array_equal(loaded.predict_environment_proba(X), model.predict_environment_proba(X))
    pd.testing.assert_frame_equal(loaded.explain_uncertainty(X), model.explain_uncertainty(X))
    pd.testing.assert_frame_equal(
        loaded.decompose(X, y, environments=hospital), model.decompose(X, y, environments=hospital)
    )
    np.testing.assert_array_equal(loaded.adapt(X).adaptation_.mixture, model.adapt(X).adaptation_.mixture)


def test_an_adapted_copy_comes_back_adapted(table, tmp_path):
    X, y, hospital = table
    model = EBERClassifier(epochs=5, learning_rate=0.01, random_state=0).fit(X, y, environments=hospital)
    adapted = model.adapt(X[hospital == "B"])
    adapted.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), adapted.predict_proba(X))
    assert np.abs(loaded.predict_proba(X) - model.predict_proba(X)).max() > 1e-3
    np.testing.assert_array_equal(loaded.adaptation_.mixture, adapted.adaptation_.mixture)
    assert loaded.adaptation_.reasons == adapted.adaptation_.reasons
    assert isinstance(loaded.adaptation_.reasons, tuple)
    assert loaded.adaptation_.log_likelihood_gain == adapted.adaptation_.log_likelihood_gain


@pytest.mark.parametrize(
    "parameters",
    [
        {"latent_dim": 3, "prediction_points": 50},
        {"featurizer": "linear", "decoder_hidden_dims": [4]},
        {"objective": "decomposed", "env_loss_weight": 0.0, "latent_bounds": None},
        {"hidden_dims": np.array([3, 2]), "clip_norm": np.float32(1.5), "training_weights": "uniform"},
        {"random_state": np.random.RandomState(0)},
    ],
)
def test_any_parameters_come_back(parameters, table, tmp_path):
    X, y, hospital = table
    model = EBERClassifier(**{"epochs": 1, "random_state": 0, **parameters}).fit(X, y, environments=hospital)
    model.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    for name, value in model.get_params().items():
        if name != "random_state":
            np.testing.assert_equal(getattr(loaded, name), value)
            assert np.shape(getattr(loaded, name)) == np.shape(value)


@pytest.mark.parametrize(
    ("labels", "environments"),
    [
        (np.array([0, 1]), np.arange(6)),
        (np.array([False, True]), np.arange(6) / 2),
        (np.array([-1.0, 2.0]), np.array(["a", "b", "ç", "d", "e", "日本"])),
        (np.array(["ja", "nein"], dtype=object), pd.array([7, 8, 9, 10, 11, 12], dtype="object")),
    ],
)
def test_labels_and_environments_come_back_as_they_were(labels, environments, table, tmp_path):
    X, y, hospital = table
    y, e = labels[(y == "well").astype(int)], environments[np.searchsorted(list("ABCDEF"), hospital)]
    model = EBERClassifier(epochs=1, random_state=0).fit(X, y, environments=e)
    model.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    assert fitted(loaded) == fitted(model)
    predicted = loaded.predict(X)
    assert predicted.dtype.kind == y.dtype.kind
    assert set(predicted) <= set(labels)


def test_parameters_set_after_the_fit_change_no_answer_of_the_loaded_networks(table, tmp_path):
    """env_loss_weight decides the gain of h, and hidden_dims its layers, when the networks are built."""
    X, y, hospital = table
    model = EBERClassifier(epochs=3, random_state=0).fit(X, y, environments=hospital)
    before = model.predict_proba(X)
    model.set_params(env_loss_weight=0.0, latent_bounds=None, hidden_dims=(3,), featurizer="linear", latent_dim=2)
    model.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), before)
    assert loaded.get_params() == model.get_params()


def test_a_loaded_classifier_can_be_saved_and_fitted_again(saved, table, tmp_path):
    X, y, hospital = table
    loaded = EBERClassifier.load(saved)
    loaded.save(tmp_path)
    assert (tmp_path / "model.json").read_bytes() == (saved / "model.json").read_bytes()
    again = loaded.fit(X, y, environments=hospital).predict_proba(X)
    np.testing.assert_array_equal(again, EBERClassifier.load(saved).predict_proba(X))


def custom(input_shape, representation_dim):
    return nn.Sequential(nn.Linear(input_shape[0], 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, representation_dim))


def test_a_featurizer_of_ones_own_is_passed_again(table, tmp_path):
    X, y, hospital = table
    model = EBERClassifier(featurizer=custom, epochs=1, batch_size=50, random_state=0)
    model.fit(X, y, environments=hospital).save(tmp_path)
    loaded = EBERClassifier.load(tmp_path, featurizer=custom)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(
        ModelFileError, match=r"test_persistence\.custom.* pass it again as load\(path, featurizer=...\)"
    ):
        EBERClassifier.load(tmp_path)
    with pytest.raises(ModelFileError, match="does not describe a model of class EBERClassifier"):
        EBERClassifier.load(tmp_path, featurizer=lambda input_shape, width: nn.Linear(input_shape[0], width))


class Tied(nn.Module):
    """Two layers that share one matrix."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def test_layers_that_share_weights_can_be_saved(table, tmp_path):
    X, y, _ = table

    def tied(input_shape, representation_dim):
        return Tied(representation_dim)

    model = ERMClassifier(featurizer=tied, representation_dim=4, epochs=1, random_state=0).fit(X, y)
    model.save(tmp_path)
    loaded = ERMClassifier.load(tmp_path, featurizer=tied)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def uniform_by_hand(X):
    return np.full((len(X), 6), 1 / 6)


def test_a_supplied_callable_is_asked_for_when_it_is_needed(table, tmp_path):
    X, y, hospital = table
    model = EBERClassifier(prediction_weights=uniform_by_hand, epochs=1, random_state=0)
    model.fit(X, y, environments=hospital).save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    with pytest.raises(ModelFileError, match=r"uniform_by_hand given as prediction_weights .* set_params"):
        loaded.predict_proba(X)
    loaded.set_params(prediction_weights=uniform_by_hand)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_saving_over_a_model_leaves_exactly_the_new_one(copy, table):
    X, y, hospital = table
    model = EBERClassifier(epochs=1, random_state=1).fit(X, y, environments=hospital)
    model.save(copy)
    assert len(list(copy.iterdir())) == 2
    np.testing.assert_array_equal(EBERClassifier.load(copy).predict_proba(X), model.predict_proba(X))


def test_a_save_leaves_the_files_of_others_alone(copy, table):
    """Also where they are named like ours, where a manifest names them, and where they are in our place."""
    X, y, hospital = table
    model = EBERClassifier(epochs=1, random_state=1).fit(X, y, environments=hospital)
    others = ("weights-resnet50.safetensors", f"weights-{0:016x}.safetensors", "notes.txt")
    for name in others:
        (copy / name).write_text("mine")
    content = json.loads((copy / "model.json").read_text())["content"]
    content["weights"]["file"] = "notes.txt"
    (copy / "model.json").write_bytes(encode_checksummed(content, FORMAT, FORMAT_VERSION))
    model.save(copy)
    assert {path.name for path in copy.iterdir() if path.read_bytes() == b"mine"} == set(others)
    (copy / "model.json").write_text('{"learner": "of another library"}')
    with pytest.raises(FileExistsError, match="not of a model that was saved here"):
        model.save(copy)
    assert (copy / "model.json").read_text() == '{"learner": "of another library"}'


@pytest.mark.parametrize("failing", [0, 1])
def test_a_save_that_fails_half_way_leaves_the_old_model(failing, copy, table, monkeypatch):
    X, y, hospital = table
    old = EBERClassifier.load(copy).predict_proba(X)
    model = EBERClassifier(epochs=1, random_state=1).fit(X, y, environments=hospital)
    calls, replace = [], os.replace

    def failing_replace(source, target):
        calls.append(target)
        if len(calls) > failing:
            raise OSError("no space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing_replace)
    with pytest.raises(OSError, match="no space left"):
        model.save(copy)
    monkeypatch.undo()
    np.testing.assert_array_equal(EBERClassifier.load(copy).predict_proba(X), old)
    assert not list(copy.glob(".*"))  # no temporary file is left
    model.save(copy)
    assert len(list(copy.iterdir())) == 2


def test_what_cannot_be_saved_is_said_before_anything_is_written(table, tmp_path):
    X, y, hospital = table
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.searchsorted(list("ABCDEF"), hospital), unit="D")
    model = EBERClassifier(epochs=1, random_state=0).fit(X, y, environments=days)
    with pytest.raises(ModelFileError, match="environments_ holds datetime64"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_unfitted_classifier_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted yet"):
        EBERClassifier().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
