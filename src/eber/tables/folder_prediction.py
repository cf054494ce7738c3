"""Predictions for a folder of Parquet files, file by file: each output has the name of its input, in another folder.

Each file is a task of its own, which any process or machine that sees both folders can do. Beside the outputs,
``.done/NAME.json`` says of each what it was made of; what is done, and has not changed since, is not done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import eber
from eber.estimators import EBERClassifier
from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import write_atomically
from eber.io.text import count
from eber.tables.files import file_marks, open_table
from eber.tables.model_folder import TableModel
from eber.tables.prediction import (
    ADAPTATION_ROWS,
    DrawnRows,
    adapted,
    draw_rows,
    predict_file,
    require_adaptable,
)
from eber.tables.predictions import PredictionReport, TablePredictions
from eber.tables.schema import require_columns
from eber.tables.unlike_training import UnlikeTraining
from eber.training import one_thread

DONE_FOLDER = ".done"
DONE_FORMAT, DONE_VERSION = "eber-predicted-file", 1
MAX_LISTED = 3

Each = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[tuple[Any, Any]]]
"""Function and tasks -> each task with its answer, or the exception it ended in, in any order."""


@dataclass(frozen=True)
class FolderTask:
    """What is done with each file; it can be pickled.

    Parameters
    ----------
    model : TableModel
        Adapted, where that was asked for.
    folder, out : Path
    keep : tuple of str
    random_state : int
        Of the sample that an adaptation is estimated from.
    """

    model: TableModel
    folder: Path
    out: Path
    keep: tuple[str, ...]
    random_state: int = 0

    def draw(self, numbered: tuple[int, Path]) -> DrawnRows:
        """The sample of one file; its number, and not who draws it when, decides what is drawn."""
        number, part = numbered
        rng = np.random.default_rng([self.random_state, number])
        with one_thread():
            return draw_rows(self.model, open_table(part), ADAPTATION_ROWS, rng)

    def predict(self, part: Path) -> dict[str, Any]:
        """Predict one file, unless that is done; what there is to know about its rows, as plain data."""
        relative = part.relative_to(self.folder)
        out, done = self.out / relative, self.out / DONE_FOLDER / f"{relative}.json"
        marks = file_marks(part)
        made_of = {
            "version": eber.__version__,
            "input": _digest(part),
            "model": self.model.fingerprint,
            "keep": list(self.keep),
        }
        known = _read_done(done)
        if known and known["made_of"] == made_of and out.is_file() and _digest(out) == known["output"]:
            return {**known["counts"], "done_before": True}
        with one_thread():
            report = predict_file(self.model, part, out, keep=self.keep)
        if file_marks(part) != marks:  # since its digest was taken; it may be another's predictions that were written
            raise ValueError(f"{part} was changed while it was read. Give the command again when it is whole.")
        counts = report.counts_to_json()
        done.parent.mkdir(parents=True, exist_ok=True)
        content = {"made_of": made_of, "output": _digest(out), "counts": counts}
        write_atomically(done, encode_checksummed(content, DONE_FORMAT, DONE_VERSION))
        return {**counts, "done_before": False}


def one_after_the_other(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """All tasks in this process."""
    for task in tasks:
        try:
            yield task, function(task)
        except Exception as error:  # one file that cannot be read does not stop the others
            yield task, error


def predict_folder(
    model: TableModel,
    folder: Path,
    out: Path,
    *,
    keep: tuple[str, ...] = (),
    adapt: bool = False,
    each: Each = one_after_the_other,
) -> TablePredictions:
    """Predict every Parquet file of a folder into a file of the same name in another.

    Parameters
    ----------
    keep : tuple of str
        As for `predict_file`.
    adapt : bool
        Re-estimate the mixture of environments from the rows of all files first.
    each : callable
        Who does the tasks.

    Raises
    ------
    ValueError
        Where files could not be predicted, when all others are done.
    """
    if out.resolve() == folder.resolve() or folder.resolve() in out.resolve().parents:
        raise ValueError(f"{out} lies in the folder to be predicted; give another one for the predictions.")
    file = open_table(folder)
    require_columns(file, [feature.name for feature in model.schema.features])
    require_columns(file, keep)
    report = PredictionReport(unlike=UnlikeTraining(model.preprocessing))
    task = FolderTask(model, folder, out, keep)
    if adapt:
        require_adaptable(model)
        assert isinstance(model.classifier, EBERClassifier)
        sample = _sample_of_all(task, file.parts, each)
        task = replace(task, model=replace(model, classifier=adapted(model.classifier, sample, file, report)))
    out.mkdir(parents=True, exist_ok=True)
    found = _answers(task.predict, file.parts, each)
    for part in file.parts:  # in their order, whichever was done first
        report.files_done_before += found[part].pop("done_before")
        report.files += 1
        report.add(PredictionReport.from_json(found[part], model.preprocessing))
    return TablePredictions(None, out, report)


def _sample_of_all(task: FolderTask, parts: Sequence[Path], each: Each) -> DrawnRows:
    sample = DrawnRows(np.empty((0, len(task.model.preprocessing.names_out))), np.empty(0))
    for drawn in _answers(task.draw, list(enumerate(parts)), each).values():
        sample = sample.joined(drawn, ADAPTATION_ROWS)
    return sample


def _answers(function: Callable[[Any], Any], tasks: Sequence[Any], each: Each) -> dict[Any, Any]:
    """The answer to each task; an error that names those that have none."""
    answers = dict(each(function, tasks))
    failed = {task: answer for task, answer in answers.items() if isinstance(answer, Exception)}
    if failed:
        sentences = "; ".join(str(error).rstrip(".") for error in list(failed.values())[:MAX_LISTED])
        more = f"; and {len(failed) - MAX_LISTED} more" if len(failed) > MAX_LISTED else ""
        raise ValueError(
            f"{len(failed)} of {count(len(tasks), 'file')} could not be predicted: {sentences}{more}. The others are "
            "done; the same command does only these again."
        )
    return answers


def _read_done(path: Path) -> dict[str, Any] | None:
    try:
        return read_checksummed(path, DONE_FORMAT, DONE_VERSION, "The file is predicted again.")
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
