"""Which columns of a table are features, of what kind, and why the others are not."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.tables.columns import Meaning, as_texts, find_limits, find_meaning, plain_column, say_limits
from eber.tables.files import TableFile

MIN_ROWS_FOR_IDENTIFIER = 20
"""In fewer rows, values that are all different are no sign of an identifier."""
IDENTIFIER_SHARE = 0.5
"""A column of text with more different values than this share of its rows names rows, not categories."""
_IDENTIFIER_WORDS = {"id", "ids", "uuid", "guid", "identifier", "mrn", "rowname", "rownames", "unnamed", "accession"}
_SUBJECTS = (
    "patient",
    "subject",
    "participant",
    "person",
    "individual",
    "donor",
    "customer",
    "client",
    "user",
    "student",
)
_CASES = ("case",)
"""Words for what a row may be of, each with a second row elsewhere; a case may also be one visit, so it comes last."""
_NUMBER_WORDS = {"no", "nr", "num", "number", "code", "key"}
_INDEX_NAMES = re.compile(r"index|__index_level_\d+__|column \d+", re.IGNORECASE)
"""What a table's row numbers are called when a program wrote them; "column 3" is a column without a name. Such a
column is an identifier when its values are whole numbers that are all different."""

FeatureKind = Literal["numeric", "boolean", "ordinal", "categorical"]


@dataclass(frozen=True)
class Feature:
    """A column that the model sees.

    Parameters
    ----------
    name : str
    kind : str
        "numeric", "boolean", "ordinal" or "categorical".
    odd_texts : tuple of str
        Texts in a numeric column that count as missing.
    steps : tuple of str
        Values of an ordinal column in their order.
    """

    name: str
    kind: FeatureKind
    odd_texts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Parameters
    ----------
    label, environment : str
        Names of those two columns.
    features : tuple of Feature
    identifiers : tuple of str
        Columns that name rows.
    dropped : mapping
        Column to the reason why it is no feature, the identifiers among them.
    remarks : tuple of str
        Sentences about values that were read in a way that their writer may not expect.
    """

    label: str
    environment: str
    features: tuple[Feature, ...]
    identifiers: tuple[str, ...]
    dropped: Mapping[str, str]
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What was decided, in sentences."""
        lines = list(self.remarks)
        lines += [f"Column {name!r} is not used: {reason}." for name, reason in self.dropped.items()]
        for feature in self.features:
            if feature.odd_texts:
                shown = ", ".join(repr(text) for text in feature.odd_texts[:5])
                lines.append(f"Column {feature.name!r} holds numbers; {shown} in it count as missing.")
            if feature.steps:
                lines.append(f"Column {feature.name!r} is taken as steps in this order: {', '.join(feature.steps)}.")
        return lines

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "label": self.label,
            "environment": self.environment,
            "features": [
                {"name": f.name, "kind": f.kind, "odd_texts": list(f.odd_texts), "steps": list(f.steps)}
                for f in self.features
            ],
            "identifiers": list(self.identifiers),
            "dropped": dict(self.dropped),
            "remarks": list(self.remarks),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Schema:
        """From plain data."""
        features = tuple(
            Feature(f["name"], f["kind"], tuple(f["odd_texts"]), tuple(f["steps"])) for f in content["features"]
        )
        identifiers = tuple(content["identifiers"])
        remarks = tuple(content.get("remarks", ()))  # the first folders of this format have none
        return cls(content["label"], content["environment"], features, identifiers, dict(content["dropped"]), remarks)


def find_schema(
    file: TableFile,
    table: Any,
    environments: NDArray[Any],
    *,
    label: str,
    environment: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> Schema:
    """Decide about every column.

    Parameters
    ----------
    file : TableFile
    table : pyarrow Table
        All its rows that have a label and an environment.
    environments : array of shape (n,)
    label, environment : str
    drop : sequence of str
        Columns that are not to be used.
    features : sequence of str, optional
        Exactly these are used, identifiers and constants too if they are named here.
    """
    require_columns(file, [*drop, *(features or ())])
    for name in (label, environment):
        if features is not None and name in features:
            raise ValueError(f"Column {name!r} is the label or the environment and cannot be a feature as well.")
    chosen: list[Feature] = []
    identifiers: list[str] = []
    dropped: dict[str, str] = {}
    remarks: list[str] = []
    for name in file.names:
        if name in (label, environment):
            continue
        if name in drop:
            dropped[name] = "left out as you asked"
            continue
        if features is not None and name not in features:
            dropped[name] = "not among the features you named"
            # Predictions are of no use to somebody who cannot tell whose they are.
            if _names_rows(name, table[name], file.decimal_comma):
                identifiers.append(name)
            continue
        meaning = find_meaning(table[name], file.decimal_comma)
        if meaning.remark:
            remarks.append(f"Check column {name!r}: {meaning.remark}.")
        unusable = _why_unusable(meaning)
        if unusable and features is not None:
            raise ValueError(f"Column {name!r} of {file.title} cannot be a feature: {unusable}.")
        reason = unusable
        if features is None and not reason:
            reason = _why_constant(table[name])
            if not reason and (reason := _why_identifier(name, meaning, table[name])):
                identifiers.append(name)
            reason = reason or _why_environment(meaning, table[name], environments)
        if reason:
            dropped[name] = reason
        else:
            assert meaning.kind in ("numeric", "boolean", "ordinal", "categorical")
            chosen.append(Feature(name, meaning.kind, meaning.odd_texts, meaning.steps))
            remarks += _limits(meaning, name, table[name], file.decimal_comma)
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(dropped.items())[:5])
        raise ValueError(f"{file.title} has no column that could be a feature ({reasons or 'there are no others'}).")
    return Schema(label, environment, tuple(chosen), tuple(identifiers), dropped, tuple(remarks))


def subject_column(schema: Schema) -> str:
    """The identifier whose name says that it names subjects (patient_id, MRN, SubjectNumber); empty without one.

    Other identifiers repeat without a subject being the same: beds, devices and free text do.
    """
    for subjects in (_SUBJECTS, _CASES):
        for name in schema.identifiers:
            if _is_about(_words(name), subjects):
                return name
    return ""


def _is_about(words: list[str], subjects: Sequence[str]) -> bool:
    """Whether a name is one of these words, or has one beside a word such as "id"; patient_bed_id is about beds."""
    naming = _IDENTIFIER_WORDS | _NUMBER_WORDS
    if "mrn" in words or (len(words) == 1 and words[0].removesuffix("id") in subjects):
        return True
    return any({a, b} & set(subjects) and {a, b} & naming for a, b in itertools.pairwise(words))


def require_columns(file: TableFile, names: Sequence[str]) -> None:
    """Refuse names that the table has not, with the nearest that it has."""
    for name in names:
        if name not in file.names:
            near = difflib.get_close_matches(name, file.names, n=1, cutoff=0.5)
            fold = [other for other in file.names if other.casefold() == name.casefold()]
            hint = f" Did you mean {(fold or near)[0]!r}?" if fold or near else ""
            shown = ", ".join(file.names[:12]) + (", ..." if len(file.names) > 12 else "")
            raise ValueError(f"{file.title} has no column {name!r}.{hint} Its columns are {shown}.")


def _limits(meaning: Meaning, name: str, column: Any, decimal_comma: bool) -> list[str]:
    if meaning.kind != "numeric":
        return []
    limits, example = find_limits(column, decimal_comma, meaning.odd_texts)
    return [say_limits(name, limits, len(column), example)] if limits else []


def _why_unusable(meaning: Meaning) -> str:
    if meaning.kind == "date":
        return "it holds dates or times; give a number instead, such as the days since an event"
    if meaning.kind == "grouped":
        return "some of its numbers have thousands separators, such as 1,234.5 or 1.234,5; write them without"
    if meaning.kind == "unusable":
        return "its values are neither numbers nor text (lists, structures or bytes)"
    return ""


def _why_constant(column: Any) -> str:
    if column.null_count == len(column):
        return "all its values are missing"
    # A single value and missing ones: whether it is missing may still say something.
    return "all its values are the same" if column.null_count == 0 and _n_distinct(column) == 1 else ""


def _names_rows(name: str, column: Any, decimal_comma: bool) -> bool:
    """Whether a column is an identifier by the rules for all columns."""
    meaning = find_meaning(column, decimal_comma)
    return not (_why_unusable(meaning) or _why_constant(column)) and bool(_why_identifier(name, meaning, column))


def _why_identifier(name: str, meaning: Meaning, column: Any) -> str:
    named = not _IDENTIFIER_WORDS.isdisjoint(_words(name))
    n = len(column) - column.null_count
    distinct = _n_distinct(column)
    if meaning.kind in ("categorical", "ordinal"):
        if n >= MIN_ROWS_FOR_IDENTIFIER and distinct > IDENTIFIER_SHARE * n:
            return f"it looks like an identifier or free text ({distinct} different values in {n} rows)"
        return "its name says that it is an identifier" if named and distinct > 2 else ""
    if meaning.kind == "numeric" and named and distinct > 2:
        return "its name says that it is an identifier"
    if meaning.kind == "numeric" and distinct == n:
        values = _whole_numbers(column)
        if len(values) > 2 and _INDEX_NAMES.fullmatch(name):
            return "its name, or the lack of one, and its values say that it numbers the rows"
        if n >= MIN_ROWS_FOR_IDENTIFIER and _count_rows(values):
            return "it numbers the rows"
    return ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+", name)]


def _whole_numbers(column: Any) -> list[int]:
    """The values as integers of any size; none where a value is not one."""
    try:
        return [int(text) for text in as_texts(column.drop_null()).to_pylist()]
    except ValueError:
        return []


def _count_rows(values: list[int]) -> bool:
    """Whether numbers go up by one from row to row, as far as rows are there."""
    rising = all(a < b for a, b in itertools.pairwise(values))
    return rising and len(values) > 0 and values[-1] - values[0] < 2 * len(values)


def _why_environment(meaning: Meaning, column: Any, environments: NDArray[Any]) -> str:
    """A column of names that never occur in two environments can say nothing in a new one."""
    if meaning.kind not in ("categorical", "ordinal") or len(np.unique(environments)) < 2:
        return ""
    texts = np.asarray(as_texts(column).to_pylist(), dtype=object)
    known = np.array([text is not None for text in texts])
    if not known.any():
        return ""
    values, index = np.unique(texts[known].astype(str), return_inverse=True)
    names, where = np.unique(environments[known], return_inverse=True)
    pairs = len(np.unique(index * len(names) + where))
    if pairs == len(values) and len(names) > 1 and len(values) <= len(known) / 2:
        return (
            "each of its values is in one environment only: it names the environment, or is written differently in each"
        )
    return ""


def _n_distinct(column: Any) -> int:
    return int(pc.count_distinct(plain_column(column), mode="only_valid").as_py())
