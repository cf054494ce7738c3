"""Truncated or altered, every file of an output folder that is read back is noticed, and the next run puts it right."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eber.compare.record import RECORD_FILE, ComparisonRecord
from eber.runs.ledger import Ledger
from eber.runs.progress import Progress
from eber.runs.results import load_results
from eber.runs.runner import run
from tests.toy_experiment import TOY
from tests.trust.effort import times
from tests.trust.mutations import mutants
from tests.trust.steps import record

Tally = Callable[[str, int], None]


class Heard(Progress):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a run, never to be written to."""
    out = tmp_path_factory.mktemp("finished") / "out"
    run(TOY, out=out, seeds=3, progress=Progress())
    return out


@pytest.mark.parametrize("name", ["run.json", "cells.csv", "timings.csv", "warnings.csv", "findings.csv"])
def test_a_damaged_table_is_not_reported(name: str, finished: Path, tmp_path: Path, tally: Tally) -> None:
    """Seen to fail before the tables had checksums: a changed digit was a changed score."""
    out = shutil.copytree(finished, tmp_path / "out")
    good = (out / name).read_bytes()
    count = times(100, 5000)
    for content in mutants(good, count, np.random.default_rng(5)):
        (out / name).write_bytes(content)
        if content != good:
            with pytest.raises(ValueError, match=f"{name}.*(Give the command that wrote the folder again|Update eber)"):
                load_results(TOY, out)
    (out / name).unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=name):
        load_results(TOY, out)
    run(TOY, out=out, seeds=3, progress=Progress())  # computes nothing, writes the tables again
    assert load_results(TOY, out).cells.equals(load_results(TOY, finished).cells)
    tally("faults injected", count + 1)


def test_a_damaged_record_of_a_comparison_is_refused(tmp_path: Path, tally: Tally) -> None:
    record(tmp_path, "patients.csv")
    good = (tmp_path / RECORD_FILE).read_bytes()
    count = times(100, 5000)
    for content in mutants(good, count, np.random.default_rng(6)):
        (tmp_path / RECORD_FILE).write_bytes(content)
        if content != good:
            with pytest.raises(ValueError, match=r"comparison\.json"):
                ComparisonRecord.load(tmp_path)
    tally("faults injected", count)


def test_damaged_cells_are_named_computed_again_and_counted_once(finished: Path, tmp_path: Path, tally: Tally) -> None:
    """Some of the cells, each in its own way; the others are not touched."""
    out = shutil.copytree(finished, tmp_path / "out")
    cells = TOY.plan(seeds=3)
    ledger, rng = Ledger(out), np.random.default_rng(7)
    damaged = [cells[k] for k in rng.choice(len(cells), size=8, replace=False)]
    for k, cell in enumerate(damaged):
        path = ledger.path(cell).with_suffix(".npz" if k % 2 else ".json")
        good = path.read_bytes()
        altered = (
            good.replace(b'"nll": 0.', b'"nll": 1.') if path.suffix == ".json" else bytes([good[0] ^ 1]) + good[1:]
        )
        assert altered != good
        path.write_bytes(good[: len(good) // 2] if k % 4 < 2 else altered)
    whole = {path: path.stat().st_mtime_ns for path in (out / "cells").glob("*.json")}
    heard = Heard()
    summary = run(TOY, out=out, seeds=3, progress=heard)
    assert summary.computed == len(damaged)
    assert summary.reused == len(cells) - len(damaged)
    for cell in damaged:
        (said,) = [text for text in heard.said if cell.file_stem in text]
        assert said.endswith("It is computed again.")
    others = {ledger.path(cell) for cell in cells if cell not in damaged}
    assert all(path.stat().st_mtime_ns == whole[path] for path in others)
    assert (out / "cells.csv").read_bytes() == (finished / "cells.csv").read_bytes()
    tally("faults injected", len(damaged))


def test_results_of_other_parameters_are_not_shown_under_these(finished: Path) -> None:
    """As after a comparison with another label that was killed before its first table."""
    other = dataclasses.replace(TOY, parameters={**TOY.parameters, "shift": 1.0})
    with pytest.raises(ValueError, match="other parameters than are asked for"):
        load_results(other, finished)
