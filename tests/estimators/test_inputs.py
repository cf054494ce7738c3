"""What may be given to the classifiers as X, y and environments, and what is said when it may not."""

import inspect

import numpy as np
import pandas as pd
import pytest

from eber import EBERClassifier, ERMClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.exceptions import EnvironmentWarning, FitWarning
from tests.estimators.all_classifiers import CLASSIFIERS, NEED_ENVIRONMENTS

# Fits of one epoch are not good fits, and are not meant to be.
pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

rows = draw(ParametricParameters(n=25, m_validation=1, m_test=1, d=4), random_state=0).train
X, y, e = rows.X, rows.y, rows.environments
frame = pd.DataFrame(X, columns=["pulse", "lactate", "age", "weight"])
words = np.array(["ill", "well"])[y]
hospitals = np.array(list("ABCDEF"))[e]


def quick(classifier=EBERClassifier, **parameters):
    return classifier(**{"epochs": 1, "random_state": 0, **parameters})


reference: dict[type, np.ndarray] = {}


def reference_proba(classifier):
    """Predictions of the fit on plain integers, which every other way to write labels and environments must match."""
    if classifier not in reference:
        reference[classifier] = quick(classifier).fit(X, y, environments=e).predict_proba(X)
    return reference[classifier]


LABELS = {
    "strings": words,
    "list of strings": words.tolist(),
    "integers": y,
    "unsigned integers": y.astype(np.uint8),
    "floats": y.astype(float),
    "booleans": y == 1,
    "list of booleans": (y == 1).tolist(),
    "object strings": words.astype(object),
    "object integers": y.astype(object),
    "object booleans": (y == 1).astype(object),
    "Series": pd.Series(words, index=np.arange(len(y))[::-1]),
    "categorical": pd.Categorical(words, categories=["well", "ill", "dead"]),
    "categorical Series": pd.Series(y).astype("category"),
    "nullable integers": pd.Series(y, dtype="Int64"),
    "nullable booleans": pd.Series(y == 1, dtype="boolean"),
    "nullable strings": pd.Series(words, dtype="string"),
}


@pytest.mark.parametrize("classifier", [EBERClassifier, ERMClassifier])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_may_be_written_in_any_way_and_come_back_so(kind, classifier):
    labels = LABELS[kind]
    model = quick(classifier).fit(X, labels, environments=e)
    assert model.classes_.tolist() == sorted(set(np.asarray(labels).tolist()))
    np.testing.assert_array_equal(model.predict_proba(X), reference_proba(classifier))
    assert set(model.predict(X).tolist()) <= set(np.asarray(labels).tolist())
    assert model.score(X, np.asarray(labels, dtype=model.classes_.dtype)) == np.mean(
        model.predict_proba(X).argmax(1) == y
    )


ENVIRONMENTS = {
    "strings": hospitals,
    "list of strings": hospitals.tolist(),
    "integers": e + 7,
    "negative integers": e - 7,
    "floats": e / 2,
    "object strings": hospitals.astype(object),
    "object integers": e.astype(object),
    "column": e[:, None],
    "DataFrame column": pd.DataFrame({"hospital": hospitals}),
    "Series": pd.Series(hospitals, index=np.arange(len(e))[::-1]),
    "categorical": pd.Categorical(hospitals, categories=list("FEDCBAZ")),
    "nullable integers": pd.Series(e, dtype="Int64"),
    "nullable strings": pd.Series(hospitals, dtype="string"),
    "days": pd.to_datetime("2024-02-28") + pd.to_timedelta(e, unit="D"),
}


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_environments_may_be_written_in_any_way(kind):
    """All of these sort as the integers do, so the fit must be the same to the bit."""
    model = quick().fit(X, y, environments=ENVIRONMENTS[kind])
    names = np.unique(np.asarray(ENVIRONMENTS[kind]))
    np.testing.assert_array_equal(model.environments_, names)
    np.testing.assert_array_equal(model.predict_proba(X), reference_proba(EBERClassifier))


def test_two_environments_may_be_booleans():
    model = quick().fit(X, y, environments=(e > 2).astype(object))
    assert model.environments_.tolist() == [False, True]


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_x_may_be_a_list_an_array_of_any_layout_or_a_frame(classifier):
    expected = reference_proba(classifier)
    read_only = X.astype(np.float32)
    read_only.flags.writeable = False
    for given in (X.tolist(), np.asfortranarray(X), read_only, np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_array_equal(quick(classifier).fit(given, y, environments=e).predict_proba(given), expected)
    for given in (frame, frame.astype(np.float32), frame.astype("Float64"), frame.astype(object)):
        np.testing.assert_array_equal(quick(classifier).fit(given, y, environments=e).predict_proba(given), expected)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_columns_must_be_those_of_the_fit_in_their_order(classifier):
    model = quick(classifier).fit(frame, y, environments=e)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict_proba(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="yet now missing:\n- weight"):
        model.predict(frame.drop(columns="weight"))
    with pytest.raises(ValueError, match="unseen at fit time:\n- height"):
        model.transform(frame.rename(columns={"weight": "height"}))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        quick(classifier).fit(X, y, environments=e).predict(X[:, :3])


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf"), (1e300, "too large")])
def test_values_that_are_not_finite_are_refused_by_column_and_row(classifier, value, word):
    model = quick(classifier).fit(frame, y, environments=e)
    bad = frame.copy()
    bad.iloc[[7, 9], 2] = value
    for call in (model.predict, lambda X: quick(classifier).fit(X, y, environments=e)):
        with pytest.raises(ValueError, match=f"{word}.* in column 'age', row 7 \\(2 such values in all\\)"):
            call(bad)
    with pytest.raises(ValueError, match=f"{word}.* in column 2, row 7"):
        quick(classifier).fit(bad.to_numpy(), y, environments=e)


def test_missing_values_of_pandas_are_refused_by_column_and_row():
    bad = frame.astype("Float64")
    bad.iloc[3, 1] = pd.NA
    with pytest.raises(ValueError, match="NaN in column 'lactate', row 3"):
        quick().fit(bad, y, environments=e)


@pytest.mark.parametrize("column", [words, pd.Categorical(words), pd.Series(words, dtype="string")])
def test_a_column_of_text_is_refused_by_name(column):
    with pytest.raises(ValueError, match=r"Column 'sex' of X is not numeric .*'(ill|well)'.*OneHotEncoder"):
        quick().fit(frame.assign(sex=column), y, environments=e)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("as_list", [False, True])
def test_a_missing_label_or_environment_is_named_by_row(missing, as_list):
    for good, other, name in ((words, hospitals, "y"), (hospitals, words, "environments")):
        column = good.astype(object)
        column[5] = missing
        if as_list:
            column = column.tolist()
        labels, environments = (column, other) if name == "y" else (other, column)
        with pytest.raises(ValueError, match=f"{name} has a missing value .* at row 5"):
            quick().fit(X, labels, environments=environments)


def test_a_missing_number_is_named_by_row():
    with pytest.raises(ValueError, match=r"environments has a missing value .* at row 2"):
        quick().fit(X, y, environments=np.where(np.arange(len(e)) == 2, np.nan, e))
    with pytest.raises(ValueError, match=r"y has a missing value .* at row 2"):
        quick(ERMClassifier).fit(X, pd.Series(y, dtype="Int64").where(np.arange(len(e)) != 2))


@pytest.mark.parametrize("make", [list, lambda values: np.array(values, dtype=object)])
def test_text_mixed_with_numbers_is_refused(make):
    mixed = make([1, "a"] * (len(y) // 2))
    with pytest.raises(ValueError, match="environments mixes text with numbers"):
        quick().fit(X, y, environments=mixed)
    with pytest.raises(ValueError, match="y mixes text with numbers"):
        quick().fit(X, mixed, environments=e)


@pytest.mark.parametrize(
    ("environments", "message"),
    [
        (e[:-1], "X has 150 rows, but environments has 149 entries"),
        ("A", r"environments has shape \(\); give a column"),
        (np.c_[e, e], r"environments has shape \(150, 2\); give a column"),
        ([], "X has 150 rows, but environments has 0 entries"),
        ([{"a": 1}] * 150, "environments cannot be sorted"),
    ],
)
def test_environments_of_another_shape_are_refused(environments, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y, environments=environments)


@pytest.mark.parametrize("classifier", NEED_ENVIRONMENTS)
def test_without_environments_all_rows_are_one_with_a_warning(classifier):
    with pytest.warns(EnvironmentWarning, match=f"{classifier.__name__}.fit got no environments") as caught:
        model = quick(classifier).fit(X, y)
    assert caught[0].filename == __file__  # it points at who called
    assert model.environments_.tolist() == ["all"]
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_erm_needs_no_environments_and_does_not_read_them():
    expected = reference_proba(ERMClassifier)
    np.testing.assert_array_equal(quick(ERMClassifier).fit(X, y).predict_proba(X), expected)
    np.testing.assert_array_equal(quick(ERMClassifier).fit(X, y, environments=e[::-1]).predict_proba(X), expected)


@pytest.mark.parametrize("classifier", NEED_ENVIRONMENTS)
def test_a_single_environment_is_warned_of_by_name(classifier):
    with pytest.warns(EnvironmentWarning, match="All rows come from environment 'Bern'"):
        quick(classifier).fit(X, y, environments=["Bern"] * len(y))


@pytest.mark.parametrize("classifier", NEED_ENVIRONMENTS)
def test_an_environment_with_one_class_is_warned_of_by_name(classifier):
    labels = np.where(hospitals == "B", "well", words)
    with pytest.warns(EnvironmentWarning, match="Environment 'B' has only class 'well'") as caught:
        quick(classifier).fit(X, labels, environments=hospitals)
    assert sum(warning.category is EnvironmentWarning for warning in caught) == 1
    with pytest.warns(EnvironmentWarning, match="Environment 3 has only class 0:"):
        quick(classifier).fit(X, np.where(e == 3, 0, y), environments=e)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_one_class_is_refused_by_name(classifier):
    for labels, shown in ((np.zeros(len(y), dtype=int), "0"), (np.full(len(y), "ill"), "'ill'")):
        with pytest.raises(ValueError, match=f"y has only one class, {shown};"):
            quick(classifier).fit(X, labels, environments=e)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_continuous_labels_and_labels_of_another_length_are_refused(classifier):
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        quick(classifier).fit(X, X[:, 0], environments=e)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        quick(classifier).fit(X, y[:-1], environments=e)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_prediction_never_asks_for_environments(classifier):
    model = quick(classifier).fit(X, y, environments=e)
    for name in ("predict", "predict_proba", "transform"):
        assert list(inspect.signature(getattr(model, name)).parameters) == ["X"]
        assert len(getattr(model, name)(X[:3])) == 3


@pytest.mark.parametrize("offset", [1e8, 2_460_000.5])
def test_a_column_that_float32_cannot_tell_apart_is_warned_of(offset):
    """Such as a Julian date; a fit would take it for a constant. Not so where its mean was subtracted."""
    y = np.arange(200) % 2
    X = np.column_stack([np.linspace(-1, 1, 200), offset + y * 0.5])
    with pytest.warns(FitWarning, match=r"Column 1 of X goes from .*Subtract its mean"):
        ERMClassifier(epochs=1, random_state=0).fit(X, y)
    ERMClassifier(epochs=1, random_state=0).fit(X - [0, offset], y)
    with pytest.warns(FitWarning, match="Column 'day' of X"):
        ERMClassifier(epochs=1, random_state=0).fit(pd.DataFrame(X, columns=["x", "day"]), y)
