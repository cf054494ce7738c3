"""Run an experiment: expand it into cells, skip the finished ones, compute the rest side by side.

A run may be stopped in any way and given again: it goes on where it was. Several runs may share an output folder: each
cell is computed by one of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eber
from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import lock, sweep_temporaries, write_atomically
from eber.methods import Method
from eber.runs.cell import Cell
from eber.runs.collect import WARNINGS_FILE, write_tables
from eber.runs.ledger import DamagedCellError, Ledger
from eber.runs.progress import Progress, progress_on
from eber.runs.schedule import Schedule
from eber.runs.spec import Experiment
from eber.runs.workers import CellOutcome, WorkerPool

RUN_FILE = "run.json"
RUN_FORMAT, RUN_VERSION = "eber-run", 2
GIVE_COMMAND_AGAIN = "Give the command that wrote the folder again: what is finished is used, the rest is computed."
FAILURES_FOLDER, FIGURES_FOLDER = "failures", "figures"

_VERSIONS_OF = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "matplotlib")
_TICK = 0.5  # seconds after which a waiting run looks again at cells that another run has claimed
_INTERRUPTED_STATUS = 130  # what shells give for a command that Ctrl-C ended


@dataclass(frozen=True)
class RunSummary:
    """What a run did.

    Parameters
    ----------
    computed, reused : int
        Cells that this run computed, and those that it found finished (before, or by another run meanwhile).
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
    progress: Progress | None = None,
    command: str = "",
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
    progress : Progress, optional
        By default a bar on the terminal, or lines where standard error is none.
    command : str
        What the user typed, for the report.

    Returns
    -------
    RunSummary
        Also when cells failed or Ctrl-C came: see its `exit_status`.
    """
    if jobs < 1:
        raise ValueError(f"A run needs at least one job; got {jobs}.")
    overrides = dict(overrides or {})
    if methods is not None:
        experiment, methods = experiment.with_methods(methods)
    cells = experiment.plan(seeds=seeds, methods=methods, settings=settings, overrides=overrides, data_dir=data_dir)
    ledger = Ledger(out)
    session = _Session(experiment, ledger, cells, jobs, progress or progress_on())
    summary = session.run()
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


class _Session:
    """The state of one run."""

    def __init__(
        self, experiment: Experiment, ledger: Ledger, cells: list[Cell], jobs: int, progress: Progress
    ) -> None:
        self._experiment, self._ledger, self._cells, self._jobs = experiment, ledger, cells, jobs
        self._progress = progress
        self._computed = self._warned = 0
        self._failures: dict[str, str] = {}
        self._claimed_elsewhere: list[Cell] = []

    def run(self) -> RunSummary:
        missing = [cell for cell in self._cells if not self._is_finished(cell)]
        self._schedule = Schedule(missing, self._ledger.records(), self._experiment.built_on)
        self._progress.begin(len(self._cells), len(self._cells) - len(missing))
        interrupted = False
        try:
            if missing:
                self._compute(min(self._jobs, len(missing)))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._progress.end()
        if interrupted:
            self._progress.note("Stopped. Nothing that was finished is lost: the same command goes on from here.")
        if self._warned:
            self._progress.note(f"{self._warned} of {self._computed} cells gave warnings: see {WARNINGS_FILE}.")
        if self._failures:
            self._progress.note(
                f"{len(self._failures)} of {len(self._cells)} cells failed; the same command tries them again. "
                f"Tracebacks are in {self._ledger.folder / FAILURES_FOLDER}."
            )
        good = (cell for cell in self._cells if str(cell) not in self._failures)
        finished = sum(self._ledger.path(cell).exists() for cell in good)
        return RunSummary(self._computed, finished - self._computed, self._failures, interrupted)

    def _is_finished(self, cell: Cell) -> bool:
        try:
            return self._ledger.read(cell) is not None
        except DamagedCellError as error:
            self._progress.note(str(error))
            return False

    def _compute(self, jobs: int) -> None:
        schedule = self._schedule
        with WorkerPool(self._experiment, self._ledger.folder, jobs) as pool:
            while len(schedule) or self._claimed_elsewhere or pool.running:
                while pool.has_idle_worker:
                    block = schedule.next(self._experiment.seeds_together, pool.running)
                    if not block:
                        break
                    pool.submit(block)
                for cell, outcome in pool.wait(_TICK):
                    self._note(cell, outcome)
                    if outcome.kind in ("computed", "found"):
                        self._progress.finished(cell, schedule.seconds_left(pool.running, jobs))
                if self._claimed_elsewhere and not len(schedule) and not pool.running:
                    pool.wait(_TICK)
                    while self._claimed_elsewhere:
                        schedule.add(self._claimed_elsewhere.pop())

    def _note(self, cell: Cell, outcome: CellOutcome) -> None:
        report = self._ledger.folder / FAILURES_FOLDER / f"{cell.file_stem}.txt"
        sweep_temporaries(report)
        if outcome.kind == "claimed":
            self._claimed_elsewhere.append(cell)
        elif outcome.kind == "failed":
            self._failures[str(cell)] = outcome.cause
            self._progress.note(f"Failed: {cell}: {outcome.cause}")
            report.parent.mkdir(exist_ok=True)
            write_atomically(report, f"{cell}\n{outcome.cause}\n\n{outcome.details}")
        else:
            report.unlink(missing_ok=True)
            if outcome.kind == "computed":
                self._computed += 1
                self._warned += outcome.warned
                self._schedule.learn(cell, outcome.seconds)


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
        "versions": {
            "eber": eber.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _VERSIONS_OF},
        },
    }
