"""What a user says about a table reaches everybody who reads it: workers, the saved model, and new rows."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import eber
from eber.runs.results import load_results
from tests.command_line import eber as command
from tests.one_process import one_process  # noqa: F401

NAMES: dict[str, Any] = {"label": "ill", "environment": "klinik", "quick": True, "methods": ["Logistic regression"]}
OPTIONS = ["--label", "ill", "--environment", "klinik", "--quick", "--methods", "logistic regression"]
N = 240


@pytest.fixture
def frame() -> pd.DataFrame:
    """Rows whose reading hangs on what is said: an encoding, codes, a ward number, and two classes without a name."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).round(3)
    return pd.DataFrame(
        {
            "klinik": np.resize(["Köln", "Zürich", "Graz"], N),
            "ill": np.where(x + rng.normal(size=N) > 0.4, "A", "B"),
            "größe": np.where(np.arange(N) % 8 == 0, -5, x),
            "ward": rng.integers(1, 5, N),
        }
    )


SAID: dict[str, Any] = {"categorical": ["ward"], "missing": ["-5"], "positive": "B", "encoding": "latin-1"}


def test_what_is_said_reaches_the_workers_and_is_part_of_what_is_kept(
    tmp_path: Path, frame: pd.DataFrame, request: pytest.FixtureRequest
) -> None:
    """Worker processes read the table themselves; they could not even decode it without being told."""
    path = tmp_path / "t.csv"
    path.write_bytes(frame.to_csv(index=False).encode("latin-1"))
    told = eber.compare_table(path, **NAMES, **SAID, out=tmp_path / "out", jobs=1)
    assert told.exit_status == 0
    request.getfixturevalue("one_process")
    named = frame.assign(ward="w" + frame["ward"].astype(str))
    plain = eber.compare_table(named, **NAMES, missing=["-5"], positive="B", out=tmp_path / "plain", jobs=1)
    pd.testing.assert_frame_equal(told.scores, plain.scores)
    other = eber.compare_table(path, **NAMES, **{**SAID, "categorical": []}, out=tmp_path / "out", jobs=1)
    assert not np.allclose(other.scores["nll"], told.scores["nll"]), "another kind is another comparison"


@pytest.mark.usefixtures("one_process")
def test_scores_and_page_speak_of_the_positive_class(tmp_path: Path, frame: pd.DataFrame) -> None:
    found = {}
    for positive in ("A", "B"):
        comparison = eber.compare_table(frame, **NAMES, positive=positive, out=tmp_path / positive, jobs=1)
        assert comparison.record.classes[1] == positive
        assert f"are about ill = {positive}." in comparison.page.read_text()
        results = load_results(comparison.record.experiment, comparison.folder)
        arrays = results.arrays("Logistic regression", 0, "Graz")
        truth = frame.loc[frame["klinik"] == "Graz", "ill"] == positive
        np.testing.assert_array_equal(arrays["label"] == 1, truth)
        scores = comparison.scores.set_index("held_out")
        assert scores.loc["Graz", "auroc"] == pytest.approx(roc_auc_score(truth, arrays["proba"][:, 1]), abs=1e-6)
        found[positive] = scores
    np.testing.assert_allclose(found["A"]["nll"], found["B"]["nll"])
    np.testing.assert_allclose(found["A"]["auroc"], found["B"]["auroc"], atol=1e-9)
    assert (found["A"]["auprc"] != found["B"]["auprc"]).all(), "which class is meant decides what AUPRC is"


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
def test_a_model_reads_new_rows_as_it_was_told_to_read_the_old_ones(tmp_path: Path, frame: pd.DataFrame) -> None:
    crp = np.where(np.arange(N) % 9 == 0, -999.0, np.arange(N) % 50)
    smear = np.resize(["+", "-", "-", "+", "-"], N)
    model = eber.fit_table(
        frame.assign(crp=crp, smear=smear),
        label="ill",
        environment="klinik",
        method="ERM",
        quick=True,
        scores=False,
        categorical="ward",
        missing="-5",
        out=tmp_path / "model",
    )
    assert model.card["data"]["positive"] == model.schema.positive != ""
    loaded = eber.load_model(tmp_path / "model")
    assert loaded.schema == model.schema
    new = frame.assign(crp=crp, smear=smear).head(4)
    coded = new.assign(crp=[-999.0] * 4, größe=[-5.0] * 4, smear="-")
    empty = new.assign(crp=[None] * 4, größe=[None] * 4, smear="no")
    first, second = (loaded.predict_table(rows).to_pandas() for rows in (coded, empty))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.usefixtures("one_process")
def test_rows_of_a_query_are_kept_for_the_workers(
    tmp_path: Path, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "t.db", tmp_path / "out"
    with contextlib.closing(sqlite3.connect(path)) as database:
        frame.to_sql("visits", database, index=False)
        database.commit()
    query = 'SELECT klinik, ill, "größe", ward FROM visits WHERE rowid <= 150'
    assert command(monkeypatch, "compare", path, *OPTIONS, "--query", query, "--out", out) == 0
    said = capsys.readouterr().err
    assert "A is the positive one (the rarer of the two; --positive says otherwise)" in said
    assert "Columns that are used: 2 numeric (größe, ward)." in said
    assert len(pd.read_parquet(out / "table.parquet")) == 150
    assert json.loads((out / "comparison.json").read_text())["content"]["n_rows"] == 150
