"""A table to learn from: features by kind, labels, environments, and what was said about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.io.text import shortened
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.classes import choose_positive, ordered_classes, say_unknown
from eber.tables.column_decisions import find_schema
from eber.tables.columns import as_booleans, as_numbers, as_texts, as_words, find_meaning
from eber.tables.files import TableFile, open_table
from eber.tables.reading import Reading
from eber.tables.schema import Schema, require_columns, subject_column
from eber.tables.weights import weigh_rows

MAX_CLASSES = 50
MAX_LISTED = 10
"""Environments that are listed with their rows, the largest first."""


@dataclass(frozen=True)
class FeatureColumns:
    """Feature columns with their kinds settled: float64 arrays with NaN, or pyarrow text arrays with nulls.

    Parameters
    ----------
    values : mapping
        Name of a feature to its column.
    n_rows : int
    """

    values: Mapping[str, Any]
    n_rows: int

    def select(self, rows: NDArray[np.int64]) -> FeatureColumns:
        """The rows of that index."""
        index = pa.array(rows)
        picked = {
            name: column[rows] if isinstance(column, np.ndarray) else column.take(index)
            for name, column in self.values.items()
        }
        return FeatureColumns(picked, len(rows))


@dataclass(frozen=True)
class TrainingTable:
    """Rows with a label and an environment.

    Parameters
    ----------
    name : str
        Of the file, or of the frame's type.
    schema : Schema
    columns : FeatureColumns
    y : array of shape (n,)
        Labels: whole numbers, booleans or text, as the file has them.
    environments : array of shape (n,)
        Names, text.
    identifiers : array of shape (n,), optional
        The subject of each row, where a column says so by its name and its values are not all different.
    notes : tuple of str
        What was decided about the file, its columns and its rows, in sentences.
    subject : str
        The column of `identifiers`; empty where none names subjects.
    why_positive : str
        Why one of two classes is the positive one, where that was not plain.
    fingerprint : str
        SHA-256 of what the rows were read from.
    weights : array of shape (n,), optional
        How much each row counts, above zero.
    weight : str
        The column of `weights`; empty where there is none.
    """

    name: str
    schema: Schema
    columns: FeatureColumns
    y: NDArray[Any]
    environments: NDArray[Any]
    identifiers: NDArray[Any] | None
    notes: tuple[str, ...]
    subject: str = ""
    why_positive: str = ""
    fingerprint: str = ""
    weights: NDArray[np.float64] | None = None
    weight: str = ""

    def __len__(self) -> int:
        return self.columns.n_rows

    @property
    def classes(self) -> NDArray[Any]:
        """All classes in their order, (K,); of two, the positive one last."""
        return ordered_classes(self.y, self.schema.positive)

    @property
    def contents(self) -> list[str]:
        """Classes, environments and columns: a wrong column, or a wrong positive class, shows here first."""
        classes = self.classes
        listed = ", ".join(f"{label} ({(self.y == label).sum()})" for label in classes)
        positive = f"; {classes[1]} is the positive one" if len(classes) == 2 else ""
        if self.why_positive:
            positive += f" ({self.why_positive}; --positive says otherwise)"
        names, sizes = np.unique(self.environments, return_counts=True)
        order = np.argsort(-sizes, kind="stable")[:MAX_LISTED]
        largest = ", ".join(f"{names[j]} ({sizes[j]})" for j in order)
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        return [
            f"Classes of {self.schema.label!r} with their rows: {listed}{positive}.",
            f"Environments of {self.schema.environment!r} with their rows: {largest}{more}.",
            self.schema.listed,
        ]


def read_training_table(
    table: Any,
    *,
    label: str,
    environment: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    choices: ColumnChoices = NO_CHOICES,
    reading: Reading | None = None,
) -> TrainingTable:
    """Read a table to learn from. Rows without a label or an environment are left out, with a note.

    Parameters
    ----------
    table : str, Path or DataFrame
        As for :func:`eber.tables.files.open_table`.
    choices : ColumnChoices
        What the user said about kinds of columns, missing values and classes.
    reading : Reading, optional
        How the source is read.
    """
    file = open_table(table, reading, choices.missing)
    title = file.title
    require_columns(file, [label, environment])
    for name in (label, environment):
        if f"{name}.2" in file.names:
            raise ValueError(
                f"{title} has two columns called {name!r}: rename one, so that it is clear which is meant."
            )
    if label == environment:
        raise ValueError(f"Label and environment are both {label!r}; give two different columns.")
    fingerprint, rows = file.fingerprint, file.read()
    file.require_unchanged()
    notes = list(file.notes)
    for name, what in ((label, "label"), (environment, "environment")):
        missing = rows[name].null_count
        if missing == rows.num_rows:
            raise ValueError(f"Column {name!r} of {title} has no value in any row.")
        if missing:
            have, are = ("has", "is") if missing == 1 else ("have", "are")
            notes.append(f"{missing} of {rows.num_rows} rows {have} no {what} and {are} left out.")
    valid = pc.and_(pc.is_valid(rows[label]), pc.is_valid(rows[environment])).combine_chunks()
    rows = rows.filter(valid)
    if rows.num_rows == 0:
        raise ValueError(f"{title} has no row with both a label ({label!r}) and an environment ({environment!r}).")
    environments = np.array(as_texts(rows[environment]).to_pylist(), dtype=str)
    weights = None
    if choices.weight is not None:
        require_columns(file, [choices.weight])
        choices.require_sense(label, environment, drop, features)
        numbers = np.flatnonzero(valid.to_numpy(zero_copy_only=False)) + 1
        rows, environments, weights, said = weigh_rows(rows, choices.weight, environments, file, numbers)
        notes += said
    y = _labels(rows[label], title, label, file.decimal_comma)
    _check_environments(environments, title, environment)
    positive, why_positive = choose_positive(y, choices.positive, f"The label {label!r} of {title}")
    schema = find_schema(
        file,
        rows,
        environments,
        label=label,
        environment=environment,
        drop=drop,
        features=features,
        choices=choices,
        positive=positive,
    )
    subject, identifiers = _subjects(rows, schema)
    columns = decode(rows, file, schema)
    notes += [*say_unknown(y, label), *schema.notes]
    return TrainingTable(
        file.name,
        schema,
        columns,
        y,
        environments,
        identifiers,
        tuple(notes),
        subject,
        why_positive,
        fingerprint,
        weights,
        choices.weight or "",
    )


def decode(table: Any, file: TableFile, schema: Schema, first_row: int = 0) -> FeatureColumns:
    """The features of some rows, each as its kind says; `first_row` rows of the file came before them.

    Raises
    ------
    ValueError
        Where a value is not of the column's kind.
    """
    values: dict[str, Any] = {}
    for feature in schema.features:
        where = f"Column {feature.name!r} of {file.title}"
        column = table[feature.name]
        if feature.kind == "numeric":
            numbers = as_numbers(column, file.decimal_comma, feature.odd_texts, where, first_row)
            numbers[np.isin(numbers, feature.codes)] = np.nan
            values[feature.name] = numbers
        elif feature.kind == "boolean":
            values[feature.name] = as_booleans(column, where, first_row)
        elif feature.kind == "ordinal":
            values[feature.name] = as_words(column)
        else:
            values[feature.name] = as_texts(column)
    return FeatureColumns(values, table.num_rows)


def _labels(column: Any, title: str, name: str, decimal_comma: bool) -> NDArray[Any]:
    kind = find_meaning(column, decimal_comma).kind
    if kind in ("date", "unusable"):
        raise ValueError(f"The label {name!r} of {title} holds dates or values that are neither numbers nor text.")
    texts = np.array(as_texts(column).to_pylist(), dtype=str)
    classes = np.unique(texts)
    _check_spelling(classes, title, name)
    if len(classes) == 1:
        raise ValueError(
            f"All rows of {title} have the label {str(classes[0])!r}; a classifier needs at least two classes."
        )
    if len(classes) > MAX_CLASSES or (len(classes) > 2 and len(classes) > len(texts) / 2):
        raise ValueError(
            f"The label {name!r} of {title} has {len(classes)} different values in {len(texts)} rows, which are no "
            f"classes; at most {MAX_CLASSES} are possible, with several rows each. Cut a continuous "
            "label into classes first."
        )
    try:
        numbers = classes.astype(np.float64)
    except ValueError:
        return texts
    whole = np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2**53)
    distinct = len(np.unique(numbers)) == len(classes)  # "01" and "1" are two labels
    return texts.astype(np.float64).astype(np.int64) if whole.all() and distinct else texts


def _check_environments(environments: NDArray[Any], title: str, name: str) -> None:
    names = np.unique(environments)
    n = len(environments)
    if n > 2 and len(names) == n:
        raise ValueError(
            f"Column {name!r} of {title} has a different value in each of {n} rows: it names rows, not environments."
        )
    _check_spelling(names, title, name)


def _check_spelling(values: NDArray[Any], title: str, name: str) -> None:
    """Refuse values that are one to a reader and would be two classes or two environments to a model."""
    spellings: dict[str, list[str]] = {}
    for value in map(str, values):
        # A blank between digits stays: "1 11" and "11 1" are different numbers of something.
        key = re.sub(r"(?<!\d) | (?!\d)", "", " ".join(value.casefold().split()))
        spellings.setdefault(key, []).append(value)
    alike = [" and ".join(map(shortened, group)) for group in spellings.values() if len(group) > 1]
    if alike:
        raise ValueError(
            f"Column {name!r} of {title} holds {', '.join(alike[:3])}, which differ only in letter case or blanks: "
            "write them alike."
        )


def _subjects(table: Any, schema: Schema) -> tuple[str, NDArray[Any] | None]:
    """The column that names subjects, and its values; no values where all are different, as no subject is shared."""
    name = subject_column(schema)
    if not name:
        return "", None
    texts = as_texts(table[name])
    repeated = pc.count_distinct(texts).as_py() < len(texts) - texts.null_count
    return name, np.array(texts.to_pylist(), dtype=object) if repeated else None
