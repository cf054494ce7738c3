"""A finished cell is whole or recognised as damaged, and a claim is exclusive and dies with its process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eber.io.files import lock, write_atomically
from eber.leaks.findings import LeakFinding
from eber.runs import CellResult
from eber.runs.collect import write_tables
from eber.runs.ledger import DamagedCellError, Ledger
from tests.toy_experiment import TOY, run_cell

CELL = TOY.plan(seeds=1, methods=["EBER"])[0]

HOLD_A_LOCK = """
import sys, time
from pathlib import Path
from eber.io.files import lock
with lock(Path(sys.argv[1]), wait=True) as held:
    print(held, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with one finished cell."""
    ledger = Ledger(tmp_path)
    ledger.write(CELL, run_cell(CELL), cell_seconds=0.5)
    return ledger


def test_a_cell_is_read_back_exactly(ledger: Ledger) -> None:
    record = ledger.read(CELL)
    expected = run_cell(CELL)
    assert record is not None
    assert record.scores == expected.scores
    assert record.seconds == expected.seconds
    assert record.cell_seconds == 0.5
    np.testing.assert_array_equal(ledger.read_arrays(CELL)["draws"], expected.arrays["draws"])
    assert ledger.records() == [record]


def test_a_cell_that_is_not_there_is_none(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.read(CELL) is None
    assert ledger.read_arrays(CELL) == {}


def test_scores_that_are_not_finite_are_kept(ledger: Ledger) -> None:
    ledger.write(CELL, CellResult({"main": {"nll": float("nan"), "accuracy": float("inf")}}), 0.0)
    record = ledger.read(CELL)
    assert record is not None
    assert np.isnan(record.scores["main"]["nll"])
    assert ledger.read_arrays(CELL) == {}, "arrays of the earlier write are gone"


def test_a_file_cut_off_anywhere_is_recognised(ledger: Ledger) -> None:
    path = ledger.path(CELL)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedCellError):
            ledger.read(CELL)
    assert ledger.records() == []


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_is_recognised(ledger: Ledger, data: st.DataObject) -> None:
    path = ledger.path(CELL)
    intact = path.read_bytes()
    position = data.draw(st.integers(0, len(intact) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != intact[position]))
    path.write_bytes(intact[:position] + bytes([byte]) + intact[position + 1 :])
    with pytest.raises(DamagedCellError):
        ledger.read(CELL)
    path.write_bytes(intact)


@given(garbage=st.one_of(st.binary(max_size=200), st.just(b"[" * 100_000), st.just(b'{"content": 1}')))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_recognised(ledger: Ledger, garbage: bytes) -> None:
    ledger.path(CELL).write_bytes(garbage)
    with pytest.raises(DamagedCellError):
        ledger.read(CELL)


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_damaged_arrays_damage_the_cell(ledger: Ledger, damage: str) -> None:
    arrays = ledger.path(CELL).with_suffix(".npz")
    if damage == "missing":
        arrays.unlink()
    else:
        arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(DamagedCellError, match=r"npz is missing, truncated or altered"):
        ledger.read(CELL)


def test_a_cell_under_another_cells_name_is_not_trusted(ledger: Ledger) -> None:
    other = TOY.plan(seeds=[1], methods=["EBER"])[0]
    ledger.path(CELL).rename(ledger.path(other))
    ledger.path(CELL).with_suffix(".npz").rename(ledger.path(other).with_suffix(".npz"))
    with pytest.raises(DamagedCellError, match="another cell"):
        ledger.read(other)


def test_an_altered_score_with_valid_json_is_recognised(ledger: Ledger) -> None:
    path = ledger.path(CELL)
    document = json.loads(path.read_text())
    document["content"]["scores"]["main"]["nll"] = 0.0
    path.write_text(json.dumps(document, indent=1))
    with pytest.raises(DamagedCellError, match="altered"):
        ledger.read(CELL)


def test_a_cell_in_the_layout_of_earlier_versions_is_computed_again(ledger: Ledger) -> None:
    path = ledger.path(CELL)
    content = json.loads(path.read_text())["content"]
    path.write_text(json.dumps({"checksum": hashlib.sha256(b"").hexdigest(), "payload": content}))
    with pytest.raises(DamagedCellError, match=r"not a file of the format 'eber-cell'. It is computed again."):
        ledger.read(CELL)
    assert ledger.records() == []


def test_what_the_leak_audit_found_is_kept_as_it_was(ledger: Ledger) -> None:
    found = (LeakFinding("near_rows", 3, 40, "Three of them."), LeakFinding("usual_copies", 1, 40, "=One of them."))
    ledger.write(CELL, replace(run_cell(CELL), findings=found), cell_seconds=0.5)
    record = ledger.read(CELL)
    assert record is not None
    assert record.findings == found
    write_tables(TOY, ledger, {}, "")
    table = (ledger.folder / "findings.csv").read_text().splitlines()
    assert table[1] == "toy,baseline,EBER,0,near_rows,3,40,Three of them."
    assert table[2].endswith("usual_copies,1,40,'=One of them.")


def test_python_objects_are_refused(tmp_path: Path) -> None:
    result = CellResult({"main": {"nll": 0.0}}, arrays={"things": np.array([object()])})
    with pytest.raises(ValueError, match="'things' holds Python objects"):
        Ledger(tmp_path).write(CELL, result, 0.0)
    assert Ledger(tmp_path).read(CELL) is None


def test_a_claim_is_exclusive_and_leaves_no_file(ledger: Ledger) -> None:
    before = sorted(ledger.folder.rglob("*"))
    with ledger.claim(CELL) as first:
        with ledger.claim(CELL) as second:
            assert (first, second) == (True, False)
        with ledger.claim(CELL) as third:
            assert not third, "a refused claim does not free the cell"
    assert sorted(ledger.folder.rglob("*")) == before


def test_a_claim_sweeps_what_a_killed_writer_left(ledger: Ledger) -> None:
    path = ledger.path(CELL)
    leftovers = [path.with_name(f".{path.stem}{suffix}.123-0123abcd.tmp") for suffix in (".json", ".npz")]
    for leftover in leftovers:
        leftover.touch()
    with ledger.claim(CELL):
        assert not any(leftover.exists() for leftover in leftovers)


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD_A_LOCK, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder, holder.stdout:
        assert holder.stdout.readline() == "True\n"
        with lock(path, wait=False) as held:
            assert not held
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with lock(path, wait=False) as held:
            assert held


def test_a_contested_lock_excludes_although_its_file_is_removed_each_time(tmp_path: Path) -> None:
    inside = total = overlaps = 0

    def contend() -> None:
        nonlocal inside, total, overlaps
        for _ in range(50):
            with lock(tmp_path / "lock", wait=True):
                inside += 1
                overlaps += inside > 1
                time.sleep(0.0005)
                total += 1
                inside -= 1

    threads = [threading.Thread(target=contend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (total, overlaps) == (200, 0)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.md"
    write_atomically(path, "old")

    def no_space(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("table.md", "old")]
