"""Any executor of `concurrent.futures` whose workers are processes: the standard library's, loky's, Dask's."""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

from eber.runs.backends.protocol import THREAD_VARIABLES, Failure, Work


def require_processes(executor: Executor) -> None:
    """Refuse threads and forks."""
    if isinstance(executor, ThreadPoolExecutor):
        raise ValueError(
            "backend is a ThreadPoolExecutor; fits set torch's threads and the filter of warnings for their whole "
            "process, and would disturb each other in threads: give an executor of processes."
        )
    context: Any = getattr(executor, "_mp_context", None)
    if hasattr(context, "get_start_method") and context.get_start_method() == "fork":
        raise ValueError(
            "backend is an executor that forks this process, which has used threads, so that its workers may hang: "
            'give it mp_context=multiprocessing.get_context("spawn").'
        )


class ExecutorBackend:
    """An executor that its owner has opened, and closes.

    Data files must be readable under the same path wherever it computes; they are checked there.

    Parameters
    ----------
    executor : Executor
    work : Work
    size : int
        Blocks of tasks that are handed to it at once.
    """

    def __init__(self, executor: Executor, work: Work, size: int) -> None:
        self._executor, self.size = executor, size
        self._work = pickle.dumps(work.travelling(with_files=False))
        self._blocks: dict[Future[list[Any]], list[Any]] = {}

    def __enter__(self) -> ExecutorBackend:
        # Before a run claims anything: workers that start later would inherit its locks.
        if self._executor.submit(_whereabouts).result() == _whereabouts():
            raise ValueError("backend is an executor that computes in this process; give one whose workers are others.")
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._blocks:
            future.cancel()
        self._blocks.clear()

    @property
    def has_idle(self) -> bool:
        """Whether tasks can be handed out now."""
        return len(self._blocks) < self.size

    @property
    def running(self) -> list[Any]:
        """The tasks that were handed out and not answered yet."""
        return [task for tasks in self._blocks.values() for task in tasks]

    def submit(self, tasks: list[Any]) -> None:
        """Hand out tasks that are done together."""
        try:
            future = self._executor.submit(_compute, self._work, tasks)
        except BrokenExecutor as error:  # it has lost a worker, and takes nothing more
            future = Future()
            future.set_exception(error)
        self._blocks[future] = tasks

    def wait(self, timeout: float) -> list[tuple[Any, Any]]:
        """What has come back within so many seconds."""
        if not self._blocks:
            time.sleep(timeout)
        answers: list[tuple[Any, Any]] = []
        for future in wait(self._blocks, timeout, FIRST_COMPLETED).done:
            tasks = self._blocks.pop(future)
            error = future.exception()
            # An executor that lost a worker may have lost all its tasks, and says so for each of them.
            found = future.result() if error is None else [Failure.of(error)] * len(tasks)
            answers += zip(tasks, found, strict=True)
        return answers


def _whereabouts() -> tuple[str, int]:
    return platform.node(), os.getpid()


def _compute(work: bytes, tasks: list[Any]) -> list[Any]:
    return _begun(hashlib.sha256(work).digest(), work).compute(tasks)


@cache
def _begun(digest: bytes, pickled: bytes) -> Work:
    """The work, begun once in this process."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    work: Work = pickle.loads(pickled)
    work.begin()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return work
