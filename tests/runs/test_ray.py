"""A Ray cluster of two nodes gives what this machine gives, also when a worker or a node dies in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eber
from eber.datasets.hospitals import draw_hospitals
from eber.runs import Cell
from eber.runs.backends import RayCluster
from eber.runs.progress import Progress
from eber.runs.runner import run
from tests.one_process import one_process  # noqa: F401 (a fixture)
from tests.toy_experiment import TOY
from tests.trust.models import fitted_model, hospitals

pytest.importorskip("ray", reason="Ray is not installed: the extra eber[ray]")

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    # Ray's own.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
N_FILES = 50


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes of one processor each; the death of one is noticed within a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        from ray.cluster_utils import Cluster

        noticing = {
            "health_check_initial_delay_ms": 0,
            "health_check_period_ms": 200,
            "health_check_failure_threshold": 5,
        }
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": noticing}
        cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        cluster.second = cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


def workers_of(nodes: Iterable[Any]) -> list[int]:
    """The processes of our nodes that are at a task just now."""
    parents = {process.process.pid for node in nodes for process in node.all_processes["raylet"]}
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            busy = (status.parent / "cmdline").read_bytes().startswith(b"ray::_compute")
            if busy and int(status.read_text().rpartition(")")[2].split()[1]) in parents:
                found.append(int(status.parent.name))
        except OSError:  # it has just ended
            continue
    return found


@pytest.mark.usefixtures("one_process")
def test_a_table_is_compared_as_on_this_machine(cluster: Any, tmp_path: Path) -> None:
    columns: dict[str, Any] = {"label": "sepsis", "environment": "hospital", "quick": True}
    columns["methods"] = ["logistic regression", "ERM"]
    table = hospitals(tmp_path)
    here = eber.compare_table(table, **columns, out=tmp_path / "here")
    there = eber.compare_table(table, **columns, out=tmp_path / "there", backend=RayCluster(cluster.address))
    assert there.failures == here.failures == {}
    assert (tmp_path / "there" / "cells.csv").read_bytes() == (tmp_path / "here" / "cells.csv").read_bytes()


def test_a_cell_that_ends_its_process_is_tried_three_times_and_an_error_once(cluster: Any, tmp_path: Path) -> None:
    breaking = {"killed_method": "V-REx", "broken_method": "ERM"}
    one = RayCluster(cluster.address)
    summary = run(
        TOY, out=tmp_path, seeds=1, settings=["baseline"], overrides=breaking, backend=one, progress=Progress()
    )
    assert summary.computed == 2
    assert summary.failures["ERM, seed 0, setting baseline"] == "ArithmeticError: the loss of ERM is not finite"
    assert "ended 3 times" in summary.failures["V-REx, seed 0, setting baseline"]


@pytest.mark.filterwarnings("ignore::eber.exceptions.AdaptationWarning")
def test_predictions_survive_a_killed_worker_to_the_bit(cluster: Any, tmp_path: Path) -> None:
    model, new = fitted_model(tmp_path), tmp_path / "new"
    new.mkdir()
    frame = draw_hospitals(2000, random_state=3).drop(columns=["sepsis", "hospital"])
    for number in range(N_FILES):
        frame.iloc[number * 40 :].to_parquet(new / f"{number}.parquet")
    out, killed = tmp_path / "there", list[int]()

    def kill_one() -> None:
        while not killed:
            if len(list(out.glob("*.parquet"))) >= 5 and (busy := workers_of(cluster.list_all_nodes())):
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
            time.sleep(0.001)

    thread = threading.Thread(target=kill_one, daemon=True)
    thread.start()
    there = eber.predict_folder(model, new, out, backend=RayCluster(cluster.address))
    assert killed, "a worker was killed at work"
    here = eber.predict_folder(model, new, tmp_path / "here")
    assert there.remarks == here.remarks
    for number in range(N_FILES):
        ours, theirs = (folder / f"{number}.parquet" for folder in (tmp_path / "here", out))
        assert ours.read_bytes() == theirs.read_bytes()
    assert not list(out.glob(".*.tmp"))


class Counting(Progress):
    """Keeps the cells that are finished."""

    def __init__(self) -> None:
        self.cells = list[str]()

    def finished(self, cell: Cell, seconds_left: float | None) -> None:
        """Count."""
        self.cells.append(str(cell))


def test_a_run_survives_the_death_of_a_node(cluster: Any, tmp_path: Path) -> None:
    """The last test of the cluster: it has one node then."""
    arguments: dict[str, Any] = {"seeds": 3, "settings": ["baseline"], "overrides": {"pause": "0.4"}}
    run(TOY, out=tmp_path / "here", progress=Progress(), **arguments)
    progress, interrupted = Counting(), list[int]()

    def end_node() -> None:
        """As a machine ends that loses power, when some cells are finished and it has just begun another."""
        idle = False
        while not interrupted:
            busy = workers_of([cluster.second])
            if idle and busy and len(progress.cells) >= 3:
                for process in cluster.second.all_processes["raylet"]:
                    process.process.kill()
                for worker in busy:  # which would come to the end of its task without its node
                    os.kill(worker, signal.SIGKILL)
                cluster.remove_node(cluster.second, allow_graceful=False)
                interrupted.extend(busy)
            idle = not busy
            time.sleep(0.001)

    thread = threading.Thread(target=end_node, daemon=True)
    thread.start()
    summary = run(TOY, out=tmp_path / "there", backend=RayCluster(cluster.address), progress=progress, **arguments)
    assert interrupted, "a cell was on its way where the node ended"
    assert (summary.computed, summary.failures) == (12, {})
    assert len(set(progress.cells)) == len(progress.cells) == 12, "no cell is counted twice"
    assert len(cluster.list_all_nodes()) == 1
    assert (tmp_path / "there" / "cells.csv").read_bytes() == (tmp_path / "here" / "cells.csv").read_bytes()
