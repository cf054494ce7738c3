"""The numbers behind each picture are those that one computes by hand, and pictures go where they are asked to."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eber
from eber import (
    AdaptationDisplay,
    EBERClassifier,
    EnvironmentCalibrationDisplay,
    EnvironmentSearch,
    EnvironmentWeightsDisplay,
    LatentSpaceDisplay,
    TrainingHistoryDisplay,
    UncertaintySplitDisplay,
)
from eber.datasets.base import MultiEnvironmentData
from eber.datasets.prototypes import draw
from eber.method.adaptation import AdaptationRecord

DISPLAYS = [name for name in eber.__all__ if name.endswith("Display")]


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


@pytest.fixture(scope="module")
def data() -> MultiEnvironmentData:
    """Six environments whose names sort otherwise as text than as people do."""
    train = draw(random_state=0).train
    some = train.select(np.random.default_rng(0).permutation(len(train))[:900])
    names = np.array([f"s {2 * j + 2}" for j in range(6)])[some.environments]  # s 2 ... s 12
    return MultiEnvironmentData(some.X, some.y, names)


@pytest.fixture(scope="module")
def clf(data: MultiEnvironmentData) -> EBERClassifier:
    return EBERClassifier(epochs=20, random_state=0).fit(data.X, data.y, environments=data.environments)


def drawn(name: str, clf: EBERClassifier, data: MultiEnvironmentData) -> Any:
    """The display of that name, with all that it can show."""
    display, rows = getattr(eber, name), {"environments": data.environments}
    arguments: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "AdaptationDisplay": ([draw(random_state=0).test.X], {}),
        "EnvironmentCalibrationDisplay": ([data.X, data.y], rows),
        "EnvironmentWeightsDisplay": ([data.X], rows),
        "LatentSpaceDisplay": ([data.X, data.y], rows),
        "TrainingHistoryDisplay": ([], {}),
        "UncertaintySplitDisplay": ([data.X], rows),
    }
    positional, named = arguments[name]
    return display.from_estimator(clf, *positional, **named)


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_draws_on_the_axes_it_is_given_and_makes_its_own_otherwise(
    name: str, clf: EBERClassifier, data: MultiEnvironmentData
) -> None:
    display = drawn(name, clf, data)
    assert display.ax_.figure is display.figure_
    assert pyplot.get_fignums() == [display.figure_.number]
    figure, (left, right) = pyplot.subplots(1, 2)
    assert display.plot(ax=right) is display
    assert display.ax_ is right
    assert display.figure_ is figure
    assert right.has_data()
    assert not left.has_data()
    assert right.get_xlabel()
    figure.canvas.draw()


def test_displays_are_imported_without_what_draws() -> None:
    """A service that draws nothing does not pay for it."""
    code = f"import sys, eber; [getattr(eber, name) for name in {DISPLAYS}]; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", DISPLAYS)
def test_the_example_of_a_display_runs(name: str) -> None:
    module = importlib.import_module(getattr(eber, name).__module__)
    result = doctest.testmod(module)
    assert result.attempted > 5
    assert result.failed == 0


def test_weights_are_the_mean_of_p_e_given_x_by_true_environment(
    clf: EBERClassifier, data: MultiEnvironmentData
) -> None:
    display = EnvironmentWeightsDisplay.from_estimator(clf, data.X, environments=data.environments)
    proba = clf.predict_environment_proba(data.X)
    assert display.groups == ["s 2", "s 4", "s 6", "s 8", "s 10", "s 12"], "as people sort them"
    assert display.environments == [str(name) for name in clf.environments_], "columns as the classifier has them"
    for group, weights, count in zip(display.groups, display.weights, display.counts, strict=True):
        of_group = [row for row, name in enumerate(data.environments) if name == group]
        assert count == len(of_group)
        assert weights == pytest.approx(sum(proba[row] for row in of_group) / count)
    assert [text.get_text() for text in display.texts_] == [f"{value:.2f}" for value in display.weights.ravel()]
    np.testing.assert_array_equal(np.asarray(display.image_.get_array()).ravel(), display.weights.ravel())


def test_rows_without_environments_are_one_line(clf: EBERClassifier, data: MultiEnvironmentData) -> None:
    display = EnvironmentWeightsDisplay.from_estimator(clf, data.X)
    assert display.groups == ["all rows"]
    assert display.weights[0] == pytest.approx(clf.predict_environment_proba(data.X).mean(0))


def test_calibration_curves_are_shares_that_one_counts_by_hand() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = np.where(rng.random(400) < p, "ill", "healthy")
    where = np.array(["A", "B"])[rng.integers(0, 2, 400)]
    proba = np.stack([1 - p, p], 1)
    display = EnvironmentCalibrationDisplay.from_predictions(
        y, proba, classes=["healthy", "ill"], environments=where, n_bins=4
    )
    for (name, curve), line in zip(display.curves.items(), display.lines_, strict=True):
        for b, (promised, observed) in enumerate(zip(*line.get_data(), strict=True)):
            rows = [i for i in range(400) if where[i] == name and b / 4 <= p[i] < (b + 1) / 4]
            assert curve.count[b] == len(rows)
            assert promised == pytest.approx(np.mean([p[i] for i in rows]))
            assert observed == pytest.approx(np.mean([y[i] == "ill" for i in rows]))
    assert display.ax_.get_xlabel() == "promised p(ill)"
    assert [line.get_label().split(" (")[0] for line in display.lines_] == ["A", "B"]


def test_the_interval_of_a_share_is_the_one_of_clopper_and_pearson() -> None:
    """By the definition: the shares for which as many events or more, and as few or fewer, have 2.5 % each."""
    from scipy.stats import binom

    y, p = np.array([1] * 7 + [0] * 13), np.full(20, 0.3)
    (curve,) = EnvironmentCalibrationDisplay.from_predictions(y, np.stack([1 - p, p], 1)).curves.values()
    low, high = curve.interval()
    assert np.isnan(low).sum() == np.isnan(high).sum() == 9, "bins without rows"
    assert binom.sf(6, 20, np.nanmax(low)) == pytest.approx(0.025)
    assert binom.cdf(7, 20, np.nanmax(high)) == pytest.approx(0.025)


def test_more_environments_than_colours_are_grey_below_the_curve_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    p, where = rng.random(600), rng.integers(0, 12, 600)
    y = (rng.random(600) < p).astype(int)
    display = EnvironmentCalibrationDisplay.from_predictions(y, np.stack([1 - p, p], 1), environments=where, n_bins=3)
    assert len(display.lines_) == 13
    assert len({line.get_color() for line in display.lines_[:12]}) == 1
    assert list(display.lines_[-1].get_ydata()) == pytest.approx([y[(p * 3).astype(int) == b].mean() for b in range(3)])


def test_bars_of_uncertainty_add_up_to_the_mean_entropy(clf: EBERClassifier, data: MultiEnvironmentData) -> None:
    display = UncertaintySplitDisplay.from_estimator(clf, data.X, environments=data.environments)
    proba = clf.predict_proba(data.X)
    entropy = -(proba * np.log(proba)).sum(1)
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_[-1]]
    by_hand = [entropy[data.environments == name].mean() for name in display.means.index]
    assert ends == pytest.approx(by_hand)
    p_y_given_xe = clf.explain(data.X).p_y_given_xe  # (n, m, K)
    expected = (-(p_y_given_xe * np.log(p_y_given_xe)).sum(2) * clf.predict_environment_proba(data.X)).sum(1)
    for name, bar in zip(display.means.index, display.bars_[0], strict=True):
        assert bar.get_width() == pytest.approx(expected[data.environments == name].mean())


def test_the_split_of_several_members_has_a_third_part(data: MultiEnvironmentData) -> None:
    pair = EBERClassifier(epochs=5, n_members=2, random_state=0)
    with pytest.warns(eber.exceptions.FitWarning):
        pair.fit(data.X, data.y, environments=data.environments)
    display = UncertaintySplitDisplay.from_estimator(pair, data.X)
    assert len(display.bars_) == 3
    assert display.means.to_numpy().sum() == pytest.approx(pair.explain_uncertainty(data.X)["total"].mean())


def test_mixtures_are_those_before_and_after_adapting(clf: EBERClassifier, data: MultiEnvironmentData) -> None:
    new = draw(random_state=0).test.X
    display = AdaptationDisplay.from_estimator(clf, new)
    assert display.before == pytest.approx(clf.predict_environment_proba(data.X).mean(0), abs=1e-6)
    assert display.after == pytest.approx(clf.adapt(new).adaptation_.mixture)
    of_copy = AdaptationDisplay.from_estimator(clf.adapt(new))
    assert of_copy.before == pytest.approx(display.before)
    assert of_copy.after == pytest.approx(display.after)
    assert not hasattr(clf, "adaptation_"), "the classifier itself is not changed"


def test_the_record_is_drawn_as_it_was_kept() -> None:
    record = AdaptationRecord(("A", "B"), np.array([0.6, 0.5]), np.array([0.4, 0.45]))
    display = AdaptationDisplay.from_predictions(
        [0.5, 0.5], [1.0, 0.0], environments=["A", "B"], record=record, kind="record"
    )
    before, after = (np.asarray(line.get_xdata()).tolist() for line in display.ax_.lines)
    assert before == [0.6, 0.5]
    assert after == [0.4, 0.45]
    assert display.ax_.get_title(loc="left") == "adapting helped"


def test_a_history_has_a_point_for_each_pass(clf: EBERClassifier) -> None:
    display = TrainingHistoryDisplay.from_estimator(clf)
    for (term, values), line in zip(clf.history_.items(), display.lines_, strict=True):
        assert line.get_label() == term.replace("_", " ")
        assert list(line.get_xdata()) == list(range(1, 21))
        assert list(line.get_ydata()) == values
    second = TrainingHistoryDisplay.from_history({"loss": [3.0, 2.0]}, name="another", ax=display.ax_)
    assert len(display.ax_.lines) == len(clf.history_) + 1
    assert second.lines_[0].get_label() == "another"


def test_points_of_the_latent_space_are_those_of_transform(clf: EBERClassifier, data: MultiEnvironmentData) -> None:
    display = LatentSpaceDisplay.from_estimator(clf, data.X, data.y, environments=data.environments)
    z = clf.transform(data.X)[:, 0]
    for k, points in enumerate(display.points_):
        x, height = points.get_offsets().T
        np.testing.assert_array_equal(x, z[data.y == k])
        line = np.array(["s 2", "s 4", "s 6", "s 8", "s 10", "s 12"])[np.rint(height).astype(int)]
        np.testing.assert_array_equal(line, data.environments[data.y == k])
        assert np.all((height - np.rint(height) > 0) == (k == 1)), "classes do not hide each other"


def test_two_coordinates_are_a_scatter_plot() -> None:
    z = np.random.default_rng(0).normal(size=(20, 3))
    display = LatentSpaceDisplay.from_predictions(z, np.zeros(20, dtype=int), components=(2, 0))
    np.testing.assert_array_equal(display.points_[0].get_offsets(), z[:, [2, 0]])
    assert display.ax_.get_xlabel() == "E[z|x], coordinate 3"


def test_a_pipeline_is_asked_with_its_earlier_steps(data: MultiEnvironmentData) -> None:
    pipeline = make_pipeline(StandardScaler(), EBERClassifier(epochs=20, random_state=0))
    pipeline.fit(data.X, data.y, eberclassifier__environments=data.environments)
    display = EnvironmentWeightsDisplay.from_estimator(pipeline, data.X)
    inside = pipeline[-1].predict_environment_proba(pipeline[0].transform(data.X))
    assert display.weights[0] == pytest.approx(inside.mean(0))
    assert TrainingHistoryDisplay.from_estimator(pipeline).history == pipeline[-1].history_


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_a_search_shows_what_it_chose_and_its_record(data: MultiEnvironmentData) -> None:
    search = EnvironmentSearch(EBERClassifier(epochs=8, random_state=0), [{}], max_folds=2)
    search.fit(data.X, data.y, environments=data.environments)
    display = AdaptationDisplay.from_estimator(search, kind="record")
    record = search.estimators_[0].adaptation_record_
    np.testing.assert_array_equal(display.ax_.lines[1].get_xdata(), record.after)
    assert display.after == pytest.approx(display.before), "nothing was adapted"


def test_a_name_with_a_dollar_sign_is_no_mathematics() -> None:
    display = EnvironmentWeightsDisplay.from_predictions([[0.5, 0.5]], training_environments=["$x_1$", "_ $"])
    display.figure_.canvas.draw()


def test_what_cannot_be_shown_is_refused_with_a_sentence(clf: EBERClassifier, data: MultiEnvironmentData) -> None:
    logistic = LogisticRegression().fit(data.X, data.y)
    for display in (EnvironmentWeightsDisplay, UncertaintySplitDisplay, AdaptationDisplay, LatentSpaceDisplay):
        with pytest.raises(TypeError, match="LogisticRegression is no EBERClassifier"):
            display.from_estimator(logistic, data.X)
    with pytest.raises(TypeError, match="LogisticRegression keeps no history_"):
        TrainingHistoryDisplay.from_estimator(logistic)
    with pytest.raises(TypeError, match="StandardScaler has no predict_proba"):
        EnvironmentCalibrationDisplay.from_estimator(StandardScaler(), data.X, data.y)
    with pytest.raises(ValueError, match="X has 900 rows, but environments has 3 entries"):
        EnvironmentWeightsDisplay.from_estimator(clf, data.X, environments=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"missing value .* at row 1"):
        UncertaintySplitDisplay.from_estimator(clf, data.X[:2], environments=["a", None])
    with pytest.raises(ValueError, match=r"holds \[0.5, 0.9\] in row 1"):
        EnvironmentWeightsDisplay.from_predictions([[0.5, 0.5], [0.5, 0.9]], training_environments=["a", "b"])
    with pytest.raises(ValueError, match="a column for each of 3 training environments"):
        EnvironmentWeightsDisplay.from_predictions([[0.5, 0.5]], training_environments=["a", "b", "c"])
    with pytest.raises(ValueError, match="no column 'within_environments'"):
        UncertaintySplitDisplay.from_predictions(pd.DataFrame({"total": [0.1]}))
    with pytest.raises(ValueError, match="was not adapted: give X"):
        AdaptationDisplay.from_estimator(clf)
    with pytest.raises(ValueError, match="no record of adapting"):
        AdaptationDisplay.from_estimator(clf, kind="record")
    with pytest.raises(ValueError, match="kind is 'weights'"):
        AdaptationDisplay.from_predictions([1.0], [1.0], environments=["a"], kind="weights")
    with pytest.raises(ValueError, match=r"after has shape \(2,\); give a weight for each of 1"):
        AdaptationDisplay.from_predictions([1.0], [0.5, 0.5], environments=["a"])
    with pytest.raises(ValueError, match="no term 'penalty'; this fit has loss"):
        TrainingHistoryDisplay.from_estimator(clf, terms=["penalty"])
    with pytest.raises(ValueError, match="columns 0 to 0"):
        LatentSpaceDisplay.from_estimator(clf, data.X, components=(0, 1))
    with pytest.raises(ValueError, match="n_bins is 0"):
        EnvironmentCalibrationDisplay.from_estimator(clf, data.X, data.y, n_bins=0)
    assert not pyplot.get_fignums(), "no empty figure is left behind"
