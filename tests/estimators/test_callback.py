"""A fit tells whoever asks how each pass went, and stops when it is told to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eber import EBERClassifier, ERMClassifier, IRMClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
E = np.repeat(["a", "b", "c"], 40)
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0).astype(int)
CLASSIFIERS = [EBERClassifier, ERMClassifier, IRMClassifier]


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_callback_hears_every_pass_as_the_history_keeps_it(kind: type) -> None:
    heard: list[tuple[int, dict[str, float]]] = []

    def listen(epoch: int, terms: Mapping[str, float]) -> None:
        heard.append((epoch, dict(terms)))

    told = kind(epochs=4, random_state=0).fit(X, Y, environments=E, callback=listen)
    assert [epoch for epoch, _ in heard] == [1, 2, 3, 4]
    assert {name: [terms[name] for _, terms in heard] for name in heard[0][1]} == told.history_
    assert "loss" in told.history_
    alone = kind(epochs=4, random_state=0).fit(X, Y, environments=E)
    np.testing.assert_array_equal(told.predict_proba(X), alone.predict_proba(X), "listening changes nothing")


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_training_ends_when_the_callback_says_so() -> None:
    stopped = ERMClassifier(epochs=50, random_state=0).fit(X, Y, callback=lambda epoch, terms: epoch == 3)
    assert len(stopped.history_["loss"]) == 3
    assert stopped.n_steps_ == 3 * 2
    short = ERMClassifier(epochs=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(stopped.predict_proba(X), short.predict_proba(X))


def test_a_callback_reaches_the_classifier_through_a_pipeline() -> None:
    heard: list[int] = []
    with sklearn.config_context(enable_metadata_routing=True):
        make_pipeline(StandardScaler(), ERMClassifier(epochs=2, random_state=0)).fit(
            X, Y, callback=lambda epoch, terms: heard.append(epoch)
        )
    assert heard == [1, 2]


def test_a_callback_for_several_members_is_refused() -> None:
    with pytest.raises(ValueError, match="n_members=2 asks for several"):
        ERMClassifier(n_members=2).fit(X, Y, callback=print)


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_log_probabilities_are_those_of_the_probabilities(kind: type) -> None:
    fitted = kind(epochs=2, random_state=0).fit(X, Y, environments=E)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), fitted.predict_proba(X))


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_sparse_input_is_refused_with_what_to_do(kind: type) -> None:
    classifier = kind(epochs=1, random_state=0)
    with pytest.raises(TypeError, match=r"(?i)sparse.*toarray"):
        classifier.fit(sparse.csr_array(X), Y, environments=E)
    classifier.fit(X, Y, environments=E)
    with pytest.raises(TypeError, match=r"(?i)sparse.*toarray"):
        classifier.predict_proba(sparse.csr_array(X))
