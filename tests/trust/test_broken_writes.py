"""Killed, or out of space, at every single step of writing: what was there stays, what is new is whole, or is not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eber.compare.record import ComparisonRecord
from eber.exceptions import ModelFileError
from eber.io.files import write_atomically
from eber.runs.ledger import Ledger
from tests.toy_experiment import TOY, run_cell
from tests.trust.models import fitted_model, new_patients, predictions
from tests.trust.processes import every_step
from tests.trust.steps import keep_cell, predict, record, save_copy

Tally = Callable[[str, int], None]
FAULTS = pytest.mark.parametrize("fault", ["kill", "kill amid a write", "no space", "no permission"])

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two models of the same table."""
    folder = tmp_path_factory.mktemp("two")
    for seed in (0, 1):
        fitted_model(folder, seed=seed).save(folder / str(seed))
    return folder / "0", folder / "1"


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@FAULTS
def test_a_save_over_a_model_leaves_the_old_or_the_new(
    fault: str, two: tuple[Path, Path], tmp_path: Path, tally: Tally
) -> None:
    """Seen to fail when the classifier is written over the old one, and when files are written in place."""
    old, new = (predictions(path, tmp_path) for path in two)
    target = shutil.copytree(two[0], tmp_path / "model")

    def after(done: bool) -> None:
        found = predictions(target, tmp_path)
        assert np.array_equal(found, old) or np.array_equal(found, new)
        if done:
            assert np.array_equal(found, new)
        save_copy(two[0], target)  # the next run goes on
        assert names(target) == names(two[0])

    tally("faults injected", every_step(fault, save_copy, two[1], target, after=after))


@FAULTS
def test_a_first_save_leaves_no_model_or_a_whole_one(
    fault: str, two: tuple[Path, Path], tmp_path: Path, tally: Tally
) -> None:
    new = predictions(two[1], tmp_path)
    target = tmp_path / "model"

    def after(done: bool) -> None:
        try:
            assert np.array_equal(predictions(target, tmp_path), new)
        except ModelFileError as refused:
            assert not done
            assert "holds no model" in str(refused)  # noqa: PT017 (both ways are right)
        save_copy(two[1], target)  # the next run goes on
        assert names(target) == names(two[1])
        shutil.rmtree(target)

    tally("faults injected", every_step(fault, save_copy, two[1], target, after=after))


@FAULTS
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predictions_are_whole_or_not_there(
    fault: str, suffix: str, two: tuple[Path, Path], tmp_path: Path, tally: Tally
) -> None:
    """Seen to fail with a writer that writes in place, and when temporary files are not swept."""
    new, out = new_patients(tmp_path), tmp_path / "out" / f"p{suffix}"
    predict(two[0], new, out)
    whole = out.read_bytes()
    for before in (None, b"other predictions"):

        def after(done: bool, before: bytes | None = before) -> None:
            found = out.read_bytes() if out.exists() else None
            assert found in (before, whole)
            if done:
                assert found == whole
            predict(two[0], new, out)  # the next run goes on
            assert names(out.parent) == [out.name]
            reset(before)

        def reset(before: bytes | None) -> None:
            out.unlink(missing_ok=True)
            if before is not None:
                out.write_bytes(before)

        reset(before)
        tally("faults injected", every_step(fault, predict, two[0], new, out, after=after))


@FAULTS
def test_a_cell_is_finished_or_not(fault: str, tmp_path: Path, tally: Tally) -> None:
    cell = TOY.plan(seeds=1, methods=["EBER"])[0]
    folder = tmp_path / "run"

    def after(done: bool) -> None:
        record = Ledger(folder).read(cell)
        assert record is None or record.scores == run_cell(cell).scores
        assert record is not None or not done
        keep_cell(folder)
        assert len(names(folder)) == 3  # the folder of cells, a JSON file, its arrays
        shutil.rmtree(folder)

    tally("faults injected", every_step(fault, keep_cell, folder, after=after))


@FAULTS
def test_what_a_comparison_is_about_is_the_old_or_the_new(fault: str, tmp_path: Path, tally: Tally) -> None:
    record(tmp_path, "old")

    def after(done: bool) -> None:
        assert ComparisonRecord.load(tmp_path).table in (("new",) if done else ("old", "new"))
        record(tmp_path, "old")

    tally("faults injected", every_step(fault, record, tmp_path, "new", after=after))


def test_content_is_on_the_disk_before_it_takes_its_name_and_then_the_name_is(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a loss of power leaves cannot be tried here; that nothing is renamed before it was synchronised can."""
    happened: list[tuple[str, Path]] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        fsync(descriptor)
        happened.append(("on disk", Path(os.readlink(f"/proc/self/fd/{descriptor}"))))

    def watched_replace(source: Path, target: Path) -> None:
        replace(source, target)
        happened.extend([("renamed", Path(source)), ("named", Path(target))])

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    save_copy(two[0], tmp_path / "model")
    predict(two[0], new_patients(tmp_path), tmp_path / "p.csv")
    keep_cell(tmp_path / "run")
    renamed = [k for k, (what, _) in enumerate(happened) if what == "renamed"]
    # weights, manifest, table, card, and the journals of both folders; predictions; a cell and its arrays
    assert len(renamed) == 9
    for k in renamed:
        assert happened[k - 1] == ("on disk", happened[k][1])
        assert happened[k + 2] == ("on disk", happened[k + 1][1].parent)


def test_an_error_of_the_system_names_the_file_and_not_its_temporary_name(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"folder'$"):
        write_atomically(tmp_path / "folder", "text")
