"""Processes that fork after they have answered with several threads, as servers do: their children answer, too."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eber import EBERClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::eber.exceptions.FitWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here"),
]

SECONDS = 120

IN_A_CHILD = """
import os, sys, threading
import numpy as np, torch
from eber import EBERClassifier, ERMClassifier

torch.set_num_threads(2)
model, rows = EBERClassifier.load(sys.argv[1]), np.load(sys.argv[2])
expected = model.predict_proba(rows)


def close(found):
    return np.allclose(found, expected, rtol=0, atol=1e-12)  # two threads round otherwise than one


child = os.fork()
if child == 0:
    same = close(model.predict_proba(rows))
    same &= np.isfinite(model.transform(rows)).all() and np.isfinite(model.adapt(rows).predict_proba(rows)).all()
    model.save(sys.argv[1] + "-again")
    same &= close(EBERClassifier.load(sys.argv[1] + "-again").predict_proba(rows))
    ERMClassifier(epochs=1, n_threads=2, random_state=0).fit(rows, rows[:, 0] > 0)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(model.predict_proba(rows))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same &= len(answers) == 4 and all(map(close, answers))
    os._exit(0 if same else 3)
_, status = os.waitpid(child, 0)
assert torch.get_num_threads() == 2, "the parent keeps its threads"
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, NDArray[np.float64]]:
    """A saved model, rows in a file, and what the model says of them."""
    folder = tmp_path_factory.mktemp("served")
    X = np.random.default_rng(0).normal(size=(3000, 10))
    model = EBERClassifier(hidden_dims=(64,), epochs=1, random_state=0)
    model.fit(X, X[:, 0] > 0, environments=np.arange(len(X)) % 3)
    model.save(folder / "model")
    np.save(folder / "rows.npy", X)
    return folder / "model", folder / "rows.npy", model.predict_proba(X)


def test_a_child_of_a_process_that_has_answered_with_two_threads_answers(served: tuple[Path, Path, Any]) -> None:
    """Seen to fail when nothing is done after a fork: the child never returns."""
    model, rows, _ = served
    command = [sys.executable, "-W", "ignore", "-c", IN_A_CHILD, model, rows]
    subprocess.run(list(map(str, command)), check=True, timeout=SECONDS)


class OverSocket(http.client.HTTPConnection):
    """HTTP over a socket of the file system, so that no port is needed."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


@contextlib.contextmanager
def gunicorn(served: tuple[Path, Path, Any], place: Path, *options: str) -> Iterator[tuple[int, Path]]:
    """A server that loads the model before it forks; its process and its socket."""
    model, rows, _ = served
    named = {"EBER_SERVED_MODEL": str(model), "EBER_SERVED_ROWS": str(rows)}
    command = ["gunicorn", "--preload", "--bind", f"unix:{place}", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, "tests.trust.served_model:application"],
        env={**os.environ, **named, "PYTHONWARNINGS": "ignore"},
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + SECONDS
        while not place.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()[1].decode()
        yield process.pid, place
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


@pytest.mark.parametrize("options", ["--workers=2", "--threads=4"])
def test_a_server_that_loads_the_model_before_it_forks_answers(
    options: str, served: tuple[Path, Path, Any], tmp_path: Path
) -> None:
    *_, expected = served
    with gunicorn(served, tmp_path / "socket", options) as (server, place):

        def ask(_: int) -> Any:
            connection = OverSocket(place)
            connection.request("GET", "/")
            with contextlib.closing(connection):
                return json.loads(connection.getresponse().read())

        with ThreadPoolExecutor(4) as pool:
            for answer in pool.map(ask, range(8)):
                np.testing.assert_allclose(answer["proba"], expected, rtol=0, atol=1e-12)
                assert answer["parent"] == server, "a child has answered"
