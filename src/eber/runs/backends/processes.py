"""Processes of this machine that compute a block of tasks at a time each, and may die without taking the run along."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from eber.runs.backends.protocol import THREAD_VARIABLES, Failure, Work

_PR_SET_PDEATHSIG = 1
"""Of <sys/prctl.h>: the signal that a process gets when the thread that started it ends."""


@dataclass
class _Worker:
    process: BaseProcess
    pipe: connection.Connection
    ready: bool = False
    tasks: list[Any] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return self.ready and not self.tasks


class WorkerPool:
    """Worker processes, used as a context manager; leaving it ends them, whatever they are doing.

    Parameters
    ----------
    work : Work
    size : int
        Number of processes.
    """

    def __init__(self, work: Work, size: int) -> None:
        work.check_local()
        # As bytes: multiprocessing would unpack it, and import what it needs, before any of our code runs.
        self._work, self.size = pickle.dumps(work), size
        self._workers: list[_Worker] = []
        # Processes are spawned, since a fork of a process that has used threads (torch, BLAS) may hang.
        self._context = multiprocessing.get_context("spawn")

    def __enter__(self) -> WorkerPool:
        try:
            for _ in range(self.size):
                self._workers.append(self._start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()  # it writes nothing that could be cut in half
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    @property
    def has_idle(self) -> bool:
        """Whether tasks can be handed out now."""
        return any(worker.idle for worker in self._workers)

    @property
    def running(self) -> list[Any]:
        """The tasks that workers are at."""
        return [task for worker in self._workers for task in worker.tasks]

    def submit(self, tasks: list[Any]) -> None:
        """Hand tasks that are done together to an idle worker."""
        worker = next(worker for worker in self._workers if worker.idle)
        worker.tasks = tasks
        with contextlib.suppress(BrokenPipeError):  # it has just died, which the next `wait` sees
            worker.pipe.send(tasks)

    def wait(self, timeout: float) -> list[tuple[Any, Any]]:
        """What has come back within so many seconds; returns as soon as anything happens."""
        handles = [handle for worker in self._workers for handle in (worker.pipe, worker.process.sentinel)]
        happened = connection.wait(handles, timeout)
        answers: list[tuple[Any, Any]] = []
        for position, worker in enumerate(self._workers):
            if worker.pipe not in happened and worker.process.sentinel not in happened:
                continue
            tasks = worker.tasks
            try:
                # The pipe first: a worker may have sent its last answer and then died.
                answer = worker.pipe.recv() if worker.pipe.poll() else [_death(worker.process)] * len(tasks)
            except (EOFError, OSError):
                answer = [_death(worker.process)] * len(tasks)
            if not worker.process.is_alive():
                self._workers[position] = self._replace(worker)
            elif answer is None:
                worker.ready = True
            else:
                worker.tasks = []
            if answer is not None:
                answers += zip(tasks, answer, strict=True)
        return answers

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        with _surroundings():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _replace(self, dead: _Worker) -> _Worker:
        dead.process.join()
        dead.pipe.close()
        if not dead.ready:
            raise RuntimeError("A worker process could not start; what it printed above says why.")
        return self._start()


def _death(process: BaseProcess) -> Failure:
    process.join(1)
    code = process.exitcode
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        advice = "; is memory short? Fewer jobs need less" if name == "SIGKILL" else ""
        return Failure(f"its process was ended by {name}{advice}")
    return Failure(f"its process ended with status {code}")


@contextlib.contextmanager
def _surroundings() -> Iterator[None]:
    """What processes started in the block inherit: one thread, and no ear for Ctrl-C.

    Small fits stall when every worker wants every core; BLAS and OpenMP read their variables when they are loaded,
    which is before any of our code runs in the worker. Ctrl-C reaches the whole process group, and a worker may be
    anywhere in its start-up then; the parent hears it and ends its workers.
    """
    resource_tracker.ensure_running()  # multiprocessing would start it in the block, and unblock the signal after that
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: connection.Connection, pickled: bytes) -> None:
    """A worker's life: say that it is ready (None), then answer each block of tasks."""
    _end_with_parent()
    work: Work = pickle.loads(pickled)  # imports for seconds
    work.begin()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    pipe.send(None)
    while True:
        try:
            tasks = pipe.recv()
        except EOFError:
            return
        pipe.send(work.compute(tasks))


def _end_with_parent() -> None:
    """From now on, end when the parent does, even by SIGKILL, so that nobody computes for a run that is gone.

    Linux kills the worker itself, whatever it is doing. Elsewhere a thread waits for the parent, which may have to wait
    for a library that is being loaded.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent.pid:  # it died before it could be asked for
            os._exit(1)
    threading.Thread(target=_wait_for_end, args=(parent,), daemon=True).start()


def _wait_for_end(parent: Any) -> None:
    parent.join()
    os._exit(1)
