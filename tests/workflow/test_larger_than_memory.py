"""What memory does not hold: prepared on the way to a model, compared on a sample that is named as one."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eber
from eber.runs.progress import Progress
from eber.tables import files
from eber.tables.prepared import looking
from eber.tables.prepared.folder import PreparedTable
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table
from eber.workflow import fitting, room
from tests.command_line import eber as command
from tests.tables.test_prepared import COLUMNS, frame

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """900 rows, of which 300 are a sample."""
    monkeypatch.setattr(looking, "SAMPLE_ROWS", 300)
    path = tmp_path / "table.parquet"
    frame().to_parquet(path, index=False, row_group_size=100)
    return path


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for the sample, and not for the table."""
    monkeypatch.setattr(files, "memory_limit", lambda: 30_000)


class Listener(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def note(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_a_table_that_does_not_fit_is_prepared_on_the_way_to_the_model(name: str, table: Path, tmp_path: Path) -> None:
    if name.endswith(".csv"):
        table = tmp_path / name
        frame().to_csv(table, index=False)
    listener = Listener()
    how: dict[str, Any] = {"quick": True, "epochs": 2, "scores": False}
    model = eber.fit_table(table, **COLUMNS, **how, out=tmp_path / "model", progress=listener)
    said = "\n".join(listener.said)
    assert "does not fit into memory" in said
    assert "as much again until it is done" in said
    prepared = PreparedTable.read(tmp_path / "model.prepared")
    assert model.card["data"]["rows"] == len(prepared) > 860
    again = eber.fit_table(tmp_path / "model.prepared", **how)
    assert again.fingerprint == model.fingerprint
    unsaved = eber.fit_table(table, **COLUMNS, **how)  # prepared in a temporary folder
    assert unsaved.fingerprint == model.fingerprint


def test_what_was_said_to_be_missing_is_so_on_the_way_through_the_disk(
    table: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A feature's value, an environment and a class: seen to be values of their own."""
    rows = frame().fillna({"ward": "unknown", "site": "unknown", "y": "unknown"})
    rows.to_parquet(table, index=False, row_group_size=100)
    how: dict[str, Any] = {"quick": True, "epochs": 2, "scores": False, "missing": "unknown"}
    in_memory = eber.fit_table(table, **COLUMNS, **how)
    request.getfixturevalue("little_memory")
    model = eber.fit_table(table, **COLUMNS, **how, out=tmp_path / "model")
    assert (tmp_path / "model.prepared").is_dir()
    ward, same = (found.preprocessing.encodings[2] for found in (model, in_memory))
    assert ward.name == "ward"
    assert (ward.levels, ward.missing) == (same.levels, same.missing)
    assert model.card["data"]["environments"] == in_memory.card["data"]["environments"]
    assert list(model.classifier.classes_) == list(in_memory.classifier.classes_) == ["case", "control"]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("more", [{"method": "Logistic regression"}, {"weight": "age"}])
def test_what_needs_all_rows_in_memory_is_refused(more: dict[str, Any], table: Path) -> None:
    with pytest.raises(ValueError, match="Give it to eber prepare"):
        eber.fit_table(table, **COLUMNS, **more)


def test_settings_and_scores_are_of_the_sample_and_the_model_is_of_all_rows(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS)
    seen: list[int] = []
    fit_method: Any = fitting.fit_method

    def looked_at(method: str, X: Any, *others: Any) -> Any:
        seen.append(len(X))
        fitted = yield from fit_method("IRM", X, *others)
        return dataclasses.replace(fitted, settings=[{"learning_rate": 0.02}, {"learning_rate": 0.04}])

    monkeypatch.setattr(fitting, "fit_method", looked_at)
    listener = Listener()
    model = eber.fit_table(prepared.folder, epochs=1, progress=listener)
    assert seen == [300]
    assert model.classifier.learning_rate == 0.02
    assert model.card["data"]["rows"] == len(prepared)
    assert [entry["held_out"] for entry in model.card["held_out_scores"]] == ["A", "B", "C"]
    assert sum(entry["rows"] for entry in model.card["held_out_scores"]) == 300
    assert any("random sample of 300 of its" in sentence for sentence in listener.said)


@pytest.mark.parametrize("source", ["prepared", "too large"])
def test_a_comparison_of_a_sample_says_so_on_top_and_advises_a_fit_of_the_table(
    source: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    given = table
    if source == "prepared":
        given = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS, drop="pain").folder
    else:
        request.getfixturevalue("little_memory")
    how: dict[str, Any] = {"methods": ["ERM", "No model"], "quick": True, "epochs": 1, "jobs": 1}
    how |= {"drop": "pain"} if source == "too large" else {}
    found = eber.compare_table(given, **COLUMNS, out=tmp_path / "out", **how)
    assert "random sample of 300 of its 8" in found.record.caution
    assert found.record.caution.split(".")[0] in found.page.read_text()
    assert found.record.caution.split(".")[0] in repr(found)
    assert found.record.n_rows == 300
    assert "pain" not in found.record.kinds
    words = shlex.split(found.fit_command)
    assert words[:3] == ["eber", "fit", str(given)]
    assert ("--drop" in words) == (source == "too large")
    before = [path.stat().st_mtime_ns for path in sorted((tmp_path / "out" / "cells").rglob("*.json"))]
    again = eber.compare_table(given, **COLUMNS, out=tmp_path / "out", **how)  # and nothing is fitted again
    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "out" / "cells").rglob("*.json"))] == before
    assert again.scores.equals(found.scores)
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        fitted = [word for word in words[1:] if word != "No model"]
        if "ERM" in words:
            assert command(patch, *fitted, "--no-scores") == 0


def memory_for(processes: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """So much that fits to the table have room in so many processes."""
    data = read_training_table(frame(), **COLUMNS)
    n_columns = len(Preprocessing.fit(data.columns, data.schema).names_out)
    monkeypatch.setattr(room, "LIBRARIES", 0)
    monkeypatch.setattr(room, "memory_bytes", lambda: int(processes * room.COPIES * 8 * len(data) * n_columns))


def test_a_table_that_memory_holds_but_not_with_its_fits_is_compared_on_a_sample_and_fitted_from_disk(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that the system kills for their memory would fail every method."""
    memory_for(0.9, monkeypatch)
    how: dict[str, Any] = {"quick": True, "epochs": 1}
    found = eber.compare_table(table, **COLUMNS, out=tmp_path / "out", methods="No model", **how)
    assert found.record.n_rows == 300
    assert "random sample of 300" in found.record.caution
    model = eber.fit_table(table, **COLUMNS, out=tmp_path / "model", scores=False, **how)
    assert (tmp_path / "model.prepared").is_dir()
    assert model.card["data"]["rows"] > 860


@pytest.mark.parametrize(
    ("processes", "said"), [(3.1, ""), (2.1, "fits of 1 of 2 jobs"), (1.1, "Even one may take more")]
)
def test_no_more_jobs_are_run_than_memory_holds(processes: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_for(processes, monkeypatch)
    data, listener = read_training_table(frame(), **COLUMNS), Listener()
    assert room.jobs_with_room(data, 2, listener, can_be_sampled=False) == (2 if processes > 3 else 1)
    assert said in " ".join(listener.said)
    assert bool(said) == bool(listener.said)


def test_a_sample_that_was_changed_is_not_compared(table: Path, tmp_path: Path) -> None:
    prepared = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS)
    frame(300).to_parquet(prepared.folder / "sample.parquet")
    with pytest.raises(ValueError, match="was changed since it was written"):
        eber.compare_table(prepared.folder, **COLUMNS, out=tmp_path / "out", quick=True)


def test_the_sample_is_of_the_rows_as_they_were_read(table: Path, tmp_path: Path) -> None:
    prepared = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS)
    rows = files.open_table(prepared.checked_sample()).read().to_pandas()
    known = frame().dropna(subset=["y", "site"])
    merged = rows.merge(known.assign(there=1), how="left", on=["age", "site", "y", "ward", "smoker", "pain"])
    assert len(rows) == 300
    assert merged["there"].notna().mean() > 0.9  # those with missing values are not told apart
    assert np.all(rows["site"].value_counts() > 60)
