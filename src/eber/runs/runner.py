"""Run an experiment: expand it into cells, skip the finished ones, compute the rest side by side.

The run claims cells and keeps what they give; a backend only computes them, here or elsewhere. A run may be stopped in
any way and given again: it goes on where it was. Several runs may share an output folder: each cell is computed by one
of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import lock, sweep_temporaries, write_atomically
from eber.methods import Method
from eber.runs.backends import Failure, check_backend, open_backend
from eber.runs.cell import Cell, CellResult
from eber.runs.collect import WARNINGS_FILE, write_tables
from eber.runs.computing import CellWork, Computed
from eber.runs.groundwork import plan_work
from eber.runs.ledger import DamagedCellError, Ledger
from eber.runs.own_folder import FAILURES_FOLDER, FIGURES_FOLDER, RUN_FILE, RUN_FORMAT, make_own
from eber.runs.progress import Progress, progress_on
from eber.runs.schedule import Key, Schedule
from eber.runs.spec import Experiment
from eber.runs.travelling import installed_versions

RUN_VERSION = 2
GIVE_COMMAND_AGAIN = "Give the command that wrote the folder again: what is finished is used, the rest is computed."

_TICK = 0.5  # seconds after which a waiting run looks again at cells that another run has claimed
_INTERRUPTED_STATUS = 130  # what shells give for a command that Ctrl-C ended


@dataclass(frozen=True)
class RunSummary:
    """What a run did.

    Parameters
    ----------
    computed, reused : int
        Results that this run computed, and those that it found finished (before, or by another run meanwhile). What
        results are built on is not counted.
    failures : mapping
        Cell, as text, to the cause of its failure.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    computed: int
    reused: int
    failures: Mapping[str, str]
    interrupted: bool = False

    @property
    def nothing_finished(self) -> bool:
        """Whether it was ended before there was anything to tell."""
        return self.interrupted and not self.computed + self.reused

    @property
    def exit_status(self) -> int:
        """Zero only when every cell is finished."""
        return _INTERRUPTED_STATUS if self.interrupted else int(bool(self.failures))


def run(
    experiment: Experiment,
    *,
    out: Path,
    seeds: int | Iterable[int],
    methods: Iterable[str] | None = None,
    settings: Iterable[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
    jobs: int = 2,
    backend: Any = "processes",
    progress: Progress | None = None,
    command: str = "",
    expected: Callable[[Cell], float | None] | None = None,
) -> RunSummary:
    """Compute what is not finished yet, then write the tables (:func:`eber.runs.collect.write_tables`) and `run.json`.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    out : Path
        Output folder. Finished cells of earlier runs with the same parameters are used, and appear in the tables.
    seeds, methods, settings, overrides, data_dir
        As for :meth:`Experiment.plan`.
    jobs : int
        Worker processes, one thread each.
    backend : str, RayCluster or Executor
        Where cells are computed; see :func:`eber.runs.backends.open_backend`.
    progress : Progress, optional
        By default a bar on the terminal, or lines where standard error is none.
    command : str
        What the user typed, for the report.
    expected : callable, optional
        Cell -> how long it should take, where that is known; for the time that is said to be left until cells of a
        method are finished.

    Returns
    -------
    RunSummary
        Also when cells failed or Ctrl-C came: see its `exit_status`. Where Ctrl-C came before a cell was finished,
        KeyboardInterrupt is passed on: there is nothing to write.
    """
    if jobs < 1:
        raise ValueError(f"A run needs at least one job; got {jobs}.")
    check_backend(backend)
    overrides = dict(overrides or {})
    if methods is not None:
        experiment, methods = experiment.with_methods(methods)
    cells = experiment.plan(seeds=seeds, methods=methods, settings=settings, overrides=overrides, data_dir=data_dir)
    make_own(out)
    ledger = Ledger(out)
    session = _Session(experiment, ledger, cells, overrides, jobs, backend, progress or progress_on(), expected)
    summary = session.run()
    if summary.nothing_finished:
        raise KeyboardInterrupt
    with writing_outputs(out):  # so that the tables and their description are of the same run
        experiment = _with_earlier_methods(experiment, out)
        tables = write_tables(experiment, ledger, overrides, cells[0].data)
        description = {**_describe(experiment, cells, overrides, command), "tables": tables}
        write_atomically(out / RUN_FILE, encode_checksummed(description, RUN_FORMAT, RUN_VERSION))
    return summary


@contextlib.contextmanager
def writing_outputs(folder: Path) -> Iterator[None]:
    """Be the only one who writes tables and pages into an output folder, and sweep what killed runs left of them."""
    with lock(folder / ".outputs.lock", wait=True):
        for place in filter(Path.is_dir, (folder, folder / FIGURES_FOLDER)):
            sweep_temporaries(place)
        yield


def read_run(folder: Path) -> dict[str, Any]:
    """How the tables of an output folder came about; refuses a description that was altered."""
    try:
        return read_checksummed(folder / RUN_FILE, RUN_FORMAT, RUN_VERSION, GIVE_COMMAND_AGAIN)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(
            f"{folder} holds no results: there is no {RUN_FILE} in it. Give an output folder of `eber compare` or "
            "`eber reproduce`."
        ) from error


def _with_earlier_methods(experiment: Experiment, folder: Path) -> Experiment:
    """The experiment with what earlier runs into the folder added, so that the tables keep their rows."""
    try:
        earlier = read_run(folder)
    except (OSError, ValueError):
        return experiment
    if earlier["experiment"] != experiment.name or earlier["declaration"] != declaration(experiment):
        return experiment
    return with_added_methods(experiment, earlier)


def with_added_methods(experiment: Experiment, description: Mapping[str, Any]) -> Experiment:
    """The experiment with the methods that a run added to it; none of their code is imported."""
    added = [Method.from_json(content) for content in description.get("methods", ())]
    return experiment.with_methods(method for method in added if method.name not in experiment.all_methods)[0]


class _PartFailedError(Exception):
    """A cell that others are built on cannot be had."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Session:
    """The state of one run."""

    def __init__(
        self,
        experiment: Experiment,
        ledger: Ledger,
        cells: list[Cell],
        overrides: Mapping[str, Any],
        jobs: int,
        backend: Any,
        progress: Progress,
        expected: Callable[[Cell], float | None] | None,
    ) -> None:
        self._expected = expected
        self._experiment, self._ledger, self._cells, self._overrides = experiment, ledger, cells, overrides
        self._jobs, self._backend, self._progress = jobs, backend, progress
        self._computed = self._warned = 0
        self._results = {cell.key for cell in cells}
        self._failures: dict[str, str] = {}
        self._broken: dict[Key, Failure] = {}  # cells that others are built on
        self._claimed_elsewhere: list[Cell] = []
        self._claims: dict[Key, contextlib.ExitStack] = {}

    def run(self) -> RunSummary:
        self._ledger.sweep()
        self._work = plan_work(self._experiment, self._cells, self._overrides, self._is_finished)
        missing = self._work.missing
        parts = {key: [part.key for part in parts.values()] for key, parts in self._work.parts.items()}
        self._schedule = Schedule(
            missing, self._ledger.records(), parts, self._experiment.groundwork, self._expected or (lambda cell: None)
        )
        self._progress.begin(len(self._work.cells), len(self._work.finished))
        interrupted = False
        try:
            if missing:
                self._compute(min(self._jobs, len(missing)))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._progress.end()
        good = (cell for cell in self._cells if str(cell) not in self._failures)
        finished = sum(self._ledger.path(cell).exists() for cell in good)
        if interrupted and finished:
            self._progress.note("Stopped. Nothing that was finished is lost: the same command goes on from here.")
        if self._warned:
            self._progress.note(f"{self._warned} of {self._computed} cells gave warnings: see {WARNINGS_FILE}.")
        if self._failures:
            self._progress.note(
                f"{len(self._failures)} of {len(self._cells)} cells failed; the same command tries them again. "
                f"Tracebacks are in {self._ledger.folder / FAILURES_FOLDER}."
            )
        return RunSummary(self._computed, finished - self._computed, self._failures, interrupted)

    def _is_finished(self, cell: Cell) -> bool:
        try:
            return self._ledger.read(cell) is not None
        except DamagedCellError as error:
            self._progress.note(str(error))
            return False

    def _compute(self, jobs: int) -> None:
        schedule, work = self._schedule, CellWork(self._experiment, self._cells[0].data_dir)
        most_claims = _most_open_files() // 2  # each claim is one
        try:
            with open_backend(self._backend, work, jobs) as backend:
                while len(schedule) or self._claimed_elsewhere or backend.running:
                    while len(self._claims) < most_claims and backend.has_idle:
                        at_work = [*backend.running, *self._claimed_elsewhere]
                        block = schedule.next(self._experiment.seeds_together, at_work)
                        if not block:
                            break
                        if ready := list(filter(None, map(self._with_parts, self._claim(block)))):
                            backend.submit(ready)
                    for cell, answer in backend.wait(_TICK):
                        if self._keep(cell, answer):
                            self._progress.finished(cell, schedule.seconds_left(backend.running, backend.size))
                    if self._claimed_elsewhere and not backend.running:
                        backend.wait(_TICK)
                        while self._claimed_elsewhere:
                            schedule.add(self._claimed_elsewhere.pop())
        finally:  # of what nobody computes any more
            for claim in self._claims.values():
                claim.close()

    def _claim(self, cells: list[Cell]) -> list[Cell]:
        """Those of the cells that nobody has finished or is at, claimed."""
        claimed = []
        for cell in cells:
            with contextlib.ExitStack() as claim:
                try:
                    if not claim.enter_context(self._ledger.claim(cell)):
                        self._claimed_elsewhere.append(cell)
                        continue
                    with contextlib.suppress(DamagedCellError):
                        if self._ledger.read(cell) is not None:  # by another run meanwhile
                            self._report_path(cell).unlink(missing_ok=True)
                            self._progress.finished(cell, self._schedule.seconds_left([], self._jobs))
                            continue
                except Exception as error:
                    self._fail(cell, Failure.of(error))
                    continue
                self._claims[cell.key] = claim.pop_all()
            claimed.append(cell)
        return claimed

    def _with_parts(self, cell: Cell) -> Cell | None:
        """The claimed cell with what it is built on; where that failed the cell fails, for the same reason."""
        try:
            parts = {part: self._finished_part(of) for part, of in self._work.parts[cell.key].items()}
        except _PartFailedError as error:
            with self._claims.pop(cell.key):
                self._fail(cell, error.failure)
            return None
        return replace(cell, parts=parts)

    def _finished_part(self, part: Cell) -> CellResult:
        if part.key in self._broken:
            raise _PartFailedError(self._broken[part.key])
        try:
            record = self._ledger.read(part)
        except DamagedCellError as error:
            raise _PartFailedError(Failure.of(error)) from error
        if record is None:
            raise _PartFailedError(Failure(f"{self._ledger.path(part)}, which it is built on, is gone."))
        return CellResult(record.scores, record.seconds, self._ledger.read_arrays(part))

    def _keep(self, cell: Cell, answer: Computed | Failure) -> bool:
        """Write what came of a claimed cell; says whether it is finished now."""
        with self._claims.pop(cell.key):
            if isinstance(answer, Computed):
                try:
                    self._experiment.check_result(cell, answer.result)
                    self._ledger.write(cell, answer.result, answer.seconds, answer.warnings)
                except Exception as error:
                    answer = Failure.of(error)
        if isinstance(answer, Failure):
            self._fail(cell, answer)
            return False
        self._report_path(cell).unlink(missing_ok=True)
        if cell.key in self._results:
            self._computed += 1
            self._warned += bool(answer.warnings)
        self._schedule.learn(cell, answer.seconds)
        return True

    def _fail(self, cell: Cell, failure: Failure) -> None:
        if cell.key not in self._results:  # the results that are built on it say why they fail
            self._broken[cell.key] = failure
            return
        self._failures[str(cell)] = failure.cause
        self._progress.note(f"Failed: {cell}: {failure.cause}")
        report = self._report_path(cell)
        report.parent.mkdir(exist_ok=True)
        write_atomically(report, f"{cell}\n{failure.cause}\n\n{failure.details}")

    def _report_path(self, cell: Cell) -> Path:
        """Where the failure of a cell is told; what a killed run left of it is swept."""
        path = self._ledger.folder / FAILURES_FOLDER / f"{cell.file_stem}.txt"
        sweep_temporaries(path)
        return path


def _most_open_files() -> int:
    import resource  # not on Windows, where everything but resumable runs works

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def declaration(experiment: Experiment) -> str:
    """A text that changes whenever the parameters or the settings of an experiment do."""
    content = json.dumps([experiment.name, dict(experiment.parameters), experiment.settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _describe(experiment: Experiment, cells: list[Cell], overrides: Mapping[str, Any], command: str) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "declaration": declaration(experiment),
        "command": command,
        "overrides": overrides,
        "methods": [method.to_json() for method in experiment.added_methods],
        "data": cells[0].data,
        "data_dir": "" if cells[0].data_dir is None else str(cells[0].data_dir),
        "versions": installed_versions(),
    }
