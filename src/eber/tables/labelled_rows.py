"""A few rows of a new environment whose labels are known, and the model that has learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.io.text import count, shortened
from eber.tables.classes import index_of_class
from eber.tables.columns import as_texts
from eber.tables.files import TableFile, open_table
from eber.tables.frames import is_path
from eber.tables.model_folder import TableModel
from eber.tables.new_environment import say_learned
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.schema import as_at_the_fit, require_features
from eber.tables.training import decode
from eber.tuning.calibration import fixed_calibration
from eber.tuning.few_labels import learn_labels, said

MAX_NAMED = 10
"""Rows and environments that are named one by one."""


@dataclass(frozen=True)
class LabelledRows:
    """Rows with a label.

    Parameters
    ----------
    X : array of shape (n, d)
        As the classifier takes them.
    y_index : array of shape (n,)
        Classes, counted as in the classifier's `classes_`.
    environments : tuple of str
        Where they come from, as far as the table says.
    remarks : tuple of str
        What was left out.
    """

    X: NDArray[np.float64]
    y_index: NDArray[np.int64]
    environments: tuple[str, ...]
    remarks: tuple[str, ...]


def adapt_to_labels(
    model: TableModel, labelled: Any, reading: Reading = NOTHING_SAID
) -> tuple[TableModel, tuple[str, ...]]:
    """The model after labels of a new environment, and what they changed in sentences.

    Parameters
    ----------
    labelled : str, Path or DataFrame
        A table with the model's columns and its label; rows without a label are left out.
    """
    file = as_at_the_fit(open_table(labelled, reading), model.schema)
    rows = read_labelled(model, file)
    classifier = model.classifier
    proba, deviations = said(classifier, rows.X)
    prior = fixed_calibration(len(classifier.classes_)) if model.calibration is None else model.calibration
    calibration, gain = learn_labels(prior, proba, rows.y_index, deviations)
    whose = f"{count(len(rows.y_index), 'labelled row')} of {_named(rows.environments) or file.name}"
    schema = model.schema
    learned = say_learned(calibration, gain, whose, schema.label, classifier.classes_, schema.positive)
    sentences = (*learned, *rows.remarks)
    card: Mapping[str, Any] = {**model.card, "remarks": [*model.card["remarks"], *sentences]}
    return replace(model, calibration=calibration, card=card), sentences


def reading_of(labelled: Any, table: Any, reading: Reading) -> Reading:
    """How the labelled rows are read: as the table where they are in it, else by the encoding alone."""
    if not is_path(labelled):
        return NOTHING_SAID
    same = is_path(table) and Path(labelled).resolve() == Path(table).resolve()
    return reading if same else Reading(encoding=reading.encoding)


def read_labelled(model: TableModel, file: TableFile) -> LabelledRows:
    """The rows of a table that have a label.

    Raises
    ------
    ValueError
        For a column that is missing, a label that the model does not know, and a table without any label.
    """
    schema = model.schema
    names = [feature.name for feature in schema.features]
    require_features(file, schema, schema.label)
    index_of = index_of_class(model.classifier.classes_)
    has_environment = schema.environment in file.names
    kept: list[NDArray[np.float64]] = []
    y_index: list[int] = []
    found: dict[str, None] = {}
    unlabelled: list[int] = []
    n_rows = 0
    for table in file.batches([schema.label, *names, *([schema.environment] if has_environment else [])]):
        labels = as_texts(table[schema.label]).to_pylist()
        rows = [i for i, label in enumerate(labels) if label is not None]
        unlabelled += [n_rows + i + 1 for i, label in enumerate(labels) if label is None]
        for i in rows:
            if (index := index_of(labels[i])) is None:
                known = ", ".join(map(str, model.classifier.classes_[:MAX_NAMED]))
                raise ValueError(
                    f"Row {n_rows + i + 1} of {file.title} has the label {shortened(labels[i])} in column "
                    f"{schema.label!r}, which the model does not know; it knows {known}."
                )
            y_index.append(index)
        X = model.preprocessing.transform(decode(table, file, schema, n_rows))
        kept.append(X[rows])
        if has_environment:
            where = as_texts(table[schema.environment]).to_pylist()
            found |= dict.fromkeys(str(where[i]) for i in rows if where[i] is not None)
        n_rows += len(labels)
    file.require_unchanged()
    if not y_index:
        raise ValueError(f"{file.title} has no row with a label in column {schema.label!r}: there is nothing to learn.")
    remarks = _say_unlabelled(unlabelled, n_rows, file.title) + _say_environments(model, tuple(found))
    return LabelledRows(np.concatenate(kept), np.array(y_index), tuple(found), tuple(remarks))


def _say_unlabelled(rows: list[int], n_rows: int, title: str) -> list[str]:
    if not rows:
        return []
    have, are, which = ("has", "is", "row") if len(rows) == 1 else ("have", "are", "rows")
    more = f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
    listed = ", ".join(map(str, rows[:MAX_NAMED])) + more
    return [
        f"{len(rows)} of {count(n_rows, 'row')} of {title} {have} no label and {are} not learned from: "
        f"{which} {listed}."
    ]


def _say_environments(model: TableModel, environments: tuple[str, ...]) -> list[str]:
    column, sentences = model.schema.environment, []
    if len(environments) > 1:
        sentences.append(
            f"The labelled rows come from {len(environments)} environments ({column}) and count as one: predict each "
            "with labels of its own where they differ."
        )
    trained = {entry["name"] for entry in model.card["data"]["environments"]}
    known = [name for name in environments if name in trained]
    if known:
        sentences.append(
            f"{_named(tuple(known))}: the model was fitted on this environment, so that labels of its training rows "
            "say nothing new."
        )
    return sentences


def _named(environments: tuple[str, ...]) -> str:
    more = f" and {len(environments) - MAX_NAMED} more" if len(environments) > MAX_NAMED else ""
    return ", ".join(environments[:MAX_NAMED]) + more
