"""Tuned classifiers are saved without pickle and answer as before."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from eber import EBERClassifier, ERMClassifier
from eber.estimators.persistence import TUNED_FORMAT, TUNED_FORMAT_VERSION
from eber.exceptions import ModelFileError
from eber.io.checksummed_json import encode_checksummed
from eber.tuning.plain_models import RateModel, TreeModel, plain_model
from eber.tuning.pool import EnvironmentPool
from eber.tuning.recalibration import RecalibratedClassifier
from eber.tuning.search import EnvironmentSearch
from tests.tuning.test_search import table

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

THEIRS = {
    "logistic": LogisticRegression(max_iter=500),
    "boosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "forest": RandomForestClassifier(n_estimators=10, random_state=0),
    "forest with large leaves": RandomForestClassifier(n_estimators=10, min_samples_leaf=5, random_state=0),
}
SEARCHES = [
    ("eber", EnvironmentSearch(EBERClassifier(epochs=1, random_state=0), [{}, {"hidden_dims": (4,)}])),
    ("erm", EnvironmentSearch(ERMClassifier(epochs=1, random_state=0), [{}])),
    ("logistic", EnvironmentSearch(LogisticRegression(), [{"C": 1.0}, {"C": 1.1}])),
    ("boosting", EnvironmentSearch(HistGradientBoostingClassifier(max_iter=5, random_state=0), [{}])),
    ("forest", EnvironmentSearch(RandomForestClassifier(n_estimators=5, random_state=0), [{}])),
]  # fmt: skip


@pytest.fixture(scope="module")
def pool():
    X, y, e = table(n=30)
    names = np.where(y == 1, "ill", "well")
    return EnvironmentPool(SEARCHES).fit(pd.DataFrame(X, columns=["a", "b"]), names, environments=e)


@pytest.fixture(scope="module")
def recalibrated(pool):
    _, y, e = table(n=30)
    return RecalibratedClassifier.of_fitted(pool.searches_[2], np.where(y == 1, "ill", "well"), environments=e)


@pytest.fixture
def X():
    return pd.DataFrame(table(seed=1)[0], columns=["a", "b"])


@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_arrays_answer_as_scikit_learns_model(kind, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=300), [0.0, 0.8][: n_classes - 1])
    if kind != "logistic":
        X[rng.random(X.shape) < 0.1] = np.nan
    fitted = THEIRS[kind].fit(X[:200], y[:200])
    np.testing.assert_allclose(plain_model(fitted).predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)


def test_a_saved_pool_answers_as_before(pool, X, tmp_path):
    pool.save(tmp_path / "model")
    loaded = EnvironmentPool.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(X), pool.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(loaded.predict(X), pool.predict(X))
    np.testing.assert_array_equal(loaded.left_out_proba_, pool.left_out_proba_)
    pd.testing.assert_frame_equal(loaded.explain_weights(), pool.explain_weights())
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    assert repr(loaded.get_params(deep=False)) == repr(pool.get_params(deep=False))
    eber = loaded.searches_[0].estimators_[0]
    assert isinstance(eber, EBERClassifier)
    np.testing.assert_allclose(
        eber.predict_environment_proba(X), pool.searches_[0].estimators_[0].predict_environment_proba(X), atol=1e-12
    )


def test_a_loaded_model_knows_its_columns(pool, X, tmp_path):
    pool.save(tmp_path)
    loaded = EnvironmentPool.load(tmp_path)
    for model in (loaded, loaded.searches_[2]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict_proba(X[["b", "a"]])


def test_a_loaded_model_can_be_saved_again(pool, X, tmp_path):
    pool.save(tmp_path / "one")
    EnvironmentPool.load(tmp_path / "one").save(tmp_path / "two")
    again = EnvironmentPool.load(tmp_path / "two")
    np.testing.assert_allclose(again.predict_proba(X), pool.predict_proba(X), rtol=0, atol=1e-12)


def test_no_file_of_a_saved_pool_is_a_pickle(pool, tmp_path):
    pool.save(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert names[0] == "model.json"
    assert [name.partition("-")[0] for name in names[1:]] == ["weights"]
    assert not any(b"sklearn" in path.read_bytes() for path in tmp_path.iterdir())


def test_what_has_no_plain_form_is_refused(tmp_path):
    X, y, e = table(n=30)
    search = EnvironmentSearch(GaussianNB(), [{}]).fit(X, y, environments=e)
    with pytest.raises(ModelFileError, match="GaussianNB"):
        search.save(tmp_path)


def forged(folder, change):
    """A model folder whose manifest was changed by somebody who knows how checksums are made."""
    content = json.loads((folder / "model.json").read_text())["content"]
    change(content)
    (folder / "model.json").write_bytes(encode_checksummed(content, TUNED_FORMAT, TUNED_FORMAT_VERSION))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["parts"][2].update({"class": "Popen"}),
        lambda c: c["parts"][3]["parts"][0].update({"class": "HistGradientBoostingClassifier"}),
        lambda c: c["attributes"].update({"predict_proba": 1}),
        lambda c: c["parameters"]["estimators"]["estimators"][0][1].update({"estimator": "Popen"}),
        lambda c: c["parts"].pop(),
        lambda c: c["parts"][4]["parts"][0].update({"n_features_in_": 1}),
    ],
)
def test_a_forged_manifest_is_refused(pool, tmp_path, change):
    pool.save(tmp_path)
    forged(tmp_path, change)
    with pytest.raises(ModelFileError):
        EnvironmentPool.load(tmp_path)


ARRAY = {"dtype": "float64"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["attributes"].update(weights_={"array": [np.nan] * 5, **ARRAY}), "no shares"),
        (lambda c: c["attributes"].update(weights_={"array": [2, -1, 0, 0, 0], **ARRAY}), "no shares"),
        (lambda c: c["attributes"].update(weights_={"array": [1e9] * 5, **ARRAY}), "no shares"),
        (lambda c: c["attributes"].update(names_=["a"] * 5), "have no names"),
        (lambda c: c["attributes"].update(n_features_in_=10**9), "have 1000000000 columns"),
        (lambda c: c["attributes"].update(n_features_in_=-1), "have -1 columns"),
        (lambda c: c["attributes"].update(classes_={"array": ["ill", "ill"], "dtype": "str"}), "not different"),
        (lambda c: c["attributes"].update(feature_names_in_={"array": ["a"], "dtype": "object"}), "other names"),
        (lambda c: c["parts"][2].update(parts=[]), "kept nothing"),
        (lambda c: c["parts"][2]["attributes"].update(results_={}), "no results"),
        (lambda c: c["parts"][2]["attributes"].update(classes_={"array": [0, 1], "dtype": "int64"}), "different fits"),
        (lambda c: c["parts"].__setitem__(0, c["parts"][2]["parts"][0]), "LinearModel"),
        (lambda c: c["parts"][0]["attributes"].pop("chosen_"), "chosen_"),
    ],
)
def test_a_pool_with_attributes_that_no_fit_has_is_refused(pool, tmp_path, change, message):
    """Seen to load: weights that do not sum to one, which any answer for a row of zeros may hide."""
    pool.save(tmp_path)
    forged(tmp_path, change)
    with pytest.raises(ModelFileError, match=message):
        EnvironmentPool.load(tmp_path)


def with_array(folder, name, change):
    """A model folder of which one array was changed, with a checksum that fits."""
    content = json.loads((folder / "model.json").read_text())["content"]
    path = folder / content["weights"]["file"]
    tensors = safetensors.numpy.load_file(path)
    tensors[name] = np.ascontiguousarray(change(tensors[name].copy()))
    path.write_bytes(safetensors.numpy.save(tensors))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    forged(folder, lambda c: c["weights"].update(sha256=digest))


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


BOOSTING, FOREST, LINEAR = "3.0.", "4.0.", "2.0."


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *[(tree + "left", put(0, value)) for tree in (BOOSTING, FOREST) for value in (-1, 0, 10**9)],
        (FOREST + "right", put(1, 0)),  # a way back to the root
        (FOREST + "roots", put(0, 10**9)),
        (FOREST + "roots", lambda array: array[:0]),
        (FOREST + "features", put(0, 2)),
        (FOREST + "features", put(0, -1)),
        (FOREST + "features", lambda array: array.astype(np.float64)),
        *[(tree + "values", put((-1, 0), value)) for tree in (BOOSTING, FOREST) for value in (np.nan, np.inf)],
        (FOREST + "values", put((-1, 0), -0.5)),
        (FOREST + "values", lambda array: array * 3),
        (FOREST + "values", lambda array: array[:, :1]),
        (FOREST + "missing_left", lambda array: array.astype(np.int64)),
        (FOREST + "thresholds", lambda array: array[:, None]),
        (BOOSTING + "columns", put(0, 5)),
        (BOOSTING + "baseline", put(0, np.nan)),
        (BOOSTING + "baseline", lambda array: np.zeros(7)),
        (LINEAR + "coefficients", put((0, 0), np.inf)),
        (LINEAR + "coefficients", lambda array: array.astype(np.float32)),
        (LINEAR + "intercepts", put(0, np.nan)),
        ("left_out_proba_", lambda array: array[:, :1]),
    ],
)
def test_arrays_that_no_fit_has_are_refused(pool, tmp_path, name, change):
    """Also where a row of zeros does not come by: a leaf, say, that only other rows fall into."""
    pool.save(tmp_path)
    with_array(tmp_path, name, change)
    with pytest.raises(ModelFileError, match=str(tmp_path)):
        EnvironmentPool.load(tmp_path)


def test_shares_that_no_fit_has_are_refused():
    for shares in ([1.5, -0.5], [np.nan, 1.0], [0.2, 0.2]):
        with pytest.raises(ValueError, match=r"shares|numbers"):
            RateModel(np.array([0, 1]), np.array(shares), 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(mean={"array": [np.nan] * 3, **ARRAY}),
        lambda c: c.update(mean={"array": [0.0] * 4, **ARRAY}),
        lambda c: c.update(covariance={"array": (-np.eye(3)).tolist(), **ARRAY}),
        lambda c: c.update(covariance={"array": [[1, 2, 0], [0, 1, 0], [0, 0, 1]], **ARRAY}),
        lambda c: c.update(n_environments=-3),
        lambda c: c.update(n_labels="many"),
    ],
)
def test_a_calibration_that_no_fit_has_is_refused(recalibrated, tmp_path, change):
    recalibrated.save(tmp_path)
    forged(tmp_path, lambda c: change(c["attributes"]["calibration_"]))
    with pytest.raises(ModelFileError, match="calibration"):
        RecalibratedClassifier.load(tmp_path)


def test_a_damaged_file_is_refused(pool, tmp_path):
    pool.save(tmp_path)
    (weights,) = tmp_path.glob("weights-*")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(ModelFileError, match="checksum"):
        EnvironmentPool.load(tmp_path)
    with pytest.raises(ModelFileError, match="EnvironmentPool"):
        EnvironmentSearch.load(tmp_path)


def test_trees_that_lead_in_circles_are_refused():
    X, y, _ = table(n=30)
    sound = plain_model(RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y))
    assert isinstance(sound, TreeModel)
    values = {**vars(sound), "left": np.where(sound.left == 1, 0, sound.left)}
    with pytest.raises(ValueError, match="not whole"):
        TreeModel(**values)


@pytest.mark.parametrize(
    "change", ["a root twice", "children that are one", "a leaf of two", "a threshold that is none"]
)
def test_trees_that_take_long_or_lead_nowhere_are_refused(change):
    """A file of 7 MB would have been loaded for half a day."""
    X, y, _ = table(n=30)
    sound = plain_model(RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y))
    assert isinstance(sound, TreeModel)
    TreeModel(**vars(sound))
    values = dict(vars(sound))
    if change == "a root twice":
        values |= {"roots": np.tile(sound.roots, 2), "columns": np.tile(sound.columns, 2)}
    elif change == "children that are one":
        values["left"] = sound.right
    elif change == "a leaf of two":
        inner = np.flatnonzero(sound.left != np.arange(len(sound.left)))
        values["left"] = np.where(np.arange(len(sound.left)) == inner[0], sound.right[inner[1]], sound.left)
    else:
        values["thresholds"] = np.where(np.arange(len(sound.left)) == 0, np.nan, sound.thresholds)
    with pytest.raises(ValueError, match="not whole"):
        TreeModel(**values)
