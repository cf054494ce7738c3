"""Processes that compute cells, a block at a time each, and may die without taking the run with them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from eber.methods import Method, add_method
from eber.runs.cell import Cell, CellResult
from eber.runs.joint_fits import run_jointly
from eber.runs.ledger import DamagedCellError, Ledger
from eber.runs.spec import Experiment

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class CellOutcome:
    """What became of a cell that was handed to a worker.

    Parameters
    ----------
    kind : str
        "computed"; "found", when another run finished it meanwhile; "claimed", when another run is at it; "failed".
    seconds : float
        Wall time of a computed cell.
    warned : bool
        Whether a computed cell gave warnings.
    cause, details : str
        Of a failure: one sentence, and the traceback where there is one.
    """

    kind: Literal["computed", "found", "claimed", "failed"]
    seconds: float = 0.0
    warned: bool = False
    cause: str = ""
    details: str = ""


@dataclass
class _Worker:
    process: BaseProcess
    pipe: connection.Connection
    ready: bool = False
    cells: list[Cell] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return self.ready and not self.cells


class WorkerPool:
    """Worker processes, used as a context manager; leaving it ends them, whatever they are doing.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Output folder, where workers write what they finish.
    size : int
        Number of processes.
    """

    def __init__(self, experiment: Experiment, folder: Path, size: int) -> None:
        for method in experiment.added_methods:
            _check_importable(method)
        self._experiment, self._folder, self._size = experiment, folder, size
        self._workers: list[_Worker] = []
        # Processes are spawned, since a fork of a process that has used threads (torch, BLAS) may hang.
        self._context = multiprocessing.get_context("spawn")

    def __enter__(self) -> WorkerPool:
        try:
            for _ in range(self._size):
                self._workers.append(self._start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()  # a cell is written whole or not at all, so that nothing can be cut in half
        ledger = Ledger(self._folder)
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
            for cell in worker.cells:  # whoever claims a cell sweeps what its last writer left, his lock among it
                with ledger.claim(cell):
                    pass
        self._workers.clear()

    @property
    def has_idle_worker(self) -> bool:
        """Whether cells can be handed out now."""
        return any(worker.idle for worker in self._workers)

    @property
    def running(self) -> list[Cell]:
        """The cells that workers are at."""
        return [cell for worker in self._workers for cell in worker.cells]

    def submit(self, cells: list[Cell]) -> None:
        """Hand cells that are computed together to an idle worker."""
        worker = next(worker for worker in self._workers if worker.idle)
        worker.cells = cells
        with contextlib.suppress(BrokenPipeError):  # it has just died, which the next `wait` sees
            worker.pipe.send(cells)

    def wait(self, timeout: float) -> list[tuple[Cell, CellOutcome]]:
        """What has come back within so many seconds; returns as soon as anything happens."""
        handles = [handle for worker in self._workers for handle in (worker.pipe, worker.process.sentinel)]
        happened = connection.wait(handles, timeout)
        outcomes: list[tuple[Cell, CellOutcome]] = []
        for position, worker in enumerate(self._workers):
            if worker.pipe not in happened and worker.process.sentinel not in happened:
                continue
            cells = worker.cells
            try:
                # The pipe first: a worker may have sent its last answer and then died.
                answer = worker.pipe.recv() if worker.pipe.poll() else [_death(worker.process)] * len(cells)
            except (EOFError, OSError):
                answer = [_death(worker.process)] * len(cells)
            if not worker.process.is_alive():
                self._workers[position] = self._replace(worker)
            elif answer is None:
                worker.ready = True
            else:
                worker.cells = []
            if answer is not None:
                outcomes += zip(cells, answer, strict=True)
        return outcomes

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._experiment, self._folder), daemon=True)
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


def _check_importable(method: Method) -> None:
    """Refuse a method that only this process has."""
    main = sys.modules["__main__"]
    has_file = getattr(main, "__file__", None) or getattr(main, "__spec__", None)
    if method.source.startswith("__main__:") and not has_file:
        raise ValueError(
            f"Worker processes cannot import the method {method.name}, which was typed into a notebook or a Python "
            f"prompt: write its class into a file, mymethod.py, and import it from there."
        )


def _death(process: BaseProcess) -> CellOutcome:
    process.join(1)
    code = process.exitcode
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        advice = "; is memory short? Fewer jobs need less" if name == "SIGKILL" else ""
        return CellOutcome("failed", cause=f"its process was ended by {name}{advice}")
    return CellOutcome("failed", cause=f"its process ended with status {code}")


@contextlib.contextmanager
def _surroundings() -> Iterator[None]:
    """What processes started in the block inherit: one thread, and no ear for Ctrl-C.

    Small fits stall when every worker wants every core; BLAS and OpenMP read their variables when they are loaded,
    which is before any of our code runs in the worker. Ctrl-C reaches the whole process group, and a worker may be
    anywhere in its start-up then; the parent hears it and ends its workers.
    """
    resource_tracker.ensure_running()  # multiprocessing would start it in the block, and unblock the signal after that
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
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


def _serve(pipe: connection.Connection, experiment: Experiment, folder: Path) -> None:
    """A worker's life: say that it is ready (None), then answer each block of cells with their outcomes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for method in experiment.added_methods:
        add_method(method)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    ledger = Ledger(folder)
    pipe.send(None)
    while True:
        try:
            cells = pipe.recv()
        except EOFError:
            return
        pipe.send(_compute(cells, experiment, ledger))


def _end_with_parent() -> None:
    """End at once when the parent does, even by SIGKILL, so that nobody computes for a run that is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _caught_warnings(messages: dict[str, None]) -> Iterator[None]:
    """Collect warnings for the report, each once, where printing them would tear the progress bar."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for of_no_use_here in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", of_no_use_here)
        try:
            yield
        finally:
            messages |= dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught)


def _compute(cells: list[Cell], experiment: Experiment, ledger: Ledger) -> list[CellOutcome]:
    """Compute those of the cells that nobody has finished or is at, together."""
    outcomes: dict[int, CellOutcome] = {}  # by position
    with contextlib.ExitStack() as claims:
        for i, cell in enumerate(cells):
            try:
                if not claims.enter_context(ledger.claim(cell)):
                    outcomes[i] = CellOutcome("claimed")
                    continue
                with contextlib.suppress(DamagedCellError):
                    if ledger.read(cell) is not None:
                        outcomes[i] = CellOutcome("found")
            except Exception as error:
                outcomes[i] = _failure(error)
        todo = [i for i in range(len(cells)) if i not in outcomes]
        messages: list[dict[str, None]] = [{} for _ in todo]
        start = time.perf_counter()
        work = [_with_parts(cells[i], experiment, ledger) for i in todo]
        results = run_jointly(experiment.run_cell, work, lambda k: _caught_warnings(messages[k]))
        seconds = (time.perf_counter() - start) / max(1, len(todo))
        for i, result, warned in zip(todo, results, messages, strict=True):
            try:
                if isinstance(result, Exception):
                    raise result
                experiment.check_result(cells[i], result)
                ledger.write(cells[i], result, seconds, list(warned))
                outcomes[i] = CellOutcome("computed", seconds, warned=bool(warned))
            except Exception as error:
                outcomes[i] = _failure(error)
    return [outcomes[i] for i in range(len(cells))]


def _with_parts(cell: Cell, experiment: Experiment, ledger: Ledger) -> Cell:
    """The cell with those of the results that it is built on that are finished."""
    parts = {}
    for method in experiment.built_on.get(cell.method, ()):
        part = replace(cell, method=method)
        with contextlib.suppress(DamagedCellError):
            record = ledger.read(part)
            if record is not None:
                parts[method] = CellResult(record.scores, record.seconds, ledger.read_arrays(part))
    return replace(cell, parts=parts)


def _failure(error: Exception) -> CellOutcome:
    details = "".join(traceback.format_exception(error))
    return CellOutcome("failed", cause=f"{type(error).__name__}: {error}", details=details)
