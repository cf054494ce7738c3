"""A disk without space, or a folder that may not be written to: one sentence, nothing half-done, and on from there.

A small tmpfs is mounted where that is allowed (as root); elsewhere a limit on the size of files stands in for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eber.tables.model_folder import TableModel
from tests.trust.effort import times
from tests.trust.models import NAMES, fitted_model, hospitals, new_patients
from tests.trust.processes import eber_command

Tally = Callable[[str, int], None]

pytestmark = pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning")


class SmallDisk:
    """A folder whose space can be set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.limit: int | None = None
        mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
        self.mounted = os.name == "posix" and subprocess.run(mount, capture_output=True).returncode == 0

    def resize(self, kilobytes: int) -> None:
        if self.mounted:
            subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(self.folder)], check=True)
        else:
            self.limit = kilobytes * 1024

    def empty(self) -> None:
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Empty, with room for nothing."""
    disk = SmallDisk(tmp_path / "disk")
    yield disk
    disk.close()


def assert_one_sentence(said: str, about: str) -> None:
    last = said.strip().splitlines()[-1]
    assert last.startswith("eber: "), said
    assert about in last
    assert "Traceback" not in said


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_full_disk_is_said_and_leaves_nothing_half_done(
    command: str, disk: SmallDisk, tmp_path: Path, tally: Tally
) -> None:
    """Seen to fail: predict left its temporary file when the last bytes did not fit."""
    fitted_model(tmp_path).save(tmp_path / "model")
    table, new = hospitals(tmp_path), new_patients(tmp_path)
    out = disk.folder / ("model" if command == "fit" else "p.csv")
    arguments = {
        "fit": ["fit", table, *NAMES, "--quick", "--no-scores", "--out", out],
        "predict": ["predict", tmp_path / "model", new, "--out", out],
    }[command]
    faults = 0
    for kilobytes in range(4, 200, times(28, 4)):
        disk.resize(kilobytes)
        status, said = eber_command(arguments, tmp_path / "log", file_bytes=disk.limit)
        if status == 0:
            break
        faults += 1
        assert status == 2, said
        assert_one_sentence(said, str(disk.folder))
        assert not out.is_file()
        assert not (out / "table.json").exists()
        assert not [path for path in disk.folder.rglob("*") if path.name.endswith((".tmp", ".lock"))]
    assert 0 < faults < 48
    if command == "fit":
        TableModel.load(out)  # what finally fitted is whole
    tally("faults injected", faults)


def test_a_full_disk_loses_no_finished_cell(disk: SmallDisk, tmp_path: Path, tally: Tally) -> None:
    """First there is no room for all of twelve cells, then none for their tables."""
    small = ["--set", "repetitions=20", "--set", "draws=20000"]
    arguments = ["reproduce", "motivating", "--seeds", 4, *small, "--jobs", 1, "--out", disk.folder / "out"]

    def cells() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (disk.folder / "out" / "cells").glob("*.json")}

    finished = dict[Path, int]()
    for kilobytes, n_cells in ((28, 7), (60, 12)):  # a cell takes a block of four
        disk.resize(kilobytes)
        status, said = eber_command(arguments, tmp_path / "log", file_bytes=disk.limit and 2000)
        assert status in (1, 2), said
        assert "Traceback (most" not in said
        assert "No space left" in said or "File too large" in said
        assert finished.items() <= cells().items()
        finished = cells()
        assert len(finished) == (n_cells if disk.mounted else 12)  # no file of a cell is too large by itself
    disk.resize(4000)
    status, said = eber_command(arguments, tmp_path / "log")
    assert status == 0, said
    assert finished.items() <= cells().items()
    assert not [path for path in disk.folder.rglob("*") if path.name.endswith((".tmp", ".lock"))]
    tally("faults injected", 2)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder that may be read and not written to."""
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize("command", ["fit", "predict", "compare", "reproduce", "example"])
def test_a_folder_that_may_not_be_written_to_is_said_at_once(
    command: str, closed: Path, tmp_path: Path, tally: Tally
) -> None:
    """Before anything is fitted: seen to fail when `fit` looked at its folder only after the fit."""
    fitted_model(tmp_path).save(tmp_path / "model")
    table, new = hospitals(tmp_path), new_patients(tmp_path)
    arguments = {
        "fit": ["fit", table, *NAMES, "--quick", "--out", closed],
        "predict": ["predict", tmp_path / "model", new, "--out", closed / "p.csv"],
        "compare": ["compare", table, *NAMES, "--quick", "--out", closed],
        "reproduce": ["reproduce", "motivating", "--seeds", 1, "--out", closed],
        "example": ["example", closed / "hospitals.csv"],
    }[command]
    status, said = eber_command(arguments, tmp_path / "log", bound=True)
    assert status == 2, said
    assert_one_sentence(said, str(closed))
    assert "Permission denied" in said
    assert "without" not in said, "nothing was fitted first"
    assert list(closed.iterdir()) == []
    tally("faults injected", 1)
