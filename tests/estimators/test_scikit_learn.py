"""All classifiers are scikit-learn classifiers: its own checks, routing of environments, cloning, searching."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from eber import EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier
from eber.datasets.parametric import ParametricParameters, draw
from tests.estimators.all_classifiers import CLASSIFIERS, NEED_ENVIRONMENTS

pytestmark = [
    # scikit-learn's checks know no environments, and their data are small or without any signal.
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
    # Fits of one or two epochs are not good fits, and are not meant to be.
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
]


@pytest.fixture(scope="module")
def data():
    """180 rows of six environments named after hospitals."""
    train = draw(ParametricParameters(n=30, m_validation=1, m_test=1, d=4), random_state=0).train
    return train.X, train.y, np.array(["Aarhus", "Bern", "Cork", "Delft", "Essen", "Faro"])[train.environments]


@pytest.fixture
def routing():
    """Metadata routing switched on for one test."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


NOT_FOR_MINIBATCHES = {
    # Zero weights are removed rows to the bit, and the objectives are held to repeated rows in float64
    # (tests/objectives/test_row_weights.py, tests/estimators/test_weights.py).
    "check_sample_weight_equivalence_on_dense_data": "repeated rows are shuffled into other minibatches, in float32"
}


@parametrize_with_checks(
    [classifier() for classifier in CLASSIFIERS], expected_failed_checks=lambda estimator: NOT_FOR_MINIBATCHES
)
def test_scikit_learns_own_checks_pass_with_default_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("classifier", NEED_ENVIRONMENTS)
def test_a_pipeline_hands_environments_on(classifier, data, routing):
    X, y, hospital = data
    model = make_pipeline(StandardScaler(), classifier(epochs=1, random_state=0)).fit(X, y, environments=hospital)
    assert model[-1].environments_.tolist() == sorted(set(hospital))
    assert model.predict_proba(X).shape == (len(X), 2)


def test_a_pipeline_hands_environments_on_without_routing_too(data):
    X, y, hospital = data
    model = Pipeline([("scale", StandardScaler()), ("eber", EBERClassifier(epochs=1, random_state=0))])
    assert len(model.fit(X, y, eber__environments=hospital)[-1].environments_) == 6


def test_a_pipeline_ends_in_erm_whether_environments_are_given_or_not(data, routing):
    X, y, hospital = data
    model = make_pipeline(StandardScaler(), ERMClassifier(epochs=1, random_state=0))
    without = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, y, environments=hospital).predict_proba(X), without)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_every_environment_can_be_held_out_in_turn(classifier, data, routing):
    X, y, hospital = data
    model = make_pipeline(StandardScaler(), classifier(epochs=1, random_state=0))
    params = {"environments": hospital, "groups": hospital}
    scores = cross_val_score(model, X, y, cv=LeaveOneGroupOut(), params=params, error_score="raise")
    assert scores.shape == (6,)
    assert np.all((scores >= 0) & (scores <= 1))


def test_a_held_out_environment_is_unknown_to_the_fit(data, routing):
    X, y, hospital = data
    params = {"environments": hospital, "groups": hospital}
    model = EBERClassifier(epochs=1, random_state=0)
    folds = cross_validate(model, X, y, cv=LeaveOneGroupOut(), params=params, return_estimator=True)
    for held_out, fitted in zip(sorted(set(hospital)), folds["estimator"], strict=True):
        assert set(fitted.environments_) == set(hospital) - {held_out}


def test_cross_validation_without_routing_splits_environments_with_the_rows(data):
    X, y, hospital = data
    model = VRExClassifier(epochs=1, random_state=0)
    folds = cross_validate(
        model, X, y, groups=hospital, cv=LeaveOneGroupOut(), params={"environments": hospital}, return_estimator=True
    )
    assert {len(fitted.environments_) for fitted in folds["estimator"]} == {5}


def test_a_grid_search_over_the_penalty_refits_with_environments(data, routing):
    X, y, hospital = data
    model = make_pipeline(StandardScaler(), IRMClassifier(epochs=2, random_state=0))
    grid = {"irmclassifier__penalty_weight": [0.0, 1.0, 100.0]}
    search = GridSearchCV(model, grid, cv=LeaveOneGroupOut(), scoring="neg_log_loss", error_score="raise")
    search.fit(X, y, environments=hospital, groups=hospital)
    assert len(set(search.cv_results_["mean_test_score"])) == 3  # the penalty reaches the fits, and matters
    assert len(search.best_estimator_[-1].environments_) == 6


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_clone_has_the_parameters_and_nothing_learned(classifier, data):
    X, y, hospital = data
    model = classifier(epochs=1, hidden_dims=(5, 4), random_state=3).fit(X, y, environments=hospital)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    np.testing.assert_array_equal(copy.fit(X, y, environments=hospital).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_parameters_are_set_by_name_and_unknown_names_refused(classifier):
    model = classifier().set_params(epochs=7, learning_rate=0.01)
    assert (model.get_params()["epochs"], model.learning_rate) == (7, 0.01)
    with pytest.raises(ValueError, match="Invalid parameter 'epoch' "):
        model.set_params(epoch=7)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("hidden_dims", 16),
        ("featurizer", "transformer"),
        ("clip_norm", -1.0),
        ("average_decay", 1.5),
        ("objective", "paper"),
        ("env_loss_weight", -1),
        ("latent_dim", 0),
        ("prediction", "exact"),
        ("training_weights", "oracle"),
    ],
)
def test_impossible_parameters_are_refused_by_name_at_fit(parameter, value, data):
    X, y, hospital = data
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of EBERClassifier must be"):
        EBERClassifier(**{parameter: value}).fit(X, y, environments=hospital)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden_dims": (16, 0)}, "hidden_dims holds 0"),
        ({"hidden_dims": (1.5,)}, "hidden_dims holds 1.5"),
        ({"decoder_hidden_dims": ("wide",)}, "decoder_hidden_dims holds 'wide'"),
        ({"latent_bounds": (5.0,)}, "latent_bounds is .* two positive numbers"),
        ({"latent_bounds": (0.0, 3.0)}, "latent_bounds is .* two positive numbers"),
        ({"latent_dim": 3, "expectation": "quadrature"}, "expectation='quadrature' needs latent_dim <= 2, got 3"),
        ({"latent_dim": 3, "prediction": "quadrature"}, "prediction='quadrature' needs latent_dim <= 2, got 3"),
    ],
)
def test_parameters_that_only_fail_later_are_refused_before_training(parameters, message, data):
    X, y, hospital = data
    with pytest.raises(ValueError, match=message):
        EBERClassifier(**parameters).fit(X, y, environments=hospital)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_pickled_classifier_predicts_the_same(classifier, data):
    X, y, hospital = data
    model = classifier(epochs=1, random_state=0).fit(X, y, environments=hospital)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_representation_has_names_and_comes_as_a_table_on_request(classifier, data):
    X, y, hospital = data
    model = classifier(epochs=1, representation_dim=3, random_state=0).fit(X, y, environments=hospital)
    z = model.transform(X)
    names = model.get_feature_names_out()
    assert z.shape == (len(X), len(names))
    assert names[0] == f"{classifier.__name__.lower()}0"
    table = model.set_output(transform="pandas").transform(X)
    assert list(table.columns) == list(names)
    np.testing.assert_array_equal(table, z)
