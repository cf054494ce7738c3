"""An average of several seeds is one classifier: one fit, one model folder, one answer."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from eber import (
    EBERClassifier,
    ERMClassifier,
    FishrClassifier,
    IRMClassifier,
    MultiEnvironmentData,
    VRExClassifier,
    fit_many,
)
from eber.datasets.parametric import ParametricParameters, draw
from eber.estimators.members import average_of
from eber.exceptions import ModelFileError, NonFiniteLossError
from eber.method.inference import entropy

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning"),
]
CLASSIFIERS = [EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier]


@pytest.fixture(scope="module")
def table():
    rows = draw(ParametricParameters(n=40, m_validation=1, m_test=1, d=4), random_state=0).train
    return MultiEnvironmentData(
        pd.DataFrame(rows.X, columns=list("abcd")), np.where(rows.y == 1, "ill", "well"), rows.environments
    )


def fit(model, table):
    return model.fit(table.X, table.y, environments=table.environments)


@pytest.fixture(scope="module")
def average(table):
    return fit(EBERClassifier(n_members=3, epochs=2, random_state=0), table)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_first_member_is_the_plain_fit_and_the_answer_is_the_mean(classifier, table):
    plain = fit(classifier(epochs=2, random_state=7), table)
    average = fit(classifier(epochs=2, random_state=7, n_members=3), table)
    np.testing.assert_allclose(average.members_[0].predict_proba(table.X), plain.predict_proba(table.X), atol=1e-6)
    answers = [member.predict_proba(table.X) for member in average.members_]
    assert np.abs(answers[0] - answers[1]).max() > 1e-4
    np.testing.assert_allclose(average.predict_proba(table.X), np.mean(answers, 0), atol=1e-15)
    assert len({member.seed_ for member in average.members_}) == 3
    assert average.seed_ == plain.seed_
    names = average.get_feature_names_out()
    assert average.transform(table.X).shape == (len(table.X), len(names))
    assert len(names) == 3 * len(plain.get_feature_names_out())


def test_averages_are_repeatable_and_trained_with_others_are_those_trained_alone(average, table):
    together = [clone(average), ERMClassifier(epochs=2, random_state=0), clone(average).set_params(weight_decay=3.0)]
    assert fit_many(together, table) == [None, None, None]
    np.testing.assert_allclose(together[0].predict_proba(table.X), average.predict_proba(table.X), atol=1e-6)
    assert np.abs(together[2].predict_proba(table.X) - average.predict_proba(table.X)).max() > 1e-4


def test_fits_that_are_not_stacked_are_averaged_too(table):
    average = fit(EBERClassifier(objective="collapsed", n_members=2, epochs=1, random_state=0), table)
    plain = fit(EBERClassifier(objective="collapsed", epochs=1, random_state=0), table)
    np.testing.assert_array_equal(average.members_[0].predict_proba(table.X), plain.predict_proba(table.X))


def test_uncertainty_splits_into_within_and_between_environments_and_between_members(average, table):
    split = average.explain_uncertainty(table.X)
    assert list(split) == ["total", "within_environments", "between_environments", "between_members"]
    np.testing.assert_allclose(split["total"], split.drop(columns="total").sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(split["total"], entropy(average.predict_proba(table.X)), atol=1e-12)
    single = np.mean([entropy(member.predict_proba(table.X)) for member in average.members_], 0)
    np.testing.assert_allclose(split["between_members"], split["total"] - single, atol=1e-12)
    assert split["between_members"].max() > 1e-4
    assert "between_members" not in average.members_[0].explain_uncertainty(table.X)


def test_members_adapt_together(average, table):
    new = table.X[:60]
    adapted = average.adapt(new)
    own = [member.adapt(new) for member in average.members_]
    np.testing.assert_allclose(adapted.predict_proba(new), np.mean([m.predict_proba(new) for m in own], 0), atol=1e-15)
    np.testing.assert_allclose(adapted.adaptation_.mixture, np.mean([m.adaptation_.mixture for m in own], 0))
    np.testing.assert_allclose(adapted.environment_mixture(), np.mean([m.environment_mixture() for m in own], 0))
    np.testing.assert_allclose(adapted.predict_environment_proba(new).sum(1), 1)
    assert not hasattr(average, "adaptation_")


def test_what_prediction_reads_may_be_changed_after_the_fit(average, table):
    uniform = clone(average)
    uniform.__dict__.update(vars(average))
    uniform.set_params(prediction_weights="uniform")
    np.testing.assert_allclose(uniform.predict_environment_proba(table.X), 1 / 6)
    assert average.members_[0].prediction_weights == "learned"


def test_theorem_1_is_about_one_fit(average, table):
    with pytest.raises(ValueError, match="members_"):
        average.decompose(table.X, table.y, environments=table.environments)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_saved_average_answers_as_before(classifier, table, tmp_path):
    average = fit(classifier(epochs=1, n_members=2, random_state=0), table)
    average.save(tmp_path / "model")
    loaded = classifier.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(table.X), average.predict_proba(table.X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(loaded.transform(table.X), average.transform(table.X), rtol=0, atol=1e-12)
    assert loaded.get_params() == average.get_params()
    assert [member.seed_ for member in loaded.members_] == [member.seed_ for member in average.members_]


def test_a_saved_average_stays_adapted(average, table, tmp_path):
    adapted = average.adapt(table.X[:60])
    adapted.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(table.X), adapted.predict_proba(table.X), rtol=0, atol=1e-12)
    pd.testing.assert_frame_equal(loaded.explain_uncertainty(table.X), adapted.explain_uncertainty(table.X))


def test_settings_of_different_width_and_decay_average_and_are_saved_as_one(table, tmp_path):
    settings: list[dict[str, Any]] = [{"n_members": 2}, {"hidden_dims": (8, 8), "weight_decay": 3.0}]
    fits = [fit(EBERClassifier(epochs=1, random_state=0, **setting), table) for setting in settings]
    average = average_of(fits)
    assert average.n_members == len(average.members_) == 3
    answers = [member.predict_proba(table.X) for member in (*fits[0].members_, fits[1])]
    np.testing.assert_allclose(average.predict_proba(table.X), np.mean(answers, 0), atol=1e-15)
    average.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path)
    assert loaded.members_[2].hidden_dims == (8, 8)
    np.testing.assert_allclose(loaded.predict_proba(table.X), average.predict_proba(table.X), rtol=0, atol=1e-12)
    assert average_of(fits[1:]) is fits[1]


def test_a_member_that_is_missing_is_noticed(average, tmp_path, monkeypatch):
    short = clone(average)
    short.__dict__.update(vars(average))
    short.members_ = average.members_[:2]
    short.save(tmp_path)
    with pytest.raises(ModelFileError, match="2 members, not 3"):
        EBERClassifier.load(tmp_path)


def test_a_member_that_diverges_ends_the_fit_and_leaves_the_classifier_unfitted(table):
    average = EBERClassifier(n_members=2, epochs=2, random_state=0)
    with pytest.raises(NonFiniteLossError):
        average.fit(table.X * 1e30, table.y, environments=table.environments)
    assert not hasattr(average, "members_")


def test_the_global_generator_is_left_alone(table):
    before = torch.get_rng_state()
    fit(ERMClassifier(n_members=2, epochs=1, random_state=0), table)
    assert torch.equal(torch.get_rng_state(), before)
