"""Settings are chosen in environments that the fit has not seen, and by nothing else."""

import statistics
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from eber import EBERClassifier, ERMClassifier
from eber.exceptions import EnvironmentWarning
from eber.tuning.grids import default_candidates
from eber.tuning.left_out import LEAVE_ENVIRONMENTS_OUT, LEAVE_ROWS_OUT, NOTHING_LEFT_OUT, widest_average
from eber.tuning.search import LEAST_NETWORKS, EnvironmentSearch

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
CS = [{"C": 1e-4}, {"C": 1.0}]


def table(m=4, n=40, seed=0):
    """Environments with a feature that tells the label and one that tells it differently in each."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(m), n)
    y = rng.integers(2, size=m * n)
    cause = y + 0.7 * rng.normal(size=m * n)
    spurious = np.where(e % 2 == 0, y, 1 - y) + 0.1 * rng.normal(size=m * n)
    return np.c_[cause, spurious], y, np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))[e]


class Recorder(LogisticRegression):
    """Notes the rows that each fit saw, by their first column."""

    seen: list = []

    def fit(self, X, y):
        Recorder.seen.append(set(np.asarray(X)[:, 0].tolist()))
        return super().fit(X, y)


@parametrize_with_checks([EnvironmentSearch(LogisticRegression(), CS)])
@pytest.mark.filterwarnings("ignore::eber.exceptions.EnvironmentWarning")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_no_fit_sees_the_environment_that_it_is_judged_in():
    X, y, e = table()
    Recorder.seen = []
    search = EnvironmentSearch(Recorder(), CS).fit(X, y, environments=e)
    assert search.rule_ == LEAVE_ENVIRONMENTS_OUT
    *inner, _ = Recorder.seen[: 2 * 4 + 1]
    rows_of = {name: set(X[e == name, 0].tolist()) for name in "ABCD"}
    for i, seen in enumerate(inner):
        assert seen == set(X[:, 0].tolist()) - rows_of["ABCD"[i % 4]]
    for name in "ABCD":
        alone = LogisticRegression(**CS[1]).fit(X[e != name], y[e != name])
        p = alone.predict_proba(X[e == name])[np.arange(40), y[e == name]]
        results = pd.DataFrame(search.results_).query("candidate == 1").set_index("left_out")["nll"]
        assert results[name] == pytest.approx(-np.log(p).mean())


def test_what_is_kept_predicts_by_its_mean_and_is_fitted_on_all_rows():
    X, y, e = table()
    search = EnvironmentSearch(LogisticRegression(), [{"C": 1.0}, {"C": 1.1}, {"C": 1e-6}]).fit(X, y, environments=e)
    fits = [clone(LogisticRegression()).set_params(**candidate).fit(X, y) for candidate in search.chosen_]
    np.testing.assert_allclose(search.predict_proba(X), np.mean([fitted.predict_proba(X) for fitted in fits], 0))
    best = EnvironmentSearch(LogisticRegression(), [{"C": 1.0}, {"C": 1e-6}], select="best")
    best.fit(X, y, environments=e)
    assert len(best.chosen_) == 1
    means = pd.DataFrame(best.results_).groupby("candidate")["nll"].mean()
    assert best.candidates is not None
    assert best.chosen_ == [best.candidates[means.idxmin()]]


def widest_by_hand(p, e):
    """Candidates to be averaged, (C, n) probabilities of the label, by plain loops."""

    def by_environment(average):
        return [float(np.mean([-np.log(average[i]) for i in np.flatnonzero(e == name)])) for name in np.unique(e)]

    order = sorted(range(len(p)), key=lambda c: statistics.mean(by_environment(p[c])))
    averages = [by_environment(sum(p[c] for c in order[:k]) / k) for k in range(1, len(p) + 1)]
    best = min(averages, key=statistics.mean)
    width = 0
    for k, average in enumerate(averages, start=1):
        differences = [a - b for a, b in zip(average, best, strict=True)]
        if statistics.mean(differences) <= statistics.stdev(differences) / len(best) ** 0.5:
            width = k
    return order[:width]


def test_the_average_is_the_widest_within_one_standard_error_as_plain_loops_find_it():
    rng = np.random.default_rng(0)
    e = np.repeat(range(5), [4, 8, 6, 5, 9])
    units, widths = [np.flatnonzero(e == name) for name in range(5)], set()
    for _ in range(60):
        skill = rng.uniform(0, 3, size=(5, 1))
        p = expit(skill + rng.normal(size=(5, 5))[:, e] + rng.normal(size=(5, len(e))))  # (C, n)
        y = rng.integers(2, size=len(e))
        proba = np.where(np.arange(2) == y[:, None], p[..., None], 1 - p[..., None])  # (C, n, K)
        kept = widest_average(proba, y, units)
        assert kept.tolist() == widest_by_hand(p, e)
        widths.add(len(kept))
    assert len(widths) > 3


def test_a_candidate_that_diverged_once_is_not_averaged():
    proba = np.full((2, 4, 2), 0.5)
    proba[1, 0] = np.nan
    units = [np.array([0, 1]), np.array([2, 3])]
    y = np.array([0, 1, 0, 1])
    assert widest_average(proba, y, units).tolist() == [0]
    with pytest.raises(ArithmeticError, match="every candidate"):
        widest_average(proba[1:], y, units)


def test_left_out_predictions_are_those_of_fits_that_have_not_seen_the_row():
    X, y, e = table()
    search = EnvironmentSearch(LogisticRegression(), [{"C": 1.0}]).fit(X, y, environments=e)
    for name in "ABCD":
        alone = LogisticRegression(C=1.0).fit(X[e != name], y[e != name])
        np.testing.assert_allclose(search.left_out_proba_[e == name], alone.predict_proba(X[e == name]))


def test_many_environments_are_left_out_several_at_a_time():
    X, y, e = table(m=9)
    search = EnvironmentSearch(LogisticRegression(), CS, max_folds=3).fit(X, y, environments=e)
    assert len(search.results_["nll"]) == 2 * 9  # each environment still counts once
    assert np.isfinite(search.left_out_proba_).all()


def test_two_environments_are_judged_by_rows_and_it_says_so():
    X, y, e = table(m=2)
    with pytest.warns(EnvironmentWarning, match="2 training environments.*left-out rows"):
        search = EnvironmentSearch(LogisticRegression(), CS).fit(X, y, environments=e)
    assert search.rule_ == LEAVE_ROWS_OUT
    assert len(search.results_["nll"]) == 2 * 5


def test_environments_of_one_class_each_are_judged_by_rows():
    X, y, _ = table(m=3)
    y = np.repeat([0, 1, 2], 40)
    with pytest.warns(EnvironmentWarning, match="class of its own"):
        search = EnvironmentSearch(LogisticRegression(), CS).fit(X, y, environments=y)
    assert search.rule_ == LEAVE_ROWS_OUT


def test_too_few_rows_take_the_candidate_in_the_middle_and_it_says_so():
    candidates = [{"C": 0.1}, {"C": 1.0}, {"C": 10.0}]
    with pytest.warns(EnvironmentWarning, match="nothing is tuned"):
        search = EnvironmentSearch(LogisticRegression(), candidates).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert search.rule_ == NOTHING_LEFT_OUT
    assert search.chosen_ == [{"C": 1.0}]
    assert np.isnan(search.left_out_proba_).all()


def test_a_tuned_eber_is_an_eber_with_all_its_answers():
    X, y, e = table()
    search = EnvironmentSearch(
        EBERClassifier(epochs=2, random_state=0), [{"weight_decay": 0.0}, {"weight_decay": 1e-3}, {"hidden_dims": (4,)}]
    ).fit(X, y, environments=e)
    (eber,) = search.estimators_
    assert isinstance(eber, EBERClassifier)
    np.testing.assert_array_equal(search.predict_proba(X), eber.predict_proba(X))
    assert eber.predict_environment_proba(X).shape == (len(X), 4)
    each = -(-LEAST_NETWORKS // len(search.chosen_))  # seeds
    assert eber.n_members == len(eber.members_) == each * len(search.chosen_)


def test_few_networks_are_averaged_over_seeds_where_there_was_a_choice():
    X, y, e = table()

    def members(candidates, **options):
        search = EnvironmentSearch(ERMClassifier(epochs=1, random_state=0), candidates, **options)
        (erm,) = search.fit(X, y, environments=e).estimators_
        return [member.seed_ for member in getattr(erm, "members_", [erm])]

    two = [{"weight_decay": 0.0}, {"weight_decay": 0.1}]
    assert len(members(two)) == LEAST_NETWORKS
    assert len(set(members(two))) > 1
    assert len(members(two, select="best")) == len(members([{}])) == 1


def test_a_network_that_decays_is_chosen_where_columns_are_many():
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(120, 40)), np.repeat(list("ABCD"), 30)
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    candidates = [{"weight_decay": 0.0}, {"weight_decay": 30.0}]
    model = ERMClassifier(epochs=60, learning_rate=3e-3, random_state=0)
    search = EnvironmentSearch(model, candidates, select="best").fit(X, y, environments=e)
    assert search.chosen_ == [{"weight_decay": 30.0}]


def test_pipelines_are_searched_with_and_without_routing():
    X, y, e = table()
    model = make_pipeline(StandardScaler(), EBERClassifier(epochs=1, random_state=0))
    candidates = [{"eberclassifier__weight_decay": decay} for decay in (0.0, 3.0)]
    first = EnvironmentSearch(model, candidates).fit(X, y, environments=e)
    with sklearn.config_context(enable_metadata_routing=True):
        second = EnvironmentSearch(model, candidates).fit(X, y, environments=e)
        outer = make_pipeline(StandardScaler(), EnvironmentSearch(LogisticRegression(), CS))
        assert outer.fit(X, y, environments=e)[-1].rule_ == LEAVE_ENVIRONMENTS_OUT
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert len(first.estimators_[0][-1].environments_) == 4


def test_every_kind_has_settings_of_its_own_that_its_parameters_know():
    models = [EBERClassifier(), ERMClassifier(), LogisticRegression(), HistGradientBoostingClassifier()]
    for model in [*models, RandomForestClassifier(), make_pipeline(StandardScaler(), LogisticRegression())]:
        candidates = default_candidates(model)
        assert len(candidates) >= 4
        for candidate in candidates:
            clone(model).set_params(**candidate)
    assert {"weight_decay": 0.0} in default_candidates(EBERClassifier())
    assert not any("hidden_dims" in candidate for candidate in default_candidates(ERMClassifier(featurizer="linear")))
    with pytest.raises(TypeError, match="DummyClassifier"):
        default_candidates(DummyClassifier())


def test_inner_fits_do_not_warn_for_themselves():
    X, y, e = table()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        EnvironmentSearch(EBERClassifier(epochs=1, random_state=0), [{}, {}]).fit(X, y, environments=e)
    assert len(caught) <= 2 * 6  # of the two fits that are kept, and none of the eight that judge


def test_no_candidates_are_refused():
    X, y, e = table()
    with pytest.raises(ValueError, match="empty"):
        EnvironmentSearch(LogisticRegression(), []).fit(X, y, environments=e)
