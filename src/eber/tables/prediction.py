"""Predictions for a table of any size: rows in, rows out, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eber.estimators import EBERClassifier
from eber.estimators.explanation import answer_columns
from eber.io.files import replacing, sole_writer
from eber.io.spreadsheet_text import escape_formulas
from eber.tables.columns import find_limits
from eber.tables.files import BATCH_ROWS, PARQUET_SUFFIXES, TableFile, open_table, unique_names
from eber.tables.frames import frame_like, is_path
from eber.tables.model_folder import TableModel
from eber.tables.predictions import PredictionReport, TablePredictions, add_counts
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.schema import require_columns
from eber.tables.training import decode
from eber.tables.unlike_training import UnlikeTraining
from eber.training import one_thread

ADAPTATION_ROWS = 50_000
"""Rows that an adaptation is estimated from; a larger file gives a random sample of so many."""

SUFFIXES = (".csv", *PARQUET_SUFFIXES)
"""Of files that predictions are written to."""
MAX_VALUES = 4_000_000
"""Of p(e|x) in a batch."""


def predict_table(
    model: TableModel,
    table: Any,
    out: str | Path | None = None,
    *,
    keep: Iterable[str] = (),
    adapt: bool = False,
    reading: Reading = NOTHING_SAID,
) -> TablePredictions:
    """Predict every row of a table; see :meth:`TableModel.predict_table`."""
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    with one_thread():
        if out is not None:
            path = Path(out)
            if is_folder_of_outputs(table, path):
                from eber.tables.folder_prediction import predict_folder  # which knows this module

                return predict_folder(model, Path(table), path, keep=keep, adapt=adapt)
            report = predict_file(model, table, path, keep=keep, adapt=adapt, reading=reading)
            return TablePredictions(None, path, report)
        report, batches = _predict_batches(model, _open(model, table, reading), keep, adapt)
        answers = pa.concat_tables(list(batches), promote_options="permissive")
    return TablePredictions(frame_like(table, answers), None, report)


def is_folder_of_outputs(table: Any, out: Path) -> bool:
    """Whether a folder of files is to be predicted file by file, into a folder."""
    return is_path(table) and Path(table).is_dir() and out.suffix not in SUFFIXES


def predict_file(
    model: TableModel,
    table: Any,
    out: Path,
    *,
    keep: tuple[str, ...] = (),
    adapt: bool = False,
    random_state: int = 0,
    reading: Reading = NOTHING_SAID,
) -> PredictionReport:
    """Predict every row of a table and write the answers to `out`, CSV or Parquet by its suffix.

    The file is written under a temporary name and renamed when it is whole. Memory does not grow with the rows.

    Parameters
    ----------
    keep : tuple of str
        Columns of the table that are copied into the answers, before them; identifiers of the fit that the table has
        are copied in any case.
    adapt : bool
        Re-estimate the mixture of environments from the table first.
    reading : Reading
        How the source is read.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f"Predictions are written as .csv or .parquet; {out.name} is neither.")
    if is_path(table) and out.resolve() == Path(table).resolve():
        raise ValueError(f"{out} is the file to be predicted; give another name for the predictions.")
    report, batches = _predict_batches(model, _open(model, table, reading), keep, adapt, random_state)
    out.parent.mkdir(parents=True, exist_ok=True)
    with sole_writer(out), replacing(out) as temporary:
        writer = None
        try:
            for answers in batches:
                if out.suffix == ".csv":
                    answers, changed = escape_formulas(answers)
                    report.formulas += changed
                if writer is None:
                    writer = _writer(temporary, out.suffix, answers.schema)
                writer.write_table(answers)
        finally:
            if writer is not None:
                writer.close()
    return report


def _open(model: TableModel, table: Any, reading: Reading) -> TableFile:
    """The table, whose values are missing where they would have been so at the fit."""
    return replace(open_table(table, reading, model.schema.missing), signs=model.schema.signs)


def _predict_batches(
    model: TableModel, file: TableFile, keep: tuple[str, ...], adapt: bool, random_state: int = 0
) -> tuple[PredictionReport, Iterator[Any]]:
    """Answers as pyarrow tables, and a report that is whole when the last of them has come.

    What does not fit the model is refused at once.
    """
    names = [feature.name for feature in model.schema.features]
    require_columns(file, names)
    require_columns(file, keep)
    copied = tuple(dict.fromkeys([*keep, *(name for name in model.schema.identifiers if name in file.names)]))
    used = {*names, *copied, model.schema.label, model.schema.environment, *model.schema.dropped}
    report = PredictionReport(ignored=tuple(name for name in file.names if name not in used))
    classifier = model.classifier
    if adapt:
        require_adaptable(model)
        sample = draw_rows(model, file, ADAPTATION_ROWS, np.random.default_rng(random_state))
        classifier = adapted(classifier, sample, file, report)

    def batches() -> Iterator[Any]:
        unlike = report.unlike = UnlikeTraining(model.preprocessing)
        for table in file.batches([*dict.fromkeys([*names, *copied])], _batch_rows(classifier)):
            X = _features(model, file, table, report, unlike)
            yield _answers(classifier, X, {name: table[name].combine_chunks() for name in copied})
            report.rows += len(X)
        if not report.rows:
            raise ValueError(f"{file.title} has columns but no rows.")
        file.require_unchanged()

    return report, batches()


def _features(
    model: TableModel, file: TableFile, table: Any, report: PredictionReport, unlike: UnlikeTraining
) -> NDArray[np.float64]:
    columns = decode(table, file, model.schema, report.rows)
    unlike.count(columns)
    add_counts(report.unseen, model.preprocessing.unseen(columns))
    numeric = [feature for feature in model.schema.features if feature.kind == "numeric"]
    limits = {f.name: find_limits(table[f.name], file.decimal_comma, f.odd_texts) for f in numeric}
    add_counts(report.limits, {name: found for name, found in limits.items() if found[0]})
    return model.preprocessing.transform(columns)


@dataclass(frozen=True)
class DrawnRows:
    """A random sample of rows: those with the largest marks, so that samples of several files make one of all.

    Parameters
    ----------
    X : array of shape (n, d)
        As the classifier takes them.
    marks : array of shape (n,)
        Drawn evenly from 0 to 1.
    """

    X: NDArray[np.float64]
    marks: NDArray[np.float64]

    def joined(self, other: DrawnRows, size: int) -> DrawnRows:
        """At most `size` rows of both, in the order of their marks, whichever came first."""
        X, marks = np.concatenate([self.X, other.X]), np.concatenate([self.marks, other.marks])
        best = np.argsort(-marks)[:size]
        return DrawnRows(X[best], marks[best])


def draw_rows(model: TableModel, file: TableFile, size: int, rng: np.random.Generator) -> DrawnRows:
    """At most `size` rows, each row of the file as likely as any other, in one pass."""
    names = [feature.name for feature in model.schema.features]
    kept, marks = np.empty((0, len(model.preprocessing.names_out))), np.empty(0)
    n_rows = 0
    for table in file.batches(names):
        X = model.preprocessing.transform(decode(table, file, model.schema, n_rows))
        n_rows += len(X)
        drawn = rng.random(len(X))
        if len(marks) == size:
            chosen = drawn > marks.min()
            X, drawn = X[chosen], drawn[chosen]
        kept, marks = np.concatenate([kept, X]), np.concatenate([marks, drawn])
        if len(marks) > size:
            best = np.argpartition(-marks, size)[:size]
            kept, marks = kept[best], marks[best]
    return DrawnRows(kept, marks)


def require_adaptable(model: TableModel) -> None:
    """Refuse a model that has no mixture of environments."""
    if not isinstance(model.classifier, EBERClassifier):
        raise ValueError(f"Only EBER can be adapted to new rows; this model is {model.card['method']}.")


def adapted(classifier: EBERClassifier, sample: DrawnRows, file: TableFile, report: PredictionReport) -> EBERClassifier:
    """The classifier with the mixture of these rows, which the report is told."""
    if not len(sample.X):
        raise ValueError(f"{file.title} has columns but no rows.")
    classifier = classifier.adapt(sample.X)
    report.adaptation = classifier.adaptation_
    weights = classifier.environment_mixture().tolist()
    report.mixture = dict(zip(map(str, classifier.environments_), weights, strict=True))
    return classifier


def _batch_rows(classifier: Any) -> int:
    """Rows at a time: fewer where there is a column for each of very many environments."""
    n_environments = len(classifier.environments_) if isinstance(classifier, EBERClassifier) else 1
    return max(min(BATCH_ROWS, MAX_VALUES // n_environments), 1)


def _answers(classifier: Any, X: NDArray[np.float64], copied: dict[str, Any]) -> Any:
    """A pyarrow table with the copied columns and everything that the model says about these rows."""
    columns = dict(_answer_columns(classifier, X))
    names, _ = unique_names([*copied, *columns])
    return pa.table([*copied.values(), *(pa.array(values) for values in columns.values())], names=list(names))


def _answer_columns(classifier: Any, X: NDArray[np.float64]) -> Iterator[tuple[str, Any]]:
    if isinstance(classifier, EBERClassifier):
        return classifier.explain(X).columns()
    return answer_columns(classifier.classes_, classifier.predict_proba(X))


def _writer(path: Path, suffix: str, schema: Any) -> Any:
    if suffix == ".csv":
        return pacsv.CSVWriter(str(path), schema)
    return pq.ParquetWriter(str(path), schema)
