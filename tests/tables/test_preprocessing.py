"""The matrix is what scikit-learn's transformers would make of the columns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from eber.tables.preprocessing import MAX_LEVELS, MAX_STANDARDISED, Preprocessing
from eber.tables.schema import Feature, FeatureKind, Schema
from eber.tables.training import FeatureColumns

NUMBERS = st.one_of(st.just(np.nan), st.floats(-100, 100).map(lambda value: round(value, 2)))


def one_column(values: object, kind: FeatureKind) -> tuple[FeatureColumns, Schema]:
    return FeatureColumns({"x": values}, len(values)), Schema("y", "e", (Feature("x", kind),), (), {})  # type: ignore[arg-type]


@settings(deadline=None)
@given(arrays(np.float64, st.integers(3, 30), elements=NUMBERS))
def test_numbers_as_scikit_learn(values: np.ndarray) -> None:
    known = values[~np.isnan(values)]
    if len(np.unique(known)) < 2:
        return
    columns, schema = one_column(values, "numeric")
    fitted = Preprocessing.fit(columns, schema)
    reference = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit_transform(values[:, None])
    X = fitted.transform(columns)
    np.testing.assert_allclose(X[:, 0], reference[:, 0], atol=1e-9)
    if np.isnan(values).any():
        assert fitted.names_out == ["x", "x is missing"]
        assert X[:, 1].tolist() == np.isnan(values).tolist()


def test_numbers_that_cannot_be_standardised_are_refused_by_column() -> None:
    """The mean of the two middle ones, which is their median, is beyond what a float holds."""
    columns, schema = one_column(np.array([9e307, 9.1e307, np.nan]), "numeric")
    with pytest.raises(ValueError, match="Column 'x' holds numbers too large"):
        Preprocessing.fit(columns, schema)


def test_categories_as_scikit_learn() -> None:
    values = pa.array(["b", "a", None, "c", "a"])
    columns, schema = one_column(values, "categorical")
    X = Preprocessing.fit(columns, schema).transform(columns)
    known = np.array([value for value in values.to_pylist() if value], dtype=object)[:, None]
    reference = OneHotEncoder(sparse_output=False).fit_transform(known)
    assert X[[0, 1, 3, 4], :3].tolist() == reference.tolist()
    assert X[2].tolist() == [0, 0, 0, 1]


def test_steps_as_scikit_learn() -> None:
    """The number of the step, standardised; what is no step counts as missing and is reported."""
    steps = ("none", "mild", "moderate", "severe")
    values = ["mild", "severe", "none", "mild", "moderate"]
    columns = FeatureColumns({"x": pa.array(values)}, 5)
    fitted = Preprocessing.fit(columns, Schema("y", "e", (Feature("x", "ordinal", steps=steps),), (), {}))
    ranks = OrdinalEncoder(categories=[list(steps)]).fit_transform(np.array(values, dtype=object)[:, None])
    np.testing.assert_allclose(fitted.transform(columns), StandardScaler().fit_transform(ranks))
    strange = FeatureColumns({"x": pa.array(["awful", "mild", None])}, 3)
    X = fitted.transform(strange)
    assert X[0, 0] == X[1, 0] == X[2, 0], "the median step for what is missing"
    assert fitted.unseen(strange) == {"x": (1, "awful")}
    assert Preprocessing.from_json(json.loads(json.dumps(fitted.to_json()))) == fitted


def test_values_never_seen_are_none_of_the_known_ones_and_are_counted() -> None:
    columns, schema = one_column(pa.array(["a", "b", "a", "b"]), "categorical")
    fitted = Preprocessing.fit(columns, schema)
    new = FeatureColumns({"x": pa.array(["b", "z", None, "z"])}, 4)
    assert fitted.transform(new).tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]
    assert fitted.unseen(new) == {"x": (2, "z")}


def test_rare_categories_share_what_is_left() -> None:
    names = [f"level {j}" for j in range(MAX_LEVELS + 5)]
    columns, schema = one_column(pa.array(names * 2 + names[:MAX_LEVELS]), "categorical")
    fitted = Preprocessing.fit(columns, schema)
    assert set(fitted.encodings[0].levels) == set(names[:MAX_LEVELS])
    assert fitted.unseen(FeatureColumns({"x": pa.array(["never seen"])}, 1)) == {}


def test_test_rows_have_no_part_in_what_is_learned() -> None:
    columns, schema = one_column(np.array([1.0, 2.0, 3.0, 1000.0]), "numeric")
    train = columns.select(np.arange(3))
    assert Preprocessing.fit(train, schema).encodings[0].mean == 2.0


def test_huge_values_stay_finite() -> None:
    columns, schema = one_column(np.array([1.0, 2.0, 3.0]), "numeric")
    X = Preprocessing.fit(columns, schema).transform(FeatureColumns({"x": np.array([1e300])}, 1))
    assert X[0, 0] == MAX_STANDARDISED


def test_plain_data_and_back_gives_the_same_matrix() -> None:
    values = {"n": np.array([1.5, np.nan, 2.25]), "c": pa.array(["a", "b", None]), "b": np.array([1.0, 0.0, np.nan])}
    features = (Feature("n", "numeric"), Feature("c", "categorical"), Feature("b", "boolean"))
    columns = FeatureColumns(values, 3)
    fitted = Preprocessing.fit(columns, Schema("y", "e", features, (), {}))
    again = Preprocessing.from_json(json.loads(json.dumps(fitted.to_json())))
    assert again == fitted
    np.testing.assert_array_equal(again.transform(columns), fitted.transform(columns))
