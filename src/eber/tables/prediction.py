"""Predictions for a table of any size: rows in, rows out, a batch at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eber.estimators import EBERClassifier
from eber.estimators.explanation import answer_columns
from eber.io.files import leaving_no_empty_folder, replacing, sole_writer
from eber.io.spreadsheet_text import escape_formulas
from eber.io.text import count
from eber.tables.columns import find_limits
from eber.tables.files import BATCH_ROWS, PARQUET_SUFFIXES, TableFile, open_table, require_apart
from eber.tables.frames import frame_like, is_path
from eber.tables.model_folder import TableModel
from eber.tables.new_environment import LEVEL, interval, interval_columns, recalibrated
from eber.tables.predictions import PredictionReport, TablePredictions, add_counts
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.schema import as_at_the_fit, require_columns, require_features
from eber.tables.training import decode
from eber.tables.unlabelled_rows import ADAPTATION_ROWS, adapted, draw_rows, require_adaptable
from eber.tables.unlike_training import UnlikeTraining
from eber.training import one_thread
from eber.tuning.few_labels import deviations_of, said
from eber.tuning.recalibration import checked_level

SUFFIXES = (".csv", *PARQUET_SUFFIXES)
"""Of files that predictions are written to."""
NUMBERS_ROWS = 1 << 17
"""At a time, where nothing but numbers is read: what is looked up and checked for every batch is spread over many rows.
Texts may be long, so that fewer rows of them are read."""
SECTION_ROWS = 1_000_000
"""Of a large file that are predicted as if they were a file: another process can do them to the last bit alike."""
MAX_VALUES = 4_000_000
"""Of the columns and of p(e|x) in a batch."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a model besides its predictions.

    Parameters
    ----------
    keep : tuple of str
        Columns of the table that are copied into the answers, before them; identifiers of the fit that the table has
        are copied in any case.
    adapt : bool
        Re-estimate the mixture of environments from the table first.
    force : bool
        Also where that did not help in left-out training environments.
    level : float
        Probability with which a new environment lies between `low` and `high`.
    """

    keep: tuple[str, ...] = ()
    adapt: bool = False
    force: bool = False
    level: float = LEVEL


def predict_table(
    model: TableModel,
    table: Any,
    out: str | Path | None = None,
    *,
    keep: Iterable[str] = (),
    adapt: bool = False,
    force: bool = False,
    labelled: Any = None,
    level: float = LEVEL,
    reading: Reading = NOTHING_SAID,
) -> TablePredictions:
    """Predict every row of a table; see :meth:`TableModel.predict_table`."""
    asked = Asked((keep,) if isinstance(keep, str) else tuple(keep), adapt or force, force, checked_level(level))
    if out is not None:
        require_apart(Path(out), labelled)
    with one_thread():
        model, learned = with_labels(model, labelled, table, asked, reading)
        predictions = _predict(model, table, out, asked, reading)
    predictions.report.learned = learned
    return predictions


def _predict(model: TableModel, table: Any, out: str | Path | None, asked: Asked, reading: Reading) -> TablePredictions:
    if out is not None:
        path = Path(out)
        if is_folder_of_outputs(table, path):
            from eber.tables.folder_prediction import predict_folder  # which knows this module

            return predict_folder(model, Path(table), path, asked, reading=reading)
        return TablePredictions(None, path, predict_file(model, table, path, asked, reading=reading))
    report, batches = _predict_batches(model, _open(model, table, reading), asked)
    answers = pa.concat_tables(list(batches), promote_options="permissive")
    return TablePredictions(frame_like(table, answers), None, report)


def with_labels(
    model: TableModel, labelled: Any, table: Any, asked: Asked, reading: Reading = NOTHING_SAID
) -> tuple[TableModel, tuple[str, ...]]:
    """The model after the labelled rows, if there are any, and what they changed in sentences."""
    if labelled is None:
        return model, ()
    if asked.adapt:
        raise ValueError(
            "Labelled rows recalibrate what the model says without adapting to rows that have no label; give labelled "
            "rows or adapt, not both."
        )
    from eber.tables.labelled_rows import adapt_to_labels, reading_of  # which know models

    return adapt_to_labels(model, labelled, reading_of(labelled, table, reading))


def predict_interval(
    model: TableModel, table: Any, level: float, reading: Reading = NOTHING_SAID
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where each probability lies in a new environment; see :meth:`TableModel.predict_interval`."""
    if model.calibration is None or not model.calibration.is_measured:
        raise ValueError(
            "This model does not know how environments differ: fit it with leave-one-environment-out scores on at "
            "least three environments."
        )
    checked_level(level)
    file, report = _open(model, table, reading), PredictionReport()
    names = [feature.name for feature in model.schema.features]
    require_features(file, model.schema)
    parts = []
    with one_thread():
        for rows in file.batches(names, _batch_rows(model, names)):
            X = model.preprocessing.transform(decode(rows, file, model.schema, report.rows))
            parts.append(interval(model.calibration, *said(model.classifier, X), level))
            report.rows += len(X)
    if not report.rows:
        raise ValueError(f"{file.title} has columns but no rows.")
    file.require_unchanged()
    low, high = (np.concatenate(values) for values in zip(*parts, strict=True))
    return low, high


def is_folder_of_outputs(table: Any, out: Path) -> bool:
    """Whether a folder of files is to be predicted file by file, into a folder."""
    return is_path(table) and Path(table).is_dir() and out.suffix not in SUFFIXES


def predict_file(
    model: TableModel,
    table: Any,
    out: Path,
    asked: Asked = Asked(),  # noqa: B008 (frozen)
    *,
    random_state: int = 0,
    reading: Reading = NOTHING_SAID,
) -> PredictionReport:
    """Predict every row of a table and write the answers to `out`, CSV or Parquet by its suffix.

    The file is written under a temporary name and renamed when it is whole. Memory does not grow with the rows.

    Parameters
    ----------
    asked : Asked
    reading : Reading
        How the source is read.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f"Predictions are written as .csv or .parquet; {out.name} is neither.")
    require_apart(out, table)
    return _write_answers(*_predict_batches(model, _open(model, table, reading), asked, random_state), out)


def predict_section(model: TableModel, section: TableFile, out: Path, asked: Asked, first_row: int) -> PredictionReport:
    """Predict one of the sections of a file, of which `first_row` rows came before, as `predict_file` predicts it."""
    section = as_at_the_fit(section, model.schema)
    return _write_answers(*_predict_batches(model, section, asked, first_row=first_row), out)


def _write_answers(report: PredictionReport, batches: Iterator[Any], out: Path) -> PredictionReport:
    """Write answers under a temporary name, and give the file its own when it is whole."""
    with leaving_no_empty_folder(out.parent), only_writer(out) as temporary:
        writer = None
        try:
            for answers in batches:
                if out.suffix == ".csv":
                    answers, changed = escape_formulas(answers)
                    report.formulas += changed
                if writer is None:
                    report.written = answers.schema
                    writer = answers_writer(temporary, out.suffix, answers.schema)
                writer.write_table(answers)
        finally:
            if writer is not None:
                writer.close()
    return report


@contextlib.contextmanager
def only_writer(path: Path) -> Iterator[Path]:
    """A name to write a file to that nobody else writes, in a folder that is made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sole_writer(path), replacing(path) as temporary:
        yield temporary


def _open(model: TableModel, table: Any, reading: Reading) -> TableFile:
    return as_at_the_fit(open_table(table, reading), model.schema)


def _predict_batches(
    model: TableModel, file: TableFile, asked: Asked, random_state: int = 0, first_row: int = 0
) -> tuple[PredictionReport, Iterator[Any]]:
    """Answers as pyarrow tables, and a report that is whole when the last of them has come.

    What does not fit the model is refused at once.
    """
    names = [feature.name for feature in model.schema.features]
    require_features(file, model.schema)
    require_columns(file, asked.keep)
    copied = tuple(dict.fromkeys([*asked.keep, *(name for name in model.schema.identifiers if name in file.names)]))
    used = {*names, *copied, model.schema.label, model.schema.environment, *model.schema.dropped}
    report = PredictionReport(ignored=tuple(name for name in file.names if name not in used))
    report.intervals = say_intervals(model, asked.level)
    if asked.adapt:
        require_adaptable(model)
        sample = draw_rows(model, file, ADAPTATION_ROWS, np.random.default_rng(random_state))
        model = adapted(model, sample, file, report, asked.force)

    def batches() -> Iterator[Any]:
        unlike = report.unlike = UnlikeTraining(model.preprocessing)
        columns, rows = [*dict.fromkeys([*names, *copied])], _batch_rows(model, [*names, *copied])
        for section in file.sections(SECTION_ROWS):
            for table in section.batches(columns, rows):
                X = _features(model, file, table, report, unlike, first_row)
                yield _answers(model, X, {name: table[name].combine_chunks() for name in copied}, asked.level)
                report.rows += len(X)
        if not report.rows:
            raise ValueError(f"{file.title} has columns but no rows.")
        file.require_unchanged()

    return report, batches()


def _features(
    model: TableModel, file: TableFile, table: Any, report: PredictionReport, unlike: UnlikeTraining, first_row: int
) -> NDArray[np.float64]:
    columns = decode(table, file, model.schema, first_row + report.rows)
    unlike.count(columns)
    add_counts(report.unseen, model.preprocessing.unseen(columns))
    numeric = [feature for feature in model.schema.features if feature.kind == "numeric"]
    limits = {f.name: find_limits(table[f.name], file.decimal_comma, f.odd_texts) for f in numeric}
    add_counts(report.limits, {name: found for name, found in limits.items() if found[0]})
    return model.preprocessing.transform(columns)


def say_intervals(model: TableModel, level: float) -> str:
    """What `low` and `high` are; empty where there are none."""
    calibration, schema, K = model.calibration, model.schema, len(model.classifier.classes_)
    if calibration is None or not calibration.is_measured:
        return ""
    what = f"the probability of {schema.label} = {schema.positive}" if K == 2 else "that of the predicted class"
    seen = f" and {count(calibration.n_labels, 'label')} of this one" if calibration.n_labels else ""
    return (
        f"Columns low and high: where {what} lies in a new environment with {100 * level:g} % probability, by "
        f"{count(calibration.n_environments, 'training environment')}, each left out in turn{seen}."
    )


def _batch_rows(model: TableModel, read: Sequence[str]) -> int:
    """Rows at a time: fewer where there are many columns or texts, or a column for each of very many environments."""
    numbers = {feature.name for feature in model.schema.features if feature.kind == "numeric"}
    most = NUMBERS_ROWS if numbers.issuperset(read) else BATCH_ROWS
    n_environments = len(model.classifier.environments_) if isinstance(model.classifier, EBERClassifier) else 1
    return max(min(most, MAX_VALUES // max(n_environments, len(read))), 1)


def _answers(model: TableModel, X: NDArray[np.float64], copied: dict[str, Any], level: float) -> Any:
    """A pyarrow table with the copied columns and everything that the model says about these rows."""
    columns = dict(_answer_columns(model, X, level))
    for name in copied:
        if name in columns:  # whoever reads the answers would take the one for the other
            raise ValueError(
                f"Column {name!r} of the table would be copied beside predictions that have a column of that name: "
                "rename it in the table, or do not keep it."
            )
    return pa.table({**copied, **{name: pa.array(values) for name, values in columns.items()}})


def _answer_columns(model: TableModel, X: NDArray[np.float64], level: float) -> Iterator[tuple[str, Any]]:
    classifier, calibration = model.classifier, model.calibration
    explanation = classifier.explain(X) if isinstance(classifier, EBERClassifier) else None
    proba = classifier.predict_proba(X) if explanation is None else explanation.p_y_given_x
    weighs_environments = calibration is not None and len(calibration.mean) > 1 + proba.shape[1]
    deviations = deviations_of(explanation) if explanation is not None and weighs_environments else None
    yield from answer_columns(classifier.classes_, recalibrated(calibration, proba, deviations))
    if calibration is not None and calibration.is_measured:
        positive = model.schema.positive
        yield from interval_columns(calibration, proba, deviations, level, classifier.classes_, positive)
    if explanation is not None:
        yield from explanation.further_columns()


def answers_writer(path: Path, suffix: str, schema: Any) -> Any:
    """What writes answers, table after table, to CSV or Parquet by the suffix."""
    if suffix == ".csv":
        return pacsv.CSVWriter(str(path), schema)
    # Probabilities hardly ever repeat: a dictionary of them takes four times as long to write, and more room.
    repeating = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return pq.ParquetWriter(str(path), schema, use_dictionary=repeating)
