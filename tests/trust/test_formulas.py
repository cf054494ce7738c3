"""What a spreadsheet opens holds no formula that came in with the data."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eber.io.spreadsheet_text import escape_formula, escape_formulas, unescape_formula
from eber.runs.progress import Progress
from eber.runs.results import load_results
from eber.runs.runner import run
from eber.tables.prediction import predict_file
from tests.toy_experiment import TOY
from tests.trust.models import fitted_model, new_patients

HOSTILE = ['=HYPERLINK("http://x","y")', "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)", "\t=1+1", "'=1"]
HARMLESS = ["plain", "-1.5", "+3", "-1e5", "+", "-", "1=1", "", "a@b.c"]

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


def test_formulas_get_an_apostrophe_and_nothing_else_changes() -> None:
    table, changed = escape_formulas(pa.table({"=evil": [*HOSTILE, *HARMLESS, None], "n": range(16)}))
    assert changed == len(HOSTILE)
    assert table.column_names == ["'=evil", "n"]
    assert table.column(0).to_pylist() == [*(f"'{text}" for text in HOSTILE), *HARMLESS, None]
    assert table.column(1).to_pylist() == list(range(16))


@given(st.text(max_size=8) | st.text("=+-@'\t\r\n1.e", max_size=6))
def test_no_text_is_left_that_a_spreadsheet_computes_and_none_is_lost(text: str) -> None:
    (after,) = escape_formulas(pa.table({"x": pa.array([text])}))[0].column(0).to_pylist()
    assert after == escape_formula(text)
    assert unescape_formula(after) == text
    if after[:1] in ("=", "@", "\t", "\r", "\n") or (after[:1] in ("+", "-") and len(after) > 1):
        float(after.replace(",", "."))  # a number is none


def test_predictions_as_csv_hold_no_formula_and_as_parquet_the_text_itself(tmp_path: Path) -> None:
    """Seen to fail with the text copied as it is."""
    new = new_patients(tmp_path)
    table = pd.read_csv(new, dtype=str)
    table.loc[: len(HOSTILE) - 1, "patient_id"] = HOSTILE
    table.to_csv(new, index=False)
    model = fitted_model(tmp_path)
    report = predict_file(model, new, tmp_path / "p.csv")
    assert report.formulas == len(HOSTILE)
    with (tmp_path / "p.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "\t"))]
    assert [f"'{text}" for text in HOSTILE] == [cell for cell in cells if cell.startswith("'")]
    predict_file(model, new, tmp_path / "p.parquet")
    assert pd.read_parquet(tmp_path / "p.parquet")["patient_id"].tolist()[: len(HOSTILE)] == HOSTILE


def test_the_tables_of_a_run_hold_no_formula_and_are_read_back_as_they_were(tmp_path: Path) -> None:
    """Settings of a comparison are named by the user's environments."""
    hostile = dataclasses.replace(TOY, paper={}, settings={text: {} for text in HOSTILE})
    run(hostile, out=tmp_path, seeds=1, methods=["ERM"], progress=Progress())
    with (tmp_path / "cells.csv").open(newline="") as file:
        assert not [cell for row in csv.reader(file) for cell in row if cell.startswith(("=", "@", "\t", "+c"))]
    assert list(load_results(hostile, tmp_path).cells["setting"].unique()) == HOSTILE
