"""A tuned EBER knows whether adapting helped where it could be seen, and adapts only then."""

from dataclasses import replace

import numpy as np
import pytest

from eber import EBERClassifier, EnvironmentSearch
from eber.estimators.members import average_of
from eber.evaluation.metrics import negative_log_likelihood
from eber.exceptions import AdaptationWarning
from eber.method.adaptation import AdaptationRecord
from eber.tuning.adaptation_record import STRENGTHS
from tests.tuning.test_search import table

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def search():
    X, y, e = table()
    return EnvironmentSearch(EBERClassifier(epochs=20, random_state=0), [{}, {"weight_decay": 3.0}]).fit(
        X, y, environments=e
    )


def recorded(gains):
    return AdaptationRecord(tuple("ABCDEFGH"[: len(gains)]), np.ones(len(gains)), 1 - np.array(gains))


def test_the_record_is_what_adapting_did_in_environments_that_the_fit_had_not_seen():
    X, y, e = table()
    model = EBERClassifier(epochs=5, random_state=0)
    record = EnvironmentSearch(model, [{}]).fit(X, y, environments=e).estimators_[0].adaptation_record_
    assert record.environments == ("A", "B", "C", "D")
    by_strength: dict[float, list[float]] = {strength: [] for strength in STRENGTHS}
    for i, name in enumerate("ABCD"):
        alone = EBERClassifier(epochs=5, random_state=0).fit(X[e != name], y[e != name], environments=e[e != name])
        new, labels = X[e == name], y[e == name]
        before = negative_log_likelihood(labels, alone.predict_proba(new), alone.classes_)
        with pytest.warns(AdaptationWarning):
            adapted = alone.adapt(new)
        found = adapted.adaptation_
        for strength, losses in by_strength.items():
            mixture = strength * found.mixture + (1 - strength) * found.training_mixture
            adapted.adaptation_ = replace(found, mixture=mixture)
            losses.append(negative_log_likelihood(labels, adapted.predict_proba(new), alone.classes_))
        assert record.before[i] == pytest.approx(before, abs=1e-6)
    assert record.strength == min(STRENGTHS, key=lambda strength: np.mean(by_strength[strength]))
    for i in range(4):  # judged with the strength that the other three choose
        chosen = min(STRENGTHS, key=lambda strength: np.mean(np.delete(by_strength[strength], i)))
        assert record.after[i] == pytest.approx(by_strength[chosen][i], abs=1e-6)


def test_it_helped_on_average_and_in_three_of_four():
    assert recorded([0.1, 0.1, 0.1, -0.1]).helped
    assert not recorded([0.1, 0.1, 0.1, -0.4]).helped  # not on average
    assert not recorded([1.0, 0.1, -0.1, -0.1]).helped  # in two only
    assert str(recorded([0.03] * 6 + [-0.01] * 2)) == (
        "in 6 of 8 training environments that were left out adapting lowered NLL; on average it lowered it by 0.020"
    )


@pytest.mark.parametrize(
    ("gains", "force", "adapts"), [([0.1], False, True), ([-0.1], False, False), ([-0.1], True, True)]
)
def test_it_adapts_where_that_helped_or_where_it_is_told_to(search, gains, force, adapts):
    X, _, e = table(seed=1)
    (eber,) = search.estimators_
    eber.adaptation_record_ = recorded(gains)
    new = X[e == "A"]
    with pytest.warns(AdaptationWarning):
        adapted = eber.adapt(new, force=force)
    changed = np.abs(adapted.predict_proba(new) - eber.predict_proba(new)).max()
    assert (changed > 1e-6) == adapts
    assert any("force=True" in reason for reason in adapted.adaptation_.reasons) == (not adapts)


def test_the_mixture_is_shrunk_by_the_strength_of_the_record(search):
    X, _, e = table(seed=1)
    eber = average_of(search.estimators_ * 2)  # of several members
    new, mixtures = X[e == "A"], {}
    for strength in (0.25, 1.0):
        eber.adaptation_record_ = replace(recorded([0.1]), strength=strength)
        with pytest.warns(AdaptationWarning):
            adapted = eber.adapt(new)
        mixtures[strength] = [found.mixture for found in (*adapted.member_adaptations(), adapted.adaptation_)]
    priors = [fitted.environment_prior_ for fitted in (*eber.members_, eber)]
    expected = [0.25 * mixture + 0.75 * prior for mixture, prior in zip(mixtures[1.0], priors, strict=True)]
    np.testing.assert_allclose(mixtures[0.25], expected, atol=1e-12)


def test_the_record_is_saved_with_the_model(search, tmp_path):
    (eber,) = search.estimators_
    eber.adaptation_record_ = replace(recorded([0.1, -0.2]), strength=0.5)
    eber.save(tmp_path)
    loaded = EBERClassifier.load(tmp_path).adaptation_record_
    assert str(loaded) == str(eber.adaptation_record_)
    assert loaded.strength == 0.5
    np.testing.assert_array_equal(loaded.after, eber.adaptation_record_.after)
