"""Data that change while they are used: what is reported belongs to what was read, or is not reported."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eber.compare import running
from eber.datasets.hospitals import draw_hospitals
from eber.experiments.data_files import DataFiles
from eber.runs.backends import choice
from eber.tables import files
from eber.tables.training import read_training_table
from eber.workflow import comparing, fitting
from tests.command_line import eber
from tests.one_process import OneProcess, one_process  # noqa: F401
from tests.trust.models import NAMES

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")

METHODS = ["--quick", "--methods", "logistic regression", "--jobs", 1]


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """A table, and one of the same names and size in which every label is another."""
    rows = draw_hospitals(240)
    rows.to_csv(tmp_path / "patients.csv", index=False)
    rows.assign(sepsis=1 - rows["sepsis"]).to_csv(tmp_path / "other.csv", index=False)
    return tmp_path / "patients.csv", tmp_path / "other.csv"


def swapped_while_computing(table: Path, other: Path) -> type[OneProcess]:
    """A pool before whose work a table becomes another, and after whose work it is itself again."""
    good = table.read_bytes()

    class Swapping(OneProcess):
        def wait(self, timeout: float) -> Any:
            shutil.copyfile(other, table)
            done = super().wait(timeout)
            table.write_bytes(good)
            return done

    return Swapping


def test_workers_refuse_rows_that_are_not_those_of_the_plan(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is another one just while cells are computed; nothing of it is kept, so the next run is clean."""
    table, other = tables
    monkeypatch.setattr(choice, "WorkerPool", OneProcess)
    assert eber(monkeypatch, "compare", table, *NAMES, *METHODS, "--out", tmp_path / "clean") == 0
    running._read.cache_clear()  # a worker's memory, which this process has kept from the run before
    monkeypatch.setattr(choice, "WorkerPool", swapped_while_computing(table, other))
    assert eber(monkeypatch, "compare", table, *NAMES, *METHODS, "--out", tmp_path / "out") != 0
    reasons = [path.read_text() for path in (tmp_path / "out" / "failures").iterdir()]
    assert reasons
    assert all(f"{table} changed while the comparison ran" in reason for reason in reasons)
    assert list((tmp_path / "out" / "cells").glob("*.json")) == []
    monkeypatch.setattr(choice, "WorkerPool", OneProcess)
    assert eber(monkeypatch, "compare", table, *NAMES, *METHODS, "--out", tmp_path / "out") == 0
    assert (tmp_path / "out" / "cells.csv").read_bytes() == (tmp_path / "clean" / "cells.csv").read_bytes()


@pytest.mark.usefixtures("one_process")
def test_a_table_that_changes_before_the_run_is_refused(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folds and remarks are of the table that was read first; the scores must be of it, too."""
    table, other = tables
    run = comparing.run

    def after_a_change(*arguments: Any, **options: Any) -> Any:
        shutil.copyfile(other, table)
        return run(*arguments, **options)

    monkeypatch.setattr(comparing, "run", after_a_change)
    assert eber(monkeypatch, "compare", table, *NAMES, *METHODS, "--out", tmp_path / "out") == 2
    assert f"{table} changed while the comparison ran" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_fingerprint_of_a_table_is_of_the_bytes_that_its_rows_came_from(
    suffix: str, tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the file becomes another one: before or after its names or its rows have been read."""
    contents = [(tmp_path / f"{i}{suffix}") for i in range(2)]
    for source, path in zip(tables, contents, strict=True):
        rows = pd.read_csv(source)
        rows.to_csv(path, index=False) if suffix == ".csv" else rows.to_parquet(path)
    labels = {hashlib.sha256(path.read_bytes()).hexdigest(): read(path).y for path in contents}
    table = tmp_path / f"table{suffix}"
    refused = 0
    for name in ("file_marks", "_open", "_table_file", "with_minus_as_null", "columns_of_signs"):
        shutil.copyfile(contents[0], table)
        with monkeypatch.context() as patch:
            patch.setattr(files, name, then(getattr(files, name), lambda: shutil.copyfile(contents[1], table)))
            try:
                found = read(table)
            except ValueError as error:
                refused += "was changed while it was read" in str(error)
                continue
        np.testing.assert_array_equal(found.y, labels[found.fingerprint])
    assert refused


def read(path: Path) -> Any:
    return read_training_table(path, label="sepsis", environment="hospital")


def then(function: Callable[..., Any], after: Callable[[], Any]) -> Callable[..., Any]:
    """A function after which something happens."""

    def both(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        after()
        return result

    return both


def test_the_card_names_the_bytes_that_a_model_learned_from(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every label of the file is changed as soon as it has been read."""
    table, other = tables
    learned_from = hashlib.sha256(table.read_bytes()).hexdigest()
    read = fitting.read_training_table
    monkeypatch.setattr(fitting, "read_training_table", then(read, lambda: shutil.copyfile(other, table)))
    assert eber(monkeypatch, "fit", table, *NAMES, "--quick", "--no-scores", "--out", tmp_path / "model") == 0
    card = json.loads((tmp_path / "model" / "table.json").read_text())["content"]["card"]
    assert card["data"]["sha256"] == learned_from
    assert learned_from in (tmp_path / "model" / "card.md").read_text()


@pytest.mark.usefixtures("one_process")
def test_a_report_does_not_pair_one_table_with_the_scores_of_another(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two comparisons in one folder, the second ended before its first score."""
    table, other = tables
    shutil.copyfile(table, tmp_path / "first.csv")
    out = tmp_path / "out"
    assert eber(monkeypatch, "compare", tmp_path / "first.csv", *NAMES, *METHODS, "--out", out) == 0
    assert eber(monkeypatch, "report", out) == 0
    page = (out / "report.html").read_bytes()

    def killed(*_: Any, **__: Any) -> None:
        raise SystemExit(137)

    with monkeypatch.context() as patch:
        patch.setattr(comparing, "run", killed)
        assert eber(monkeypatch, "compare", other, *NAMES, *METHODS, "--out", out) == 137
    assert eber(monkeypatch, "report", out) == 2
    assert "are of different tables" in capsys.readouterr().err
    assert (out / "report.html").read_bytes() == page
    assert eber(monkeypatch, "compare", other, *NAMES, *METHODS, "--out", out) == 0
    assert eber(monkeypatch, "report", out) == 0


FILES = DataFiles("rows", ("*.txt",), "rows")


def replaced_in_place(path: Path, content: str) -> None:
    path.write_text(content)


def replaced_by_renaming(path: Path, content: str) -> None:
    kept = path.with_suffix(".kept")
    if kept.exists():
        kept.replace(path)
    else:
        path.replace(kept)
        path.write_text(content)


def replaced_with_its_folder(path: Path, content: str) -> None:
    kept = path.parent.with_name("kept")
    if kept.exists():
        shutil.rmtree(path.parent)
        kept.replace(path.parent)
    else:
        path.parent.replace(kept)
        path.parent.mkdir()
        path.write_text(content)


@pytest.mark.parametrize("replace", [replaced_in_place, replaced_by_renaming, replaced_with_its_folder])
@pytest.mark.parametrize("restored", [False, True])
def test_files_of_an_experiment_that_change_while_it_runs_give_no_scores(
    replace: Callable[[Path, str], None], restored: bool, tmp_path: Path
) -> None:
    """Also where they are what they were when somebody looks again."""
    path = tmp_path / "rows" / "rows.txt"
    path.parent.mkdir()
    path.write_text("good rows")
    planned = FILES.fingerprint(tmp_path)
    FILES.require_unchanged(tmp_path, planned)
    replace(path, "other row")
    if restored:
        replace(path, "good rows")
        assert FILES.fingerprint(tmp_path) == planned
    with pytest.raises(ValueError, match="rows changed while the experiment ran"):
        FILES.require_unchanged(tmp_path, planned)
