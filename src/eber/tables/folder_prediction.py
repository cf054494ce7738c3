"""Predictions for a folder of Parquet files, file by file: each output has the name of its input, in another folder.

Each file, or section of a large one, is a task of its own, which any process or machine that sees both folders can do.
Beside the outputs, ``.done/NAME.json`` says of each what it was made of; what is done, and has not changed since, is
not done again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

import eber
from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import digest_of, permissions, sole_writer, sweep_temporaries, write_atomically
from eber.tables.files import PARQUET_SUFFIXES, file_marks, open_table, require_apart
from eber.tables.model_folder import TableModel
from eber.tables.prediction import Asked, predict_file, say_intervals
from eber.tables.predictions import PredictionReport, TablePredictions
from eber.tables.readers.parquet import ParquetRows
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.schema import require_columns, require_features
from eber.tables.section_prediction import (
    Section,
    forget_sections,
    join_sections,
    predict_one_section,
    sections_of,
    sweep_sections,
)
from eber.tables.tasks import Each, all_answers, one_after_the_other
from eber.tables.unlabelled_rows import ADAPTATION_ROWS, DrawnRows, adapted, draw_rows, require_adaptable
from eber.tables.unlike_training import UnlikeTraining
from eber.training import one_thread

DONE_FOLDER = ".done"
DONE_FORMAT, DONE_VERSION = "eber-predicted-file", 1


@dataclass(frozen=True)
class FolderTask:
    """What is done with each file; it can be pickled.

    Parameters
    ----------
    model : TableModel
        Adapted, where that was asked for.
    folder, out : Path
    asked : Asked
        Without an adaptation, which the model has had.
    random_state : int
        Of the sample that an adaptation is estimated from.
    """

    model: TableModel
    folder: Path
    out: Path
    asked: Asked
    random_state: int = 0

    def draw(self, numbered: tuple[int, Path]) -> DrawnRows:
        """The sample of one file; its number, and not who draws it when, decides what is drawn."""
        number, part = numbered
        rng = np.random.default_rng([self.random_state, number])
        with one_thread():
            return draw_rows(self.model, open_table(part), ADAPTATION_ROWS, rng)

    def predict(self, task: Path | Section) -> dict[str, Any]:
        """Predict a file or a section, unless that is done; what there is to know about its rows, as plain data."""
        if isinstance(task, Section):
            done = _outputs(task.part, self.folder, self.out)[1]
            return predict_one_section(self.model, task, done, self.asked)
        out, done = _outputs(task, self.folder, self.out)
        marks, made_of = file_marks(task), self.made_of(task)
        if (counts := self.counts_before(task, made_of)) is not None:
            return {**counts, "done_before": True}
        with one_thread():
            report = predict_file(self.model, task, out, self.asked)
        if file_marks(task) != marks:  # since its digest was taken; it may be another's predictions that were written
            raise ValueError(f"{task} was changed while it was read. Give the command again when it is whole.")
        counts = report.counts_to_json()
        _write_done(out, done, made_of, counts)
        return {**counts, "done_before": False}

    def made_of(self, part: Path) -> dict[str, Any]:
        """All that the predictions of a file depend on."""
        return {
            "version": eber.__version__,
            "input": digest_of(part),
            "model": self.model.fingerprint,
            "keep": list(self.asked.keep),
            "level": self.asked.level,
        }

    def counts_before(self, part: Path, made_of: dict[str, Any]) -> dict[str, Any] | None:
        """What is known about the rows of a file whose predictions are there; None where they are not, or are old."""
        out, done = _outputs(part, self.folder, self.out)
        known = _read_done(done)
        if known and known["made_of"] == made_of and out.is_file() and digest_of(out) == known["output"]:
            counts: dict[str, Any] = known["counts"]
            return counts
        return None

    def sections(self, part: Path) -> list[Section]:
        """The sections of a large file that is not done; none of a file that is one task, or done."""
        file = open_table(part)
        ranges = [(groups, size) for groups, size in sections_of(file) if size]
        if len(ranges) < 2:
            return []
        made_of = self.made_of(part)
        if self.counts_before(part, made_of) is not None:
            return []
        starts = accumulate((size for _, size in ranges), initial=0)
        placed = enumerate(zip(ranges, starts, strict=False))
        return [Section(part, n, groups, start, made_of, file.marks) for n, ((groups, _), start) in placed]

    def join(self, part: Path, sections: Sequence[Section], found: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Make the output of a file from its sections, and the counts of the file from theirs."""
        out, done = _outputs(part, self.folder, self.out)
        join_sections(out, done, len(sections))
        report = PredictionReport(unlike=UnlikeTraining(self.model.preprocessing))
        for counts in found:
            report.add(PredictionReport.from_json(counts, self.model.preprocessing))
        counts = report.counts_to_json()
        if file_marks(part) != sections[0].marks:
            raise ValueError(f"{part} was changed while it was read. Give the command again when it is whole.")
        _write_done(out, done, sections[0].made_of, counts)
        forget_sections(done)
        return {**counts, "done_before": False}


def _outputs(part: Path, folder: Path, out: Path) -> tuple[Path, Path]:
    """Where the predictions of a file go, and what says that they are done."""
    relative = part.relative_to(folder)
    return out / relative, out / DONE_FOLDER / f"{relative}.json"


def _write_done(out: Path, done: Path, made_of: dict[str, Any], counts: dict[str, Any]) -> None:
    done.parent.mkdir(parents=True, exist_ok=True)
    content = {"made_of": made_of, "output": digest_of(out), "counts": counts}
    # It quotes values of the rows.
    write_atomically(done, encode_checksummed(content, DONE_FORMAT, DONE_VERSION), permissions(out))


def files_done(folder: Path, out: Path) -> tuple[int, int]:
    """How many files of a folder have their predictions, and how many there are."""
    outputs = [_outputs(part, folder, out) for part in open_table(folder).parts]
    return sum(predictions.is_file() and done.is_file() for predictions, done in outputs), len(outputs)


def sweep_unfinished(folder: Path, out: Path) -> None:
    """Remove what processes that were ended left of files that they had begun; those that others are at stay."""
    for part in open_table(folder).parts:
        predictions, done = _outputs(part, folder, out)
        if predictions.parent.is_dir():
            with contextlib.suppress(BlockingIOError), sole_writer(predictions):
                if done.parent.is_dir():
                    sweep_temporaries(done)
                    sweep_sections(done)


def predict_folder(
    model: TableModel,
    folder: Path,
    out: Path,
    asked: Asked = Asked(),  # noqa: B008 (frozen)
    *,
    reading: Reading = NOTHING_SAID,
    each: Each = one_after_the_other,
) -> TablePredictions:
    """Predict every Parquet file of a folder into a file of the same name in another.

    Parameters
    ----------
    asked : Asked
        As for `predict_file`; an adaptation is to the rows of all files.
    reading : Reading
        How the rows are read, to which Parquet leaves nothing to say.
    each : callable
        Who does the tasks.

    Raises
    ------
    ValueError
        Where files could not be predicted, when all others are done.
    """
    require_apart(out, folder)
    file = open_table(folder, reading)
    if file.source is None or not isinstance(file.rows, ParquetRows):  # the answer of a query, or CSV
        raise ValueError(
            f"Only Parquet files, as they are, are predicted one by one from {folder}: name one file for all "
            "predictions, .csv or .parquet."
        )
    require_features(file, model.schema)
    require_columns(file, asked.keep)
    report = PredictionReport(unlike=UnlikeTraining(model.preprocessing), intervals=say_intervals(model, asked.level))
    task = FolderTask(model, folder, out, replace(asked, adapt=False, force=False))
    if asked.adapt:
        require_adaptable(model)
        sample = _sample_of_all(task, file.parts, each)
        task = replace(task, model=adapted(model, sample, file, report, asked.force))
    _require_own(out, [_outputs(part, folder, out)[0] for part in file.parts])
    (out / DONE_FOLDER).mkdir(parents=True, exist_ok=True)
    sections = {part: task.sections(part) for part in file.parts}
    tasks = [unit for part in file.parts for unit in sections[part] or [part]]
    found = all_answers(task.predict, tasks, each, "predicted", "section" if any(sections.values()) else "file")
    for part, own in sections.items():
        if own:
            found[part] = task.join(part, own, [found[section] for section in own])
    for part in file.parts:  # in their order, whichever was done first
        report.files_done_before += found[part].pop("done_before")
        report.files += 1
        report.add(PredictionReport.from_json(found[part], model.preprocessing))
    if asked.adapt:  # whose rows have a part in the predictions of every file
        file.require_unchanged()
    report.others = _others(folder, out, file.parts)
    return TablePredictions(None, out, report)


def _require_own(out: Path, outputs: Sequence[Path]) -> None:
    """Refuse a folder that has files of such names and was never predicted into: they may be anybody's."""
    others = [path for path in outputs if path.exists()]
    if others and not (out / DONE_FOLDER).is_dir():
        raise ValueError(f"{others[0]} is there already and no prediction of an earlier command: give another folder.")


def _others(folder: Path, out: Path, parts: Sequence[Path]) -> tuple[str, ...]:
    """Files of predictions that an earlier command has made of files which are not in the folder any more."""
    done, known = out / DONE_FOLDER, {part.relative_to(folder) for part in parts}
    made = (path.relative_to(done).with_suffix("") for path in sorted(done.rglob("*.json")))
    return tuple(
        str(path) for path in made if path.suffix in PARQUET_SUFFIXES and path not in known and (out / path).is_file()
    )


def _sample_of_all(task: FolderTask, parts: Sequence[Path], each: Each) -> DrawnRows:
    sample = DrawnRows(np.empty((0, len(task.model.preprocessing.names_out))), np.empty(0))
    for drawn in all_answers(task.draw, list(enumerate(parts)), each, "predicted", "file").values():
        sample = sample.joined(drawn, ADAPTATION_ROWS)
    return sample


def _read_done(path: Path) -> dict[str, Any] | None:
    try:
        return read_checksummed(path, DONE_FORMAT, DONE_VERSION, "The file is predicted again.")
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
