"""Wherever cells are computed, the scores are the same to the byte; what could not give them is refused."""

from __future__ import annotations

import dataclasses
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from joblib.externals import loky

from eber.methods import register_method
from eber.runs import travelling
from eber.runs.backends import RayCluster, check_backend, open_backend
from eber.runs.computing import CellWork
from eber.runs.progress import Progress
from eber.runs.runner import run
from eber.runs.travelling import pack
from eber.tables.files import open_table
from tests.toy_experiment import TOY

SPAWNING = partial(ProcessPoolExecutor, 2, mp_context=multiprocessing.get_context("spawn"))
EXECUTORS = {"standard library": SPAWNING, "loky": partial(loky.ProcessPoolExecutor, 2)}


def fingerprint(path: Path) -> str:
    return open_table(path).fingerprint


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Of our own processes."""
    out = tmp_path_factory.mktemp("processes")
    run(TOY, out=out, seeds=2, progress=Progress())
    return (out / "cells.csv").read_bytes()


@pytest.mark.parametrize("make", EXECUTORS.values(), ids=EXECUTORS)
def test_executors_give_the_same_scores(make: Callable[[], Executor], scores: bytes, tmp_path: Path) -> None:
    with make() as executor:
        summary = run(TOY, out=tmp_path, seeds=2, backend=executor, progress=Progress())
    assert summary.computed == 16
    assert (tmp_path / "cells.csv").read_bytes() == scores


def test_an_executor_that_loses_a_worker_says_so_for_its_cells(tmp_path: Path) -> None:
    with SPAWNING() as executor:
        killing = {"killed_method": "V-REx"}
        summary = run(TOY, out=tmp_path, seeds=1, overrides=killing, backend=executor, jobs=1, progress=Progress())
    assert summary.exit_status == 1
    assert all("BrokenProcessPool" in cause for cause in summary.failures.values())


class InThisProcess(Executor):
    """An executor of somebody's own."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(fn, *args, **kwargs)


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("slurm", r"backend is 'slurm'; give 'processes', 'ray'"),
        (ThreadPoolExecutor(1), "would disturb each other in threads"),
        (ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")), r"get_context\(\"spawn\"\)"),
        (InThisProcess(), "computes in this process"),
    ],
)
def test_what_cannot_compute_cells_is_refused_before_anything_is_computed(
    backend: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        run(TOY, out=tmp_path, seeds=1, backend=backend, progress=Progress())
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("backend", ["ray", RayCluster("127.0.0.1:1")])
def test_ray_is_asked_for_by_name_where_it_is_missing(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'eber\[ray\]'"):
        check_backend(backend)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_table_that_was_sent_is_checked_where_it_arrives(kind: str, tmp_path: Path) -> None:
    table = tmp_path / "sent.csv"
    if kind == "folder":
        import pandas as pd

        table = tmp_path / "sent"
        (table / "b").mkdir(parents=True)
        for part in ("b/1.parquet", "a.parquet"):
            pd.DataFrame({"x": [1.0]}).assign(part=part).to_parquet(table / part)
    else:
        table.write_text("x,y\n1,2\n")
    expected = fingerprint(table)
    luggage = pack((), table)
    changed = dataclasses.replace(luggage, files={name: content + b"3,4\n" for name, content in luggage.files.items()})
    table.rename(tmp_path / "gone")
    place = luggage.place_of_data(table, fingerprint, expected)
    assert (place.name, fingerprint(place)) == (table.name, expected)
    if kind == "file":
        with pytest.raises(ValueError, match="not what the run was planned for"):
            changed.place_of_data(table, fingerprint, expected)
    with pytest.raises(FileNotFoundError, match="must lie under the same path on every machine"):
        pack((), None).place_of_data(table, fingerprint, expected)


def test_other_versions_are_refused_where_work_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    luggage = pack((), None)
    luggage.unpack()
    here = travelling.installed_versions()
    monkeypatch.setattr(travelling, "installed_versions", lambda: {**here, "torch": "1.0"})
    with pytest.raises(RuntimeError, match=r"has torch 1\.0, and the run was started with"):
        luggage.unpack()


def test_a_method_in_a_file_by_itself_travels_as_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "travelling_coin.py").write_text(
        "from tests.own_methods import CoinClassifier\n\nclass FarCoin(CoinClassifier):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import travelling_coin  # type: ignore[import-not-found] # written just now

    method = register_method(travelling_coin.FarCoin)
    experiment = dataclasses.replace(TOY, added_methods=(method,))
    work = CellWork(experiment).travelling(with_files=True)
    (tmp_path / "travelling_coin.py").unlink()
    monkeypatch.delitem(sys.modules, "travelling_coin")
    work.begin()
    assert method.classifier.__name__ == "FarCoin"
    assert method.classifier is not travelling_coin.FarCoin
    in_the_script = dataclasses.replace(method, source="__main__:FarCoin")
    with pytest.raises(ValueError, match="Other machines cannot import the method FarCoin"):
        open_backend(SPAWNING(), CellWork(dataclasses.replace(TOY, added_methods=(in_the_script,))), 1)
