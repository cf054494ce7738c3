"""Many fits at once give what they give one by one."""

import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eber import (
    ANDMaskClassifier,
    CORALClassifier,
    EBERClassifier,
    EQRMClassifier,
    ERMClassifier,
    FishrClassifier,
    GroupDROClassifier,
    IBERMClassifier,
    IBIRMClassifier,
    IGAClassifier,
    IRMClassifier,
    MMDClassifier,
    SDClassifier,
    VRExClassifier,
    fit_many,
)
from eber.datasets.base import MultiEnvironmentData
from eber.datasets.parametric import ParametricParameters, draw
from eber.exceptions import NonFiniteLossError
from tests.own_methods import BrokenClassifier, CoinClassifier, RollCallClassifier

# Fits of a few epochs are not good fits, and are not meant to be.
pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.filterwarnings("ignore:Environment . has only class:eber.exceptions.EnvironmentWarning"),
]


def table(seed=0, n=40):
    return draw(ParametricParameters(n=n, m_validation=1, m_test=1, d=4), random_state=seed).train


@functools.cache
def products_depend_on_their_number():
    """Whether a matrix product is rounded differently in a stack: MKL does so on AMD processors with AVX2."""
    generator = torch.Generator().manual_seed(0)
    for i, j, k in itertools.product((2, 5, 8, 16, 17, 33), (5, 16, 17, 32, 64), (1, 2, 6, 12, 17, 32)):
        for order in ((2, i, j), (2, j, i)):
            a = torch.randn(order, generator=generator)
            a, b = a if order[1] == i else a.mT, torch.randn(2, j, k, generator=generator)
            if not torch.equal(torch.bmm(a, b)[:1], torch.bmm(a[:1], b[:1])):
                return True
    return False


def assert_same_fit(together, alone, X):
    """To the bit on a machine whose matrix products do not depend on how many there are, else to what they round off.

    Seen where they do: differences of 3e-9.
    """
    rounding = 1e-6 if products_depend_on_their_number() else 0
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), rtol=0, atol=rounding)
    for name, values in alone.history_.items():
        np.testing.assert_allclose(together.history_[name], values, rtol=1e-6, atol=1e-6, err_msg=name)
    assert together.seed_ == alone.seed_
    assert together.n_steps_ == alone.n_steps_


FAMILIES = {
    "EBER": [lambda s=s: EBERClassifier(epochs=3, random_state=s) for s in range(4)],
    "EBER, sampled": [lambda s=s: EBERClassifier(epochs=3, coupling="sampled", random_state=s) for s in range(3)],
    "EBER, linear": [lambda s=s: EBERClassifier(featurizer="linear", epochs=3, random_state=s) for s in range(3)],
    "EBER, columns in pieces": [
        lambda s=s: EBERClassifier(column_pieces=6, epochs=3, random_state=s) for s in range(3)
    ],
    "EBER, clipped": [lambda s=s: EBERClassifier(clip_norm=0.1, epochs=3, random_state=s) for s in range(3)],
    "ERM, columns in pieces": [lambda s=s: ERMClassifier(column_pieces=6, epochs=3, random_state=s) for s in range(3)],
    "ERM": [lambda s=s: ERMClassifier(epochs=3, random_state=s) for s in range(4)],
    "IRM": [lambda w=w: IRMClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.1, 1.0, 10.0)],
    "V-REx": [lambda w=w: VRExClassifier(epochs=3, penalty_weight=w, random_state=w) for w in (1, 2)],
    "Fishr": [lambda w=w: FishrClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.1, 10.0)],
    "Fishr, exponential average": [
        lambda w=w: FishrClassifier(epochs=3, penalty_weight=w, moving_average="exponential", random_state=1)
        for w in (10.0, 1000.0)
    ],
    "GroupDRO": [lambda w=w: GroupDROClassifier(epochs=3, step_size=w, random_state=1) for w in (0.01, 0.5)],
    "CORAL": [lambda w=w: CORALClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.1, 10.0)],
    "MMD": [lambda w=w: MMDClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.1, 1.0)],
    "MMD, exact distances": [
        lambda w=w: MMDClassifier(epochs=3, penalty_weight=w, distances="differences", random_state=1)
        for w in (0.1, 1.0)
    ],
    "SD": [lambda w=w: SDClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.01, 1.0)],
    "ANDMask": [lambda w=w: ANDMaskClassifier(epochs=3, agreement=w, random_state=1) for w in (0.3, 1.0)],
    "IGA": [lambda w=w: IGAClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.01, 1.0)],
    "IB-ERM": [lambda w=w: IBERMClassifier(epochs=3, penalty_weight=w, random_state=1) for w in (0.1, 10.0)],
    "IB-IRM": [
        lambda w=w: IBIRMClassifier(epochs=3, penalty_weight=w, bottleneck_weight=2 * w, random_state=1)
        for w in (0.1, 10.0)
    ],
    "EQRM": [lambda w=w: EQRMClassifier(epochs=3, quantile=w, random_state=1) for w in (0.5, 0.9)],
    "not stackable": [lambda s=s: EBERClassifier(objective="collapsed", epochs=1, random_state=s) for s in range(2)],
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shared", [True, False])
def test_fits_together_equal_fits_alone(family, shared):
    makers = FAMILIES[family]
    tables = [table()] * len(makers) if shared else [table(seed) for seed in range(len(makers))]
    together = [make() for make in makers]
    assert fit_many(together, tables) == [None] * len(makers)
    for i, make in enumerate(makers):
        given = tables[i]
        assert_same_fit(together[i], make().fit(given.X, given.y, environments=given.environments), given.X)


def test_mixed_shapes_and_methods_are_sorted_into_groups():
    small, large = table(n=30), table(n=40)
    classifiers = [EBERClassifier(epochs=1, random_state=0), ERMClassifier(epochs=1, random_state=0)] * 2
    classifiers = [type(c)(**c.get_params()) for c in classifiers]
    fit_many(classifiers, [small, small, large, large])
    for classifier, given in zip(classifiers, [small, small, large, large], strict=True):
        alone = type(classifier)(**classifier.get_params()).fit(given.X, given.y, environments=given.environments)
        assert_same_fit(classifier, alone, given.X)


def test_stacks_of_bounded_size_give_the_same(monkeypatch):
    given = table()
    whole, parts = ([EBERClassifier(epochs=1, random_state=s) for s in range(5)] for _ in range(2))
    fit_many(whole, given)
    monkeypatch.setattr("eber.estimators.many_fits.STACK_ELEMENTS", 1)
    fit_many(parts, given)
    for a, b in zip(whole, parts, strict=True):
        assert_same_fit(a, b, given.X)


def test_a_fit_that_diverges_is_left_unfitted_and_its_neighbours_are_not():
    good, bad = table(), table(1)
    bad = replace(bad, X=bad.X * 1e30)
    fits = [EBERClassifier(epochs=2, random_state=s) for s in range(2)]
    first, second = fit_many(fits, [good, bad], raise_errors=False)
    assert first is None
    assert isinstance(second, NonFiniteLossError)
    fits[0].predict(good.X)
    with pytest.raises(NotFittedError):
        fits[1].predict(good.X)
    with pytest.raises(NonFiniteLossError):
        fit_many([EBERClassifier(epochs=2, random_state=0) for _ in range(2)], [good, bad])


def test_parameters_are_checked_as_in_a_fit_alone():
    with pytest.raises(ValueError, match="epochs"):
        fit_many([ERMClassifier(epochs=0)], table())


def test_global_generators_are_left_alone():
    before = torch.get_rng_state()
    fit_many([EBERClassifier(epochs=1, random_state=s) for s in range(2)], table())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("first", [ERMClassifier, EBERClassifier])
def test_methods_that_need_environments_get_them_whatever_comes_first(first):
    """ERM has no use for environments; others on the same table have."""
    given, kinds = table(), (ERMClassifier, EBERClassifier, VRExClassifier)
    together = [kind(epochs=2, random_state=0) for kind in (first, *(kind for kind in kinds if kind is not first))]
    fit_many(together, given)
    for classifier in together:
        alone = type(classifier)(epochs=2, random_state=0).fit(given.X, given.y, environments=given.environments)
        assert_same_fit(classifier, alone, given.X)


def test_only_what_leaves_a_step_as_it_is_may_differ_within_a_stack():
    given = table()

    def shape(**parameters):
        classifier = VRExClassifier(**parameters)
        return classifier._begin(given.X, given.y, given.environments, 0, torch.Generator()).shape

    assert shape(random_state=1) == shape(random_state=2, penalty_weight=5.0, verbose=1, n_threads=2)
    for change in ({"learning_rate": 0.1}, {"batch_size": 8}, {"epochs": 2}, {"clip_norm": 1.0}, {"hidden_dims": (5,)}):
        assert shape(**change) != shape()


def test_any_classifier_is_fitted_and_environments_go_where_they_are_taken():
    given = table()
    frame = replace(given, X=pd.DataFrame(given.X, columns=[f"x{j}" for j in range(given.X.shape[1])]))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), ERMClassifier(epochs=1, random_state=0))
        plain = make_pipeline(StandardScaler(), LogisticRegression())
        fits = [LogisticRegression(), RollCallClassifier(), ERMClassifier(epochs=1, random_state=0), pipeline, plain]
        assert fit_many(fits, frame) == [None] * len(fits)
    assert list(fits[1].environments_) == given.environment_names
    for classifier in (fits[0], fits[2], fits[3]):
        assert list(classifier.feature_names_in_) == list(frame.X.columns)
    np.testing.assert_array_equal(
        fits[0].predict_proba(frame.X), LogisticRegression().fit(frame.X, given.y).predict_proba(frame.X)
    )


def test_a_fit_that_fails_is_named_and_its_neighbours_are_fitted():
    fits: list[Any] = [
        ERMClassifier(epochs=1, random_state=0),
        BrokenClassifier(),
        ERMClassifier(epochs=0),
        CoinClassifier(),
    ]
    errors = fit_many(fits, table(), raise_errors=False)
    assert [type(error).__name__ for error in errors] == [
        "NoneType",
        "RuntimeError",
        "InvalidParameterError",
        "NoneType",
    ]
    fits[0].predict(table().X)
    with pytest.raises(RuntimeError, match="the coin is lost"):
        fit_many(fits, table())


def test_rows_of_a_data_frame_are_selected_by_place_and_not_by_index():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[2, 0, 1])
    data = MultiEnvironmentData(
        frame, pd.Series([10, 20, 30], index=[2, 0, 1]), pd.Series(list("abc"), index=[2, 0, 1])
    )
    chosen = data.select(np.array([0, 2]))
    assert (chosen.X["x"].tolist(), chosen.y.tolist(), chosen.environments.tolist()) == ([1, 3], [10, 30], ["a", "c"])
