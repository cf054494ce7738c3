"""A table larger than memory: what is on disk is what memory would hold, in random order, whole or not there."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import eber
from eber.tables.files import open_table
from eber.tables.prepared import gathering, looking, preparing, scattering
from eber.tables.prepared.folder import PreparedTable
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table
from eber.workflow import fitting_prepared
from tests.command_line import eber as command

COLUMNS: dict[str, Any] = {"label": "y", "environment": "site"}


def frame(n: int = 900) -> pd.DataFrame:
    """Sorted by environment, as such tables come, with every kind of column and with missing values."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n).round(3),
            "lactate": rng.lognormal(0, 1, n).astype(np.float32),
            "ward": rng.choice(["ICU", "ER", "general"], n, p=[0.2, 0.3, 0.5]),
            "smoker": rng.choice(["yes", "no"], n),
            "pain": rng.choice(["none", "mild", "severe"], n),
            "site": rng.choice(["A", "B", "C"], n),
        }
    )
    rows["y"] = np.where(rows["age"] + rng.normal(0, 10, n) > 60, "case", "control")
    for name, share in (("lactate", 0.2), ("ward", 0.05), ("smoker", 0.1), ("pain", 0.1), ("y", 0.02), ("site", 0.01)):
        rows.loc[rng.random(n) < share, name] = None
    return rows.sort_values("site", kind="stable")


@pytest.fixture(params=["table.parquet", "table.csv", "folder"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    if path.suffix == ".csv":
        frame().to_csv(path, index=False)
    elif path.suffix:
        frame().to_parquet(path, index=False, row_group_size=100)
    else:
        path.mkdir()
        for number in range(3):
            part = frame().iloc[300 * number : 300 * (number + 1)]
            part.to_parquet(path / f"{number}.parquet", index=False)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples, sections, blocks and buckets of few rows, so that there are several of each."""
    monkeypatch.setattr(looking, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(preparing, "SECTION_ROWS", 150)
    monkeypatch.setattr(scattering, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(preparing, "BUCKET_BYTES", 9_000)


def in_memory(table: Path) -> tuple[Preprocessing, np.ndarray]:
    """What a fit in memory sees: rows of features, class and environment, sorted."""
    data = read_training_table(table, **COLUMNS)
    preprocessing = Preprocessing.fit(data.columns, data.schema)
    X = preprocessing.transform(data.columns).astype(np.float32)
    indices = [np.unique(values, return_inverse=True)[1] for values in (data.y, data.environments)]
    return preprocessing, sorted_rows(X, *indices)


def sorted_rows(X: np.ndarray, y: np.ndarray, e: np.ndarray) -> np.ndarray:
    rows = np.column_stack([X, y, e])
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("name", ["sample.parquet", "features.float32", ".making/notes.txt", "notes.txt"])
def test_a_table_is_not_prepared_over_files_of_others(name: str, tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "table.parquet", index=False)
    place = tmp_path / "prepared" / name
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    with pytest.raises(ValueError, match="holds other files"):
        eber.prepare_table(tmp_path / "table.parquet", tmp_path / "prepared", **COLUMNS)
    assert place.read_text() == "mine"


def test_a_table_is_not_prepared_through_a_link(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "table.parquet", index=False)
    for name in ("elsewhere", "prepared"):
        (tmp_path / name).mkdir()
    (tmp_path / "elsewhere" / "plan.json").write_text("mine")
    (tmp_path / "prepared" / ".making").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="holds other files"):
        eber.prepare_table(tmp_path / "table.parquet", tmp_path / "prepared", **COLUMNS)
    assert (tmp_path / "elsewhere" / "plan.json").read_text() == "mine"


@pytest.mark.parametrize("name", ["features.float32", "labels.uint8", "environments.int32", "sample.parquet"])
def test_rows_that_change_during_a_fit_are_not_fitted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they are put back: what the fit saw meanwhile, nobody knows."""
    frame().to_parquet(tmp_path / "table.parquet", index=False)
    prepared = eber.prepare_table(tmp_path / "table.parquet", tmp_path / "prepared", **COLUMNS)
    path, fit_stored = prepared.folder / name, fitting_prepared.fit_stored
    good = path.read_bytes()

    def tampered(*arguments: Any) -> None:
        path.write_bytes(good[4:] + good[:4])
        fit_stored(*arguments)
        path.write_bytes(good)

    how: dict[str, Any] = {"quick": True, "epochs": 1, "scores": False, "method": "ERM"}
    with monkeypatch.context() as patch:
        patch.setattr(fitting_prepared, "fit_stored", tampered)
        with pytest.raises(ValueError, match="was changed while it was fitted from"):
            eber.fit_table(prepared.folder, **how, out=tmp_path / "model")
    assert not (tmp_path / "model").exists()
    eber.fit_table(prepared.folder, **how)


@pytest.mark.usefixtures("small")
def test_what_is_no_step_of_a_column_that_was_taken_for_steps_is_named(tmp_path: Path) -> None:
    """The rows by which columns are judged need not have it; seen to be missing values in silence."""
    table, rows = tmp_path / "table.parquet", frame().reset_index(drop=True)
    rows.to_parquet(table, index=False, row_group_size=100)
    judged = pq.read_table(eber.prepare_table(table, tmp_path / "plain", **COLUMNS).checked_sample())["age"].to_pylist()
    others = rows.index[~rows["age"].isin(judged) & rows[["y", "site", "pain"]].notna().all(axis=1)]
    rows.loc[others[[5, 400]], "pain"] = "Unbearable"
    rows.to_parquet(table, index=False, row_group_size=100)
    for number, jobs in enumerate((1, 2)):
        prepared = eber.prepare_table(table, tmp_path / f"prepared{number}", **COLUMNS, jobs=jobs)
        (said,) = (note for note in prepared.notes if "none of its steps" in note)
        assert said.startswith("Column 'pain': 2 rows have a value that is none of its steps, such as 'unbearable'")
        known = rows.dropna(subset=["y", "site"])
        assert prepared.preprocessing.encodings[4].missing == known["pain"].isna().sum() + 2


def test_rows_on_disk_are_those_of_memory_in_another_order(table: Path, tmp_path: Path) -> None:
    prepared = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS)
    preprocessing, expected = in_memory(table)
    stored = prepared.rows()
    assert prepared.preprocessing == preprocessing
    np.testing.assert_array_equal(sorted_rows(stored.X, stored.y, stored.e), expected)
    assert np.abs(np.diff(stored.e.astype(int))).mean() > 0.5  # sorted, nearly all of these were zero


@pytest.mark.usefixtures("small")
def test_statistics_of_a_table_larger_than_the_sample_are_those_of_all_rows(table: Path, tmp_path: Path) -> None:
    prepared = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS)
    preprocessing, expected = in_memory(table)
    for own, other in zip(prepared.preprocessing.encodings, preprocessing.encodings, strict=True):
        kept = ("name", "kind", "levels", "n_levels", "indicator", "constant", "rows", "missing", "low", "high")
        assert [getattr(own, key) for key in kept] == [getattr(other, key) for key in kept]
        assert (own.mean, own.scale) == pytest.approx((other.mean, other.scale), rel=2e-3)
    lactate = frame()["lactate"].dropna()
    fill = next(own.fill for own in prepared.preprocessing.encodings if own.name == "lactate")
    assert abs((lactate < fill).mean() - 0.5) < 0.02
    assert len(prepared.ends) > 3
    stored = prepared.rows()
    found = sorted_rows(stored.X, stored.y, stored.e)
    pairs = [np.unique(rows[:, -2:], axis=0, return_counts=True) for rows in (found, expected)]
    np.testing.assert_array_equal(pairs[0][0], pairs[1][0])  # class and environment belong to the same rows
    np.testing.assert_array_equal(pairs[0][1], pairs[1][1])
    age = prepared.preprocessing.names_out.index("age")
    for column in (age, -2, -1):
        order = np.argsort(found[:, age], kind="stable"), np.argsort(expected[:, age], kind="stable")
        np.testing.assert_allclose(found[order[0], column], expected[order[1], column], atol=1e-5)


class Stopped(BaseException):
    """As by a signal."""


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("table", ["table.parquet"], indirect=True)
@pytest.mark.parametrize(("kind", "method"), [(scattering.Scattering, "scatter"), (gathering.Gathering, "gather")])
def test_stopped_anywhere_it_goes_on_to_the_same_rows(
    kind: type, method: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = eber.prepare_table(table, tmp_path / "whole", **COLUMNS)
    original: Callable[..., Any] = getattr(kind, method)
    done: list[int] = []

    def stopping(self: Any, number: int) -> Any:
        if number == 2 and done.count(1) == 1:
            raise Stopped
        done.append(number)
        return original(self, number)

    out = tmp_path / "prepared"
    with monkeypatch.context() as patch:
        patch.setattr(kind, method, stopping)
        with pytest.raises(Stopped):
            eber.prepare_table(table, out, **COLUMNS)
    assert not (out / "table.json").exists()
    with monkeypatch.context() as patch:  # what is done is neither planned nor scattered again
        patch.setattr(preparing, "plan", None)
        patch.setattr(scattering.Scattering, "_blocks", _but_not_the_first(scattering.Scattering._blocks))
        again = eber.prepare_table(table, out, **COLUMNS)
    assert again.digests == whole.digests
    assert not (out / ".making").exists()
    for name in ("features.float32", "labels.uint8", "environments.int32"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    (out / ".making").mkdir()  # as where it was stopped at the very end
    (out / ".making" / "section-000000-000000.rows").touch()
    assert eber.prepare_table(table, out, **COLUMNS).digests == whole.digests
    assert not (out / ".making").exists()


def _but_not_the_first(blocks: Callable[..., Any]) -> Callable[..., Any]:
    def checked(self: scattering.Scattering, section: Any) -> Any:
        assert section is not self.sections[0]
        return blocks(self, section)

    return checked


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("table", ["folder"], indirect=True)
def test_processes_side_by_side_give_the_same_bytes(table: Path, tmp_path: Path) -> None:
    one = eber.prepare_table(table, tmp_path / "one", **COLUMNS)
    assert eber.prepare_table(table, tmp_path / "two", **COLUMNS, jobs=2).digests == one.digests


@pytest.mark.usefixtures("small")
def test_every_pass_is_made_of_tasks_that_may_be_done_anywhere_in_any_order(table: Path, tmp_path: Path) -> None:
    """As another process would do them, the last one first; what a pass has seen is added up in the sections' order."""
    done: list[str] = []

    def elsewhere(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        done.append(function.__name__)
        for task in reversed(tasks):
            yield task, pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(function))(task)))

    here = preparing.prepare(open_table(table), tmp_path / "here", **COLUMNS)
    preparing.prepare(open_table(table), tmp_path / "there", **COLUMNS, each=elsewhere)
    assert done == ["look", "learn", "scatter", "gather"]
    files = sorted(path.name for path in (tmp_path / "here").iterdir() if path.name != ".lock")
    assert len(files) == 5
    assert len(pq.read_table(tmp_path / "here" / "sample.parquet")) == 300 < len(here)
    for name in files:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("table", ["table.csv", "folder"], indirect=True)
def test_a_section_that_cannot_be_read_ends_the_first_pass_with_its_error(table: Path, tmp_path: Path) -> None:
    def failing(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        for task in tasks:
            yield task, RuntimeError(f"ValueError: part {task} is damaged.")

    with pytest.raises(ValueError, match="part 0 is damaged"):
        preparing.prepare(open_table(table), tmp_path / "prepared", **COLUMNS, each=failing)
    assert not (tmp_path / "prepared" / "table.json").exists()


@pytest.mark.parametrize("table", ["table.csv"], indirect=True)
def test_what_cannot_be_prepared_is_refused_in_a_sentence(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "prepared"
    prepared = eber.prepare_table(table, out, **COLUMNS)
    assert eber.prepare_table(table, out, **COLUMNS).digests == prepared.digests  # and nothing is done
    with pytest.raises(ValueError, match="the same table, prepared in another way"):
        eber.prepare_table(table, out, **COLUMNS, drop="age")
    with table.open("a") as file:
        file.write("61.0,1.0,ER,yes,mild,A,case\n")
    with pytest.raises(ValueError, match="holds another table"):
        eber.prepare_table(table, out, **COLUMNS)
    with pytest.raises(ValueError, match="has no column 'outcome'"):
        eber.prepare_table(table, tmp_path / "other", label="outcome", environment="site")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other files"):
        eber.prepare_table(table, tmp_path / "full", **COLUMNS)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1))
        with pytest.raises(OSError, match="make room"):
            eber.prepare_table(table, tmp_path / "no-room", **COLUMNS)
    with pytest.raises(ValueError, match="Logistic regression needs all rows in memory"):
        eber.fit_table(out, method="Logistic regression")
    with pytest.raises(ValueError, match="was prepared with the label 'y', not 'age'"):
        eber.fit_table(out, label="age")
    with pytest.raises(ValueError, match="drop was decided when"):
        eber.fit_table(out, drop="age")
    assert command(monkeypatch, "fit", table, "--out", tmp_path / "model") == 2
    assert "Name the column to be predicted, --label" in capsys.readouterr().err


@pytest.mark.parametrize("table", ["table.parquet"], indirect=True)
def test_rows_that_were_changed_are_not_fitted(table: Path, tmp_path: Path) -> None:
    prepared = eber.prepare_table(table, tmp_path / "prepared", **COLUMNS)
    path = prepared.folder / "features.float32"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="were changed since they were written"):
        eber.fit_table(prepared.folder)
    path.write_bytes(content[:-4])
    with pytest.raises(ValueError, match="has not the"):
        PreparedTable.read(prepared.folder).rows()


@pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")
@pytest.mark.parametrize("table", ["folder"], indirect=True)
def test_prepare_fit_and_predict_as_commands(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared, model, names = tmp_path / "prepared", tmp_path / "model", ["--label", "y", "--environment", "site"]
    assert command(monkeypatch, "prepare", table, *names, "--out", prepared) == 0
    said = capsys.readouterr()
    assert "as much again until it is done" in said.err
    assert f"eber fit {prepared} --out MODEL" in said.out
    assert command(monkeypatch, "fit", prepared, "--epochs", 2, "--out", model) == 0
    assert "EBER fitted on" in capsys.readouterr().out
    assert command(monkeypatch, "predict", model, table, "--out", tmp_path / "p.csv") == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 900
