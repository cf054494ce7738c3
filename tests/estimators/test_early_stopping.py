"""Early stopping and warm starts: what is held out, which weights are kept, what a further fit goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from eber import EBERClassifier, ERMClassifier, IRMClassifier, MultiEnvironmentData, fit_many
from eber.estimators.early_stopping import hold_out
from eber.estimators.rows import Rows
from tests.estimators.all_classifiers import CLASSIFIERS

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning"),
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 3)).astype(np.float32)
E = np.repeat(["a", "b", "c", "d"], 40)
Y = np.where(X[:, 0] + 1.2 * RNG.normal(size=160) > 0, "yes", "no")
STEEP: dict[str, Any] = {"epochs": 40, "learning_rate": 0.05, "n_iter_no_change": 3, "random_state": 0}


@pytest.mark.parametrize("kind", [EBERClassifier, ERMClassifier, IRMClassifier])
@pytest.mark.parametrize("what", ["rows", "environments"])
def test_training_ends_when_held_out_rows_gain_no_more_and_the_best_weights_are_kept(kind: type, what: str) -> None:
    heard: list[float] = []

    def listen(epoch: int, terms: Mapping[str, float]) -> None:
        heard.append(terms["validation_nll"])

    weight = RNG.uniform(0.5, 2, size=160)
    model = kind(**STEEP, early_stopping=what).fit(X, Y, environments=E, sample_weight=weight, callback=listen)
    losses = model.validation_history_
    assert heard == losses
    assert model.best_epoch_ == np.argmin(losses) + 1
    assert len(losses) == min(40, model.best_epoch_ + 3) == len(model.history_["loss"])
    assert "validation_nll" not in model.history_
    _, held = hold_out(Rows(X, Y, E, weight), what, 0.1, model.seed_, "")
    by_hand = log_loss(held.y == "yes", model.predict_proba(held.X)[:, 1], sample_weight=held.weight)
    assert by_hand == pytest.approx(min(losses), rel=1e-6), "the weights are those of the best pass"
    if what == "environments":
        assert model.validation_environments_.tolist() == np.unique(held.environments).tolist()
        if kind is not ERMClassifier:
            assert set(model.environments_) == set("abcd") - set(model.validation_environments_)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_passes_are_those_of_a_fit_without_what_was_held_out(kind: type) -> None:
    """Looking on changes nothing: as many passes over the other rows give the same losses and, of one, the same model.

    The weights that are judged and kept are those of prediction: a moving average, where there is one.
    """
    options: dict[str, Any] = {"epochs": 3, "random_state": 0}
    looked_at = kind(**options, early_stopping=True).fit(X, Y, environments=E)
    rest, _ = hold_out(Rows(X, Y, E, None), "rows", 0.1, looked_at.seed_, "")
    alone = kind(**options).fit(rest.X, rest.y, environments=rest.environments)
    assert looked_at.history_ == alone.history_
    options["epochs"] = 1
    kept = kind(**options, early_stopping=True).fit(X, Y, environments=E)
    alone = kind(**options).fit(rest.X, rest.y, environments=rest.environments)
    np.testing.assert_array_equal(kept.predict_proba(X), alone.predict_proba(X))


def test_rows_are_held_out_evenly_and_none_is_the_last_of_its_class_in_an_environment() -> None:
    rest, held = hold_out(Rows(X, Y, E, None), "rows", 0.25, 0, "")
    assert len(held.y) == 40
    for e in "abcd":
        assert abs((held.environments == e).sum() - 10) <= 2
    rare = np.where(np.arange(160) == 5, "rare", Y)
    for seed in range(20):
        rest, _ = hold_out(Rows(X, rare, E, None), "rows", 0.9, seed, "")
        assert "rare" in rest.y


def test_too_few_environments_or_rows_are_refused() -> None:
    two = np.isin(E, ["a", "b"])
    with pytest.raises(ValueError, match="needs 3 of them at least; here are 'a', 'b'"):
        IRMClassifier(early_stopping="environments").fit(X[two], Y[two], environments=E[two])
    with pytest.raises(ValueError, match="of ERMClassifier needs environments"):
        ERMClassifier(early_stopping="environments").fit(X, Y)
    own = np.array([f"class {e}" for e in E])
    with pytest.raises(ValueError, match="each environment has a class of its own"):
        IRMClassifier(early_stopping="environments").fit(X, own, environments=E)
    with pytest.raises(ValueError, match=r"validation_fraction=0\.01 of 20 rows"):
        ERMClassifier(early_stopping=True, validation_fraction=0.01).fit(X[:20], Y[:20])
    with pytest.raises(ValueError, match="The 'early_stopping' parameter"):
        ERMClassifier(early_stopping="folds").fit(X, Y)


def test_passes_before_the_penalty_has_its_weight_do_not_count() -> None:
    model = IRMClassifier(**{**STEEP, "epochs": 12}, anneal_fraction=0.5, early_stopping=True)
    model.fit(X, Y, environments=E)
    assert model.best_epoch_ > 6
    assert len(model.validation_history_) >= 7 + 3 - 1


def test_members_and_many_fits_stop_each_by_its_own() -> None:
    single = ERMClassifier(**STEEP, early_stopping=True).fit(X, Y)
    many = [ERMClassifier(**STEEP, early_stopping=True), ERMClassifier(**STEEP)]
    fit_many(many, MultiEnvironmentData(X, Y, E))
    members = ERMClassifier(**STEEP, early_stopping=True, n_members=2).fit(X, Y)
    for other in (members.members_[0], ERMClassifier(**STEEP, early_stopping=True).fit(X, Y)):
        np.testing.assert_array_equal(other.predict_proba(X), single.predict_proba(X))
    assert many[0].best_epoch_ >= 1
    assert not hasattr(many[1], "best_epoch_")
    shortest = min(len(member.history_["loss"]) for member in members.members_)
    assert len(members.history_["loss"]) == shortest


@pytest.mark.parametrize("kind", [EBERClassifier, ERMClassifier])
def test_what_early_stopping_found_is_saved(kind: Any, tmp_path: Any) -> None:
    model = kind(**STEEP, early_stopping="environments", warm_start=True).fit(X, Y, environments=E)
    model.save(tmp_path / "model")
    again = kind.load(tmp_path / "model")
    assert (again.best_epoch_, again.validation_history_) == (model.best_epoch_, model.validation_history_)
    assert again.validation_environments_.tolist() == model.validation_environments_.tolist()
    assert again.get_params() == model.get_params()
    again.set_params(epochs=1, n_iter_no_change=1)
    again.fit(X, Y, environments=E)
    assert len(again.history_["loss"]) == len(model.history_["loss"]) + 1


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_warm_start_goes_on_from_the_weights(kind: type) -> None:
    """A further fit with steps of no length leaves the predictions as they were; one without it starts anew."""
    model = kind(epochs=3, learning_rate=0.01, random_state=0, warm_start=True).fit(X, Y, environments=E)
    before, steps, history = model.predict_proba(X), model.n_steps_, model.history_
    model.set_params(learning_rate=1e-12, epochs=2).fit(X, Y, environments=E)
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-5)
    assert model.n_steps_ == steps / 3 * 5
    assert [len(values) for values in model.history_.values()] == [5] * len(history)
    assert all(model.history_[name][:3] == history[name] for name in history)
    anew = model.set_params(warm_start=False).fit(X, Y, environments=E)
    assert np.abs(anew.predict_proba(X) - before).max() > 1e-3
    assert len(anew.history_["loss"]) == 2


def test_a_warm_start_goes_on_with_each_member() -> None:
    model = ERMClassifier(epochs=2, n_members=2, random_state=0, warm_start=True).fit(X, Y)
    before = model.predict_proba(X)
    model.set_params(learning_rate=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-5)
    with pytest.raises(ValueError, match="goes on from a fit of 2, but n_members is 3"):
        model.set_params(n_members=3).fit(X, Y)
    with pytest.raises(ValueError, match="average of 2 members, but n_members is 1"):
        model.set_params(n_members=1).fit(X, Y)


def test_a_warm_start_keeps_the_function_of_a_centred_extractor() -> None:
    images = RNG.normal(size=(40, 1, 8, 8)).astype(np.float32) + 1
    labels = (images.mean((1, 2, 3)) > 1).astype(int)
    options: dict[str, Any] = {"featurizer": "cnn", "centre_features": True, "representation_dim": 4}
    model = ERMClassifier(**options, epochs=2, random_state=0, warm_start=True).fit(images, labels)
    before = model.predict_proba(images)
    model.set_params(learning_rate=1e-12, epochs=1).fit(images, labels)
    np.testing.assert_allclose(model.predict_proba(images), before, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"y": np.where(Y == "yes", "ja", "nein")},
            "goes on from a fit with classes no, yes, but now classes ja, nein",
        ),
        ({"X": X[:, :2]}, "shape of a row 3, but now shape of a row 2 is given"),
        ({"environments": np.where(E == "d", "e", E)}, "environments a, b, c, d, but now environments a, b, c, e"),
    ],
)
def test_a_warm_start_on_something_else_is_refused_and_changes_nothing(change: dict[str, Any], message: str) -> None:
    model = IRMClassifier(epochs=1, random_state=0, warm_start=True).fit(X, Y, environments=E)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=message):
        model.fit(**{"X": X, "y": Y, "environments": E, **change})
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match="networks of another shape"):
        model.set_params(hidden_dims=(7,)).fit(X, Y, environments=E)
