"""`predict_folder`: a folder of Parquet files, file by file, on processes, on Ray or on any executor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eber.io.files import leaving_no_empty_folder
from eber.io.text import count
from eber.runs.backends import Failure, check_backend, open_backend
from eber.runs.travelling import Luggage, pack
from eber.tables import folder_prediction
from eber.tables.files import require_apart
from eber.tables.model_folder import TableModel
from eber.tables.new_environment import LEVEL
from eber.tables.prediction import Asked, with_labels
from eber.tables.predictions import TablePredictions
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.tasks import one_after_the_other
from eber.tuning.recalibration import checked_level
from eber.workflow.arguments import names_of, whole_number

_TICK = 0.5


def predict_folder(
    model: TableModel,
    folder: str | Path,
    out: str | Path,
    *,
    keep: str | Iterable[str] = (),
    adapt: bool = False,
    force: bool = False,
    labelled: Any = None,
    level: float = LEVEL,
    reading: Reading = NOTHING_SAID,
    jobs: int = 1,
    backend: Any = "processes",
) -> TablePredictions:
    """Predict every Parquet file of a folder into a file of the same name in another folder.

    Each file is whole or not there, and equal to the last bit to what `TableModel.predict_table` writes for it alone.
    Files that are done, by an earlier call on the same rows with the same model, are not done again.

    Parameters
    ----------
    model : TableModel
    folder, out : str or Path
        Every machine that computes must see both under the same path.
    keep : str or iterable of str
        Columns to be copied into the predictions.
    adapt : bool
        First re-estimate, from the rows of all files, which environments they resemble.
    force, labelled, level
        As for `TableModel.predict_table`.
    reading : Reading
        How the rows are read, to which Parquet leaves nothing to say.
    jobs : int
        Files at once; with one, in this process. A Ray cluster that is joined does as many as it has processors.
    backend : str, RayCluster or Executor
        As for `compare_table`.

    Returns
    -------
    TablePredictions
        The path of the folder, with the counts and remarks of all files added up.
    """
    whole_number(jobs, "jobs", 1)
    check_backend(backend)
    folder, out = Path(folder), Path(out)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; a single file is predicted by predict_table of the model.")

    def each(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        if backend == "processes" and jobs == 1:
            return one_after_the_other(function, tasks)
        return on_backend(backend, jobs, function, tasks)

    require_apart(out, labelled)
    asked = Asked(tuple(names_of(keep, "keep")), adapt or force, force, checked_level(level))
    model, learned = with_labels(model, labelled, folder, asked)
    with leaving_no_empty_folder(out):
        try:
            # As absolute paths: a process elsewhere has another working folder.
            predictions = folder_prediction.predict_folder(
                model, folder.absolute(), out.absolute(), asked, reading=reading, each=each
            )
        except KeyboardInterrupt:  # which ends processes wherever they are
            folder_prediction.sweep_unfinished(folder, out)
            raise
    predictions.report.learned = learned
    return replace(predictions, path=out)


def kept_predictions(table: Path, out: Path, *, file_by_file: bool) -> str:
    """What there is of predictions that Ctrl-C ended, and how to go on, in a sentence."""
    if not file_by_file:
        kept = f"{out} is as it was" if out.exists() else "Nothing was written"
        return f"{kept}: the same command begins again."
    done, files = folder_prediction.files_done(table, out)
    kept = f"{out} keeps {done} of {count(files, 'file')}" if done else "Nothing was written"
    return f"{kept}: the same command {'does the others' if done else 'begins again'}."


@dataclass(frozen=True)
class FunctionWork:
    """One function for every task.

    Parameters
    ----------
    function : callable
        It can be pickled.
    luggage : Luggage, optional
        The versions that other machines must have.
    """

    function: Callable[[Any], Any]
    luggage: Luggage | None = None

    def check_local(self) -> None:
        """Nothing can be wrong."""

    def travelling(self, *, with_files: bool) -> FunctionWork:
        """For other machines, which must have the same versions; the files of both folders lie where all see them."""
        return replace(self, luggage=pack((), None))

    def begin(self) -> None:
        """Refuse other versions."""
        if self.luggage is not None:
            self.luggage.unpack()

    def compute(self, tasks: list[Any]) -> list[Any]:
        """The function of each task, or its failure."""
        return [self._attempt(task) for task in tasks]

    def _attempt(self, task: Any) -> Any:
        try:
            return self.function(task)
        except Exception as error:
            return Failure.of(error)


def on_backend(
    backend: Any, jobs: int, function: Callable[[Any], Any], tasks: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """The tasks, wherever the backend computes; each with its answer, or an exception."""
    waiting = deque(tasks)
    with open_backend(backend, FunctionWork(function), min(jobs, len(tasks))) as place:
        while waiting or place.running:
            while waiting and place.has_idle:
                place.submit([waiting.popleft()])
            for task, answer in place.wait(_TICK):
                yield task, RuntimeError(answer.cause) if isinstance(answer, Failure) else answer
