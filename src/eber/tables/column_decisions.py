"""Deciding about every column of a table: a feature of some kind, or none, with the reason."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.columns import (
    Meaning,
    as_numbers,
    as_texts,
    find_limits,
    find_meaning,
    meaning_as_told,
    plain_column,
    say_limits,
)
from eber.tables.files import TableFile
from eber.tables.guesses import (
    EXACT_DIGITS,
    IDENTIFIER_SHARE,
    MIN_ROWS,
    are_days,
    few_whole_numbers,
    has_long_numbers,
    missing_codes,
    say_codes,
    say_few,
    why_identifier,
)
from eber.tables.readers.missing import columns_of_signs
from eber.tables.schema import CASES, IDENTIFIER_WORDS, SUBJECTS, Feature, Schema, require_columns, words_of

_INDEX_NAMES = re.compile(r"index|__index_level_\d+__|column \d+", re.IGNORECASE)
"""What a table's row numbers are called when a program wrote them; "column 3" is a column without a name. Such a
column is an identifier when its values are whole numbers that are all different."""


@dataclass(frozen=True)
class Decision:
    """What becomes of a column.

    Parameters
    ----------
    feature : Feature, optional
        What the model sees of it; None where it sees nothing.
    reason : str
        Why it sees nothing.
    names_rows : bool
        Whether the column is an identifier.
    remarks : tuple of str
    asks : bool
        Whether the user should say if its numbers are codes of categories.
    """

    feature: Feature | None = None
    reason: str = ""
    names_rows: bool = False
    remarks: tuple[str, ...] = ()
    asks: bool = False


def find_schema(
    file: TableFile,
    table: Any,
    environments: NDArray[Any],
    *,
    label: str,
    environment: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    choices: ColumnChoices = NO_CHOICES,
    positive: str = "",
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
    choices : ColumnChoices
        What the user said about their kinds.
    positive : str
        The positive one of two classes.
    """
    require_columns(file, [*drop, *(features or ()), *choices.columns, *choices.no_features])
    choices.require_sense(label, environment, drop, features)
    for name in (label, environment):
        if features is not None and name in features:
            raise ValueError(f"Column {name!r} is the label or the environment and cannot be a feature as well.")
    signs = columns_of_signs(table)
    decided: dict[str, Decision] = {}
    for name in file.names:
        if name in (label, environment, *choices.no_features):
            continue
        if name in drop:
            decided[name] = Decision(reason="left out as you asked")
        elif features is not None and name not in features:
            # Predictions are of no use to somebody who cannot tell whose they are.
            names_rows = _decide(name, table[name], file, environments).names_rows
            decided[name] = Decision(reason="not among the features you named", names_rows=names_rows)
        else:
            told = _told(name, choices)
            is_named = features is not None or bool(told)
            decided[name] = _decide(name, table[name], file, environments, told, is_named, name in signs)
    chosen = tuple(decision.feature for decision in decided.values() if decision.feature is not None)
    dropped = {name: decision.reason for name, decision in decided.items() if decision.feature is None}
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(dropped.items())[:5])
        raise ValueError(f"{file.title} has no column that could be a feature ({reasons or 'there are no others'}).")
    remarks = [remark for decision in decided.values() for remark in decision.remarks]
    remarks += say_few([name for name, decision in decided.items() if decision.asks])
    identifiers = tuple(name for name, decision in decided.items() if decision.names_rows)
    return Schema(
        label, environment, chosen, identifiers, dropped, tuple(remarks), positive=positive, missing=choices.missing
    )


def _told(name: str, choices: ColumnChoices) -> str:
    return "categorical" if name in choices.categorical else "numeric" if name in choices.numeric else ""


def _decide(
    name: str,
    column: Any,
    file: TableFile,
    environments: NDArray[Any],
    told: str = "",
    is_named: bool = False,
    signs: bool = False,
) -> Decision:
    """What becomes of one column; `told` is the kind that the user named, `is_named` whether it is to be used."""
    where = f"Column {name!r} of {file.title}"
    if told:
        meaning = meaning_as_told(column, told, file.decimal_comma, where)
    else:
        meaning = find_meaning(column, file.decimal_comma)
    numbers = np.empty(0)
    if meaning.kind == "numeric":
        numbers = as_numbers(column, file.decimal_comma, meaning.odd_texts, where)
        if not is_named and are_days(numbers):
            meaning = Meaning("date")
    remarks = [f"Check column {name!r}: {meaning.remark}."] if meaning.remark else []
    if unusable := _why_unusable(meaning):
        if is_named:
            raise ValueError(f"{where} cannot be a feature: {unusable}.")
        return Decision(reason=unusable, remarks=tuple(remarks))
    if not is_named:
        if reason := _why_constant(column):
            return Decision(reason=reason)
        if reason := _why_identifier(name, meaning, column, numbers):
            return Decision(reason=reason, names_rows=True)
        if reason := _why_environment(meaning, column, environments):
            return Decision(reason=reason, remarks=tuple(remarks))
    codes: dict[float, int] = {}
    asks = False
    if meaning.kind == "numeric":
        limits, example = find_limits(column, file.decimal_comma, meaning.odd_texts)
        remarks += [say_limits(name, limits, len(column), example)] if limits else []
        if told != "numeric":  # else every number is believed
            if codes := missing_codes(numbers):
                remarks.append(say_codes(name, codes, numbers))
            asks = few_whole_numbers(numbers[~np.isin(numbers, list(codes))])
    assert meaning.kind in ("numeric", "boolean", "ordinal", "categorical")
    feature = Feature(name, meaning.kind, meaning.odd_texts, meaning.steps, tuple(codes), signs)
    return Decision(feature, remarks=tuple(remarks), asks=asks)


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


def _why_identifier(name: str, meaning: Meaning, column: Any, numbers: NDArray[np.float64]) -> str:
    words = words_of(name)
    named = not IDENTIFIER_WORDS.isdisjoint(words)
    n = len(column) - column.null_count
    distinct = _n_distinct(column)
    if meaning.kind in ("categorical", "ordinal"):
        if n >= MIN_ROWS and distinct > IDENTIFIER_SHARE * n:
            return f"it looks like an identifier or free text ({distinct} different values in {n} rows)"
        return "its name says that it is an identifier" if named and distinct > 2 else ""
    if meaning.kind != "numeric":
        return ""
    if named and distinct > 2:
        return "its name says that it is an identifier"
    if distinct == n:
        values = _whole_numbers(column)
        if len(values) > 2 and _INDEX_NAMES.fullmatch(name):
            return "its name, or the lack of one, and its values say that it numbers the rows"
        if n >= MIN_ROWS and _count_rows(values):
            return "it numbers the rows"
    if has_long_numbers(plain_column(column)):
        return f"its whole numbers have {EXACT_DIGITS} digits or more, which identifiers have and no measurement"
    return why_identifier(name, words, numbers, (*SUBJECTS, *CASES))


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
