"""Tables that the project has never seen: a result that is right, or one sentence; never a traceback."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.compare import methods
from eber.compare.methods import Effort
from tests import messy_tables
from tests.command_line import eber
from tests.messy_tables import TABLES, Messy
from tests.one_process import one_process  # noqa: F401

NAMES = ["--label", "y", "--environment", "site"]
READABLE = {name: table for name, table in TABLES.items() if not table.says}


@pytest.fixture(autouse=True)
def a_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fit learns is not the point here."""
    monkeypatch.setattr(methods, "QUICK", Effort(2, 0))
    monkeypatch.setattr(methods, "MIN_EPOCHS", 1)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in READABLE])
def test_what_cannot_be_used_ends_in_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / "table").mkdir()
    path = TABLES[name].write(folder)
    for command in (["compare"], ["fit", "--no-scores"]):
        assert eber(monkeypatch, *command, path, *NAMES, "--quick", "--out", tmp_path / "out") == 2
        error = capsys.readouterr().err.strip()
        assert TABLES[name].says in error
        last = error.splitlines()[-1]
        assert last.startswith("eber: ")
        assert last.endswith("."), "a sentence"
        assert str(path) in last


@pytest.mark.parametrize("name", READABLE)
def test_what_can_be_used_is_fitted_and_predicted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = READABLE[name]
    path, model = table.write(tmp_path), tmp_path / "model"
    assert eber(monkeypatch, "fit", path, *NAMES, "--quick", "--no-scores", "--out", model) == 0
    said = capsys.readouterr().err
    of_folds = ("held out", "all rows are of one class")
    for note in table.notes:
        assert note in said or any(words in note for words in of_folds)
    content = json.loads((model / "table.json").read_text())["content"]
    features = content["schema"]["features"]
    kinds = {feature["name"]: feature["kind"] for feature in features}
    assert {column: kinds.get(column) for column, _ in table.kinds} == dict(table.kinds)
    assert eber(monkeypatch, "predict", model, path, "--out", tmp_path / "p.csv", "--adapt") == 0
    answers = pd.read_csv(tmp_path / "p.csv")
    data = content["card"]["data"]
    assert len(answers) >= data["rows"]
    proba = answers[[f"p({label})" for label in data["classes"]]].to_numpy()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "three classes",
        "an environment of one class",
        "a class in one environment alone",
        "some environments of one row",
        "labels missing",
        "markup in names",
    ],
)
@pytest.mark.usefixtures("one_process")
def test_what_can_be_held_out_is_compared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = TABLES[name]
    options = ["--quick", "--methods", "eber,logistic regression", "--jobs", "1", "--out", tmp_path / "out"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eber(monkeypatch, "compare", table.write(tmp_path), *NAMES, *options) == 0
    said = capsys.readouterr()
    for note in table.notes:
        assert note in said.err
    assert said.err.startswith("Classes of 'y' with their rows: ")
    assert "Environments of 'site' with their rows: " in said.err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<b>x" not in page
    assert "nan" not in said.out


@pytest.mark.usefixtures("one_process")
def test_five_hundred_environments_are_compared_in_twenty_folds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table: Messy = TABLES["five hundred environments"]
    options = ["--quick", "--methods", "logistic regression", "--jobs", "1", "--out", tmp_path / "out"]
    assert eber(monkeypatch, "compare", table.write(tmp_path), *NAMES, *options) == 0
    assert table.notes[0] in capsys.readouterr().err
    assert pd.read_csv(tmp_path / "out" / "cells.csv")["setting"].nunique() == 20


@pytest.mark.parametrize("name", [name for name, table in READABLE.items() if not table.compares])
def test_what_cannot_be_held_out_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = READABLE[name].write(tmp_path)
    assert eber(monkeypatch, "compare", path, *NAMES, "--quick", "--out", tmp_path / "out") == 2
    assert re.search("needs at least two|can be held out", capsys.readouterr().err)
    assert eber(monkeypatch, "fit", path, *NAMES, "--quick", "--out", tmp_path / "model") == 0
    assert "No leave-one-environment-out scores" in capsys.readouterr().err


@pytest.mark.parametrize("make", [messy_tables.two_thousand_columns, messy_tables.ten_thousand_categories])
def test_wide_and_many_valued_tables_are_fitted(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = messy_tables.csv(make)(tmp_path)
    options = ["--quick", "--no-scores", "--method", "erm", "--out", tmp_path / "model"]
    assert eber(monkeypatch, "fit", path, *NAMES, *options) == 0
    assert eber(monkeypatch, "predict", tmp_path / "model", path, "--out", tmp_path / "p.parquet") == 0
    assert len(pd.read_parquet(tmp_path / "p.parquet")) == len(pd.read_csv(path))


def test_a_file_that_may_not_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A permission is refused here by hand: whoever runs tests as root may read everything."""
    path = messy_tables.csv(messy_tables.base())(tmp_path)

    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    assert eber(monkeypatch, "fit", path, *NAMES, "--out", tmp_path / "model") == 2
    said = capsys.readouterr().err
    assert "Permission denied" in said
    assert str(path) in said
