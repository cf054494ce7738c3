"""A table to learn from: features by kind, labels, environments, and what was said about them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.io.text import count, cut, shortened
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.classes import as_whole_number, choose_positive, numbers_or_names, ordered_classes, say_unknown
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
        How much each row counts, above zero and one in the mean; None where all count alike.
    weight : str
        The column that weights were asked from; empty where none was.
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
    def class_counts(self) -> dict[str, dict[str, int]]:
        """Environment, in their order, to the rows of each class that it has."""
        counts = {}
        for name in np.unique(self.environments):
            labels, sizes = np.unique(self.y[self.environments == name], return_counts=True)
            counts[str(name)] = {str(label): int(size) for label, size in zip(labels, sizes, strict=True)}
        return counts

    @property
    def contents(self) -> list[str]:
        """Classes, environments and columns: a wrong column, or a wrong positive class, shows here first."""
        return say_contents(self.schema, self.classes, self.class_counts, self.why_positive)


def say_contents(
    schema: Schema, classes: NDArray[Any], class_counts: Mapping[str, Mapping[str, int]], why_positive: str
) -> list[str]:
    """Classes, the positive one of two last, environments and columns, in a sentence each."""
    of_class = Counter[str]()
    for counts in class_counts.values():
        of_class.update(counts)
    listed = ", ".join(f"{label} ({of_class[str(label)]})" for label in classes)
    positive = f"; {classes[1]} is the positive one" if len(classes) == 2 else ""
    if why_positive:
        positive += f" ({why_positive}; --positive says otherwise)"
    sizes = Counter({name: sum(counts.values()) for name, counts in class_counts.items()})
    largest = ", ".join(f"{name} ({size})" for name, size in sizes.most_common(MAX_LISTED))
    more = f" and {len(sizes) - MAX_LISTED} more" if len(sizes) > MAX_LISTED else ""
    return [
        f"Classes of {schema.label!r} with their rows: {listed}{positive}.",
        f"Environments of {schema.environment!r} with their rows: {largest}{more}.",
        schema.listed,
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
    require_label_and_environment(file, label, environment)
    fingerprint, rows = file.fingerprint, file.read()
    file.require_unchanged()
    notes = list(file.notes)
    notes += say_missing(file, rows.num_rows, {name: rows[name].null_count for name in (label, environment)})
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
    check_label(rows[label], title, label, file.decimal_comma)
    texts, index = np.unique(np.array(as_texts(rows[label]).to_pylist(), dtype=str), return_inverse=True)
    refuse_headers(int(((texts == label)[index] & (environments == environment)).sum()), title)
    y = settled_classes(texts, len(index), title, label)[index]
    check_environments(np.unique(environments), len(environments), title, environment)
    classes, counts = np.unique(y, return_counts=True)
    check_class_names(classes, np.unique(environments), title)
    positive, why_positive = choose_positive(classes, counts, choices.positive, f"The label {label!r} of {title}")
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
    notes += [*say_unknown(classes, counts, label), *schema.notes]
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


def require_label_and_environment(file: TableFile, label: str, environment: str) -> None:
    """Refuse names that are no columns, or not plainly one column each."""
    require_columns(file, [label, environment])
    for name in (label, environment):
        if f"{name}.2" in file.names:
            raise ValueError(
                f"{file.title} has two columns called {name!r}: rename one, so that it is clear which is meant."
            )
    if label == environment:
        raise ValueError(f"Label and environment are both {label!r}; give two different columns.")


def say_missing(file: TableFile, n_rows: int, missing: Mapping[str, int]) -> list[str]:
    """How many rows are left out for want of a label or an environment, columns in this order."""
    notes = []
    for (name, number), what in zip(missing.items(), ("label", "environment"), strict=True):
        if number == n_rows:
            raise ValueError(f"Column {name!r} of {file.title} has no value in any row.")
        if number:
            have, are = ("has", "is") if number == 1 else ("have", "are")
            notes.append(f"{number} of {n_rows} rows {have} no {what} and {are} left out.")
    return notes


def refuse_headers(n_rows: int, title: str) -> None:
    """Refuse a table in which so many rows call label and environment as their columns are called."""
    if n_rows:
        raise ValueError(
            f"{title} has its header again in {count(n_rows, 'row')}, as files have that were put one behind the "
            "other: remove the headers between them."
        )


def check_label(column: Any, title: str, name: str, decimal_comma: bool) -> None:
    """Refuse a column that cannot be a label, whatever its values."""
    if find_meaning(column, decimal_comma).kind in ("date", "unusable"):
        raise ValueError(f"The label {name!r} of {title} holds dates or values that are neither numbers nor text.")


def settled_classes(classes: NDArray[Any], n_rows: int, title: str, name: str) -> NDArray[Any]:
    """The different texts of a label as the classes they are: whole numbers where all are such, else text."""
    _check_spelling(classes, title, name)
    if len(classes) == 1:
        raise ValueError(
            f"All rows of {title} have the label {str(classes[0])!r}; a classifier needs at least two classes."
        )
    if len(classes) > MAX_CLASSES or (len(classes) > 2 and len(classes) > n_rows / 2):
        raise ValueError(
            f"The label {name!r} of {title} has {len(classes)} different values in {n_rows} rows, which are no "
            f"classes; at most {MAX_CLASSES} are possible, with several rows each. Cut a continuous "
            "label into classes first."
        )
    return numbers_or_names(classes)


def check_class_names(classes: NDArray[Any], environments: NDArray[Any], title: str) -> None:
    """Refuse a class whose predictions would have the name of those of an environment."""
    for name in environments:
        if f"environment {name}" in map(str, classes):
            raise ValueError(
                f"{title} has the class {shortened(f'environment {name}')} and the environment {shortened(name)}: "
                f"predictions of both would be called p(environment {cut(name)}). Rename one of them."
            )


def check_environments(names: NDArray[Any], n_rows: int, title: str, name: str) -> None:
    """Refuse a column that names rows, and names that are one to a reader."""
    if n_rows > 2 and len(names) == n_rows:
        raise ValueError(
            f"Column {name!r} of {title} has a different value in each of {n_rows} rows: it names rows, not "
            "environments."
        )
    _check_spelling(names, title, name)


def _check_spelling(values: NDArray[Any], title: str, name: str) -> None:
    """Refuse values that are one to a reader and would be two classes or two environments to a model."""
    spellings: dict[str, list[str]] = {}
    for value in map(str, values):
        spellings.setdefault(_as_read(value), []).append(value)
    alike = [" and ".join(map(_shown, group)) for group in spellings.values() if len(group) > 1]
    if alike:
        raise ValueError(
            f"Column {name!r} of {title} holds {', '.join(alike[:3])}, which differ only in letter case, blanks or "
            "how a letter or a number is written: write them alike."
        )


def _as_read(value: str) -> str:
    """What a reader takes in of a name: no signs without width, ü from one character or two, 1.0 as 1."""
    visible = "".join(c for c in unicodedata.normalize("NFC", value) if unicodedata.category(c) != "Cf")
    # A blank between digits stays: "1 11" and "11 1" are different numbers of something.
    return as_whole_number(re.sub(r"(?<!\d) | (?!\d)", "", " ".join(visible.casefold().split())))


def _shown(value: str) -> str:
    """With codes for its letters where these alone tell it from a name that looks the same."""
    return shortened(value) if unicodedata.is_normalized("NFC", value) else cut(ascii(value))


def _subjects(table: Any, schema: Schema) -> tuple[str, NDArray[Any] | None]:
    """The column that names subjects, and its values; no values where all are different, as no subject is shared."""
    name = subject_column(schema)
    if not name:
        return "", None
    texts = as_texts(table[name])
    repeated = pc.count_distinct(texts).as_py() < len(texts) - texts.null_count
    return name, np.array(texts.to_pylist(), dtype=object) if repeated else None
