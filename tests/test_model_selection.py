"""Weights are chosen within the training environments, on rows that the fit has not seen."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eber import IRMClassifier
from eber.datasets.base import MultiEnvironmentData
from eber.model_selection import (
    SELECTION_RULES,
    Fold,
    choose_penalty_weight,
    choose_weight,
    find_rule,
    leave_one_environment_out,
    selection_folds,
    subsample,
    training_domain_cross_validation,
    training_domain_validation,
)

FOLD: Fold = (np.array([0]), np.array([1]))


def data_with(counts: list[tuple[int, int]]) -> MultiEnvironmentData:
    """One environment for each pair: so many rows of label 0, so many of label 1."""
    y = np.concatenate([np.repeat([0, 1], pair) for pair in counts])
    environments = np.repeat([f"e{j}" for j in range(len(counts))], [sum(pair) for pair in counts])
    return MultiEnvironmentData(np.arange(len(y), dtype=float)[:, None], y, environments, name="toy")


COUNTS = st.lists(st.tuples(st.integers(1, 12), st.integers(5, 12)), min_size=3, max_size=5)


@pytest.mark.parametrize("name", SELECTION_RULES)
@settings(deadline=None, max_examples=25)
@given(counts=COUNTS, seed=st.integers(0, 100))
def test_no_row_is_both_fitted_on_and_validated_on(name: str, counts: list[tuple[int, int]], seed: int) -> None:
    data = data_with(counts)
    for fitted_on, validated_on in find_rule(name)(data, seed):
        assert sorted([*fitted_on, *validated_on]) == list(range(len(data)))
        assert len(validated_on)


def test_leaving_one_environment_out_leaves_each_out_once_and_whole() -> None:
    data = data_with([(3, 4), (5, 6), (7, 8)])
    left_out = []
    for fitted_on, validated_on in leave_one_environment_out(data):
        (name,) = set(data.environments[validated_on])
        assert name not in data.environments[fitted_on]
        left_out.append(name)
    assert left_out == data.environment_names


def test_leaving_one_of_two_environments_out_is_refused() -> None:
    """One environment is left then, in which V-REx and Fishr have no penalty: every weight would look the same."""
    with pytest.raises(ValueError, match=r"toy has 2 training environments \(e0, e1\).*training_domain_validation"):
        leave_one_environment_out(data_with([(3, 4), (5, 6)]))


def test_training_domain_validation_takes_a_fifth_of_each_label_in_each_environment() -> None:
    data = data_with([(20, 10), (40, 5)])
    ((_, validated_on),) = training_domain_validation(data, 3)
    found = {
        (name, label): int(np.sum((data.environments[validated_on] == name) & (data.y[validated_on] == label)))
        for name in ("e0", "e1")
        for label in (0, 1)
    }
    assert found == {("e0", 0): 4, ("e0", 1): 2, ("e1", 0): 8, ("e1", 1): 1}


def test_cross_validation_validates_on_every_row_once() -> None:
    data = data_with([(20, 10), (40, 5)])
    folds = training_domain_cross_validation(data, 0)
    assert len(folds) == 5
    assert sorted(np.concatenate([validated_on for _, validated_on in folds])) == list(range(len(data)))


def test_rows_too_few_to_split_are_always_fitted_on() -> None:
    data = data_with([(1, 10), (10, 10)])
    for fitted_on, _ in training_domain_cross_validation(data, 0):
        assert 0 in fitted_on


def test_the_split_changes_with_the_seed_and_only_with_it() -> None:
    data = data_with([(20, 20), (20, 20)])
    first, again, other = (training_domain_validation(data, seed)[0][1].tolist() for seed in (0, 0, 1))
    assert first == again != other


def test_the_weight_with_the_least_mean_loss_is_chosen() -> None:
    choice = choose_weight({0.1: [1.0, 5.0], 1.0: [2.0, 2.0], 10.0: [3.0, 3.0]})
    assert choice.weight == 1.0
    assert choice.losses == {0.1: 3.0, 1.0: 2.0, 10.0: 3.0}


def test_a_weight_with_which_training_diverges_is_not_chosen() -> None:
    choice = choose_weight({100.0: [math.inf, 0.0], 10.0: [math.nan, 0.0], 1.0: [1.0, 1.0]})
    assert choice.weight == 1.0
    assert choice.losses[100.0] == choice.losses[10.0] == math.inf


def test_nothing_is_chosen_where_training_always_diverges() -> None:
    with pytest.raises(ArithmeticError, match=r"diverged with every weight of the grid: 1\.0, 2\.0"):
        choose_weight({1.0: [math.inf], 2.0: [math.inf]})
    with pytest.raises(ValueError, match="empty"):
        choose_weight({})


def test_a_subsample_takes_as_many_rows_of_each_environment_and_zero_takes_all() -> None:
    data = data_with([(20, 10), (3, 2)])
    some = subsample(data, 8, random_state=1)
    assert [int(np.sum(some.environments == name)) for name in ("e0", "e1")] == [8, 5]
    assert len(np.unique(some.X)) == len(some)
    assert subsample(data, 0) is data


def test_an_unknown_rule_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no selection rule 'best'; there are leave_one_environment_out"):
        find_rule("best")


def test_an_environment_with_a_class_of_its_own_is_never_left_out() -> None:
    folds = leave_one_environment_out(data_with([(3, 4), (0, 6), (7, 8), (5, 0)]))
    assert len(folds) == 4
    alone = data_with([(3, 0), (4, 0), (0, 6)])
    assert [set(alone.environments[rows]) for _, rows in leave_one_environment_out(alone)] == [{"e0"}, {"e1"}]


def test_many_environments_are_left_out_whole_in_twenty_folds() -> None:
    data = data_with([(2, 3)] * 45)
    folds = leave_one_environment_out(data)
    assert len(folds) == 20
    for fitted_on, validated_on in folds:
        assert not set(data.environments[fitted_on]) & set(data.environments[validated_on])


@pytest.fixture
def hospitals() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """A table as a user of scikit-learn has it, with a column on another scale."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["age", "lactate"])
    y = pd.Series(np.where(X["age"] + rng.normal(size=120) > 0, "sick", "well"))
    return X.assign(age=1000 * X["age"]), y, pd.Series(np.repeat(["a", "b", "c"], 40))


def test_a_weight_is_chosen_for_a_pipeline_on_a_data_frame(
    hospitals: tuple[pd.DataFrame, pd.Series, pd.Series],
) -> None:
    """As by hand: everything, preprocessing too, is fitted on the rows of the fold alone."""
    X, y, hospital = hospitals
    grid = (0.1, 1000.0)
    with sklearn.config_context(enable_metadata_routing=True):
        irm = IRMClassifier(epochs=2, random_state=0).set_fit_request(environments=True)
        pipeline = make_pipeline(StandardScaler(), irm)
        choice = choose_penalty_weight(
            pipeline,
            X,
            y,
            environments=hospital,
            grid=grid,
            rule="leave_one_environment_out",
            parameter="irmclassifier__penalty_weight",
        )
    for weight in grid:
        losses = []
        for name in "abc":
            out = (hospital == name).to_numpy()
            scaler = StandardScaler().fit(X[~out])
            clf = IRMClassifier(epochs=2, random_state=0, penalty_weight=weight)
            clf.fit(scaler.transform(X[~out]), y[~out], environments=hospital[~out])
            losses.append(log_loss(y[out], clf.predict_proba(scaler.transform(X[out]))))
        assert choice.losses[weight] == pytest.approx(np.mean(losses), abs=1e-9)
    assert choice.weight == min(choice.losses, key=lambda weight: choice.losses[weight])
    assert pipeline[-1].penalty_weight == IRMClassifier().penalty_weight


@pytest.mark.parametrize("rule", SELECTION_RULES)
def test_scikit_learns_search_by_a_rule_chooses_the_same(
    hospitals: tuple[pd.DataFrame, pd.Series, pd.Series], rule: str
) -> None:
    X, y, hospital = hospitals
    X = (X - X.mean()) / X.std()
    grid = (0.1, 1.0, 1000.0)
    with sklearn.config_context(enable_metadata_routing=True):
        irm = IRMClassifier(epochs=2, random_state=0).set_fit_request(environments=True)
        search = GridSearchCV(
            irm, {"penalty_weight": grid}, scoring="neg_log_loss", cv=selection_folds(rule, y, hospital), refit=False
        )
        search.fit(X, y, environments=hospital)
    choice = choose_penalty_weight(irm, X, y, environments=hospital, grid=grid, rule=rule)
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], list(choice.losses.values()), rtol=1e-9)
