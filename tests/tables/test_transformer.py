"""The preprocessing of tables as a step of scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from eber import TablePreprocessor
from eber.datasets.hospitals import draw_hospitals, draw_new_hospital
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table


@pytest.fixture(scope="module")
def hospitals() -> pd.DataFrame:
    return draw_hospitals(400)


def columns_of(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=["sepsis", "hospital"])


@parametrize_with_checks([TablePreprocessor()])
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_matrix_is_the_one_that_the_commands_use(hospitals: pd.DataFrame) -> None:
    table = read_training_table(hospitals, label="sepsis", environment="hospital")
    expected = Preprocessing.fit(table.columns, table.schema)
    step = TablePreprocessor()
    np.testing.assert_array_equal(step.fit_transform(columns_of(hospitals)), expected.transform(table.columns))
    assert step.get_feature_names_out().tolist() == expected.names_out
    assert any("'patient_id' is not used" in note for note in step.notes_)


def test_new_rows_may_have_other_columns_in_another_order_but_not_fewer(hospitals: pd.DataFrame) -> None:
    step = TablePreprocessor().fit(columns_of(hospitals))
    new = draw_new_hospital(30)
    expected = step.transform(columns_of(new))
    np.testing.assert_array_equal(step.transform(new[new.columns[::-1]]), expected)
    np.testing.assert_array_equal(step.transform(polars.from_pandas(new)), expected)
    with pytest.raises(ValueError, match="has no column 'lactate'"):
        step.transform(new.drop(columns="lactate"))


def test_columns_can_be_chosen_and_left_out(hospitals: pd.DataFrame) -> None:
    X = columns_of(hospitals)
    assert TablePreprocessor(features=["age", "ventilated"]).fit(X).get_feature_names_out().tolist() == [
        "age",
        "ventilated",
    ]
    names = TablePreprocessor(drop="age").fit(X).get_feature_names_out()
    assert "age" not in names
    assert "ward = emergency" in names


def test_it_is_a_step_of_a_pipeline(hospitals: pd.DataFrame) -> None:
    pipeline = make_pipeline(TablePreprocessor(), LogisticRegression())
    scores = cross_val_score(pipeline, columns_of(hospitals), hospitals["sepsis"], scoring="roc_auc", cv=3)
    assert scores.min() > 0.75
    named = clone(pipeline[0]).set_output(transform="pandas").fit_transform(columns_of(hospitals))
    assert "lactate is missing" in named


def test_sparse_input_is_refused_with_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"Sparse input is not supported: .*toarray"):
        TablePreprocessor().fit(sparse.csr_array(np.eye(3)))


def test_a_row_is_encoded_as_it_is_whatever_rows_come_with_it() -> None:
    """A minus among findings is a finding, also where no plus is beside it."""
    table = pd.DataFrame({"smear": ["+", "-", "-", "++"] * 10, "age": range(40)})
    preprocessor = TablePreprocessor(features=["smear", "age"]).fit(table)
    together = preprocessor.transform(table)
    apart = np.concatenate([preprocessor.transform(table.iloc[[j]]) for j in range(40)])
    np.testing.assert_array_equal(apart, together)
    minus = preprocessor.get_feature_names_out().tolist().index("smear = -")
    np.testing.assert_array_equal(together[:, minus], table["smear"] == "-")


def test_a_column_that_is_there_twice_is_refused_by_the_transformer() -> None:
    table = pd.DataFrame({"age": range(40), "dose": [1.5, 2.5] * 20})
    preprocessor = TablePreprocessor(features=["age", "dose"]).fit(table)
    with pytest.raises(ValueError, match="has two columns called 'age'"):
        preprocessor.transform(pd.concat([table, table[["age"]]], axis=1))
