"""Ctrl-C: what was kept is said, with how to go on; nothing empty or half-written is left; the status is a shell's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eber.datasets.hospitals import draw_hospitals
from eber.tables import folder_prediction
from tests.command_line import eber as command
from tests.trust.models import fitted_model

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
TOY = "tests.toy_experiment:TOY"


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def after(calls: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which Ctrl-C ends when it has been called so many times."""
    seen: list[None] = []

    def counted(*arguments: Any, **named: Any) -> Any:
        if len(seen) == calls:
            raise KeyboardInterrupt
        seen.append(None)
        return function(*arguments, **named)

    return counted


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and with a folder of tables."""
    place = tmp_path_factory.mktemp("folders")
    fitted_model(place).save(place / "model")
    (place / "new").mkdir()
    for seed in range(3):
        frame = draw_hospitals(40, random_state=seed).drop(columns=["sepsis", "hospital"])
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), place / "new" / f"{seed}.parquet")
    return place


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("moment", ["eber.runs.runner._Session._compute", "eber.runs.spec.Experiment.plan"])
def test_a_reproduction_that_ends_before_its_first_result_leaves_nothing(
    moment: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results" / "toy"
    if there:
        folder.mkdir(parents=True)
    monkeypatch.setattr(moment, stop)
    assert command(monkeypatch, "reproduce", TOY, "--out", folder) == 130
    assert list(tmp_path.rglob("*")) == ([folder.parent, folder] if there else [])
    said = f"Stopped. {folder} is as it was." if there else "Stopped. Nothing was written."
    assert capsys.readouterr().err.splitlines()[-1] == said


def test_a_reproduction_that_ends_while_it_is_written_up_keeps_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", TOY, "--seeds", 1, "--jobs", 1, "--methods", "ERM", "--out", tmp_path / "out"]
    with monkeypatch.context() as patch:
        patch.setattr("eber.workflow.reproducing.write_report", stop)
        assert command(patch, *arguments) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    finished = len(list((tmp_path / "out" / "cells").glob("*.json")))
    assert said == f"Stopped. {tmp_path / 'out'} keeps {finished} finished results: the same command goes on from here."
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list(tmp_path.rglob("*.lock"))
    monkeypatch.setattr("eber.runs.runner._Session._compute", stop)  # nothing is left to be computed
    assert command(monkeypatch, *arguments) == 0


@pytest.mark.parametrize("there", [False, True])
def test_predictions_of_a_file_are_whole_or_not_there(
    there: bool, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "below" / "p.csv"
    if there:
        out.parent.mkdir()
        out.write_text("earlier")
    monkeypatch.setattr("eber.tables.prediction._answers", stop)
    assert command(monkeypatch, "predict", place / "model", place / "new" / "0.parquet", "--out", out) == 130
    assert list(tmp_path.rglob("*")) == ([out.parent, out] if there else [])
    kept = f"{out} is as it was" if there else "Nothing was written"
    assert capsys.readouterr().err.splitlines()[-1] == f"Stopped. {kept}: the same command begins again."


@pytest.mark.parametrize("done", [0, 2])
def test_predictions_of_a_folder_keep_the_files_that_are_done(
    done: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["predict", place / "model", place / "new", "--out", out]
    with monkeypatch.context() as patch:
        patch.setattr(folder_prediction, "predict_file", after(done, folder_prediction.predict_file))
        assert command(patch, *arguments) == 130
    names = sorted(path.name for path in out.glob("*.parquet"))
    assert names == ["0.parquet", "1.parquet"][:done]
    assert out.exists() == bool(done)
    kept = f"{out} keeps 2 of 3 files: the same command does the others" if done else "Nothing was written: the same"
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"Stopped. {kept}")
    assert command(monkeypatch, *arguments) == 0
    assert len(list(out.glob("*.parquet"))) == 3


def test_what_processes_that_were_ended_had_begun_is_swept(place: Path, tmp_path: Path) -> None:
    """A process that is killed cannot remove its temporary file; the run does, unless somebody is at that file."""
    out = tmp_path / "out"
    (out / folder_prediction.DONE_FOLDER).mkdir(parents=True)
    begun = out / f".0.parquet.{os.getpid()}-0123abcd.tmp"
    note = out / folder_prediction.DONE_FOLDER / f".0.parquet.json.{os.getpid()}-0123abcd.tmp"
    another = out / ".notes.tmp"
    for path in (begun, note, another, out / ".0.parquet.lock"):
        path.write_text("")
    folder_prediction.sweep_unfinished(place / "new", out)
    assert [path for path in sorted(out.rglob("*")) if path.is_file()] == [another]
