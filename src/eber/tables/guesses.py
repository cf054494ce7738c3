"""Numbers that are none: codes for missing values, identifiers, dates without dashes, and codes of categories.

Each rule asks for several signs at once, since a wrong alarm costs a column. Where one gives an alarm, the user is told
what was seen and how to say otherwise.

- A *code* for missing values is one of the classic ones (-9, -99, -999, ..., 99, 999, ..., -77, -88, 777, 888, ...),
  stands in `MIN_REPEATS` rows or more, and lies apart: farther from all other values than these are from each other, or
  below zero where nothing else is but codes. There, -1, -2, -7 and -8 beside such a code are codes as well.
- An *identifier* is a column of whole numbers, more than half of them different, whose name says so (object_number,
  sample nr), or which go up evenly with the rows, or spread evenly over about as many numbers as there are rows.
- A *date* is eight digits that are a day of the calendar (20240131) in nearly all rows.
- *Few whole numbers* (ward 1, 2, 3) may be codes of categories; they are taken as numbers, and the user is asked.
"""

from __future__ import annotations

import datetime
import itertools
import re
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

MIN_ROWS = 20
"""In fewer rows, values that are all different are no sign of an identifier, and repeated ones none of a code."""
MIN_REPEATS = 3
MIN_OTHERS = 10
"""Rows with other values, two different ones at least, that a code has to lie apart from."""
MAX_FEW = 10
"""So many different whole numbers may be codes of categories."""
IDENTIFIER_SHARE = 0.5
"""A column with more different values than this share of its rows names rows, not categories."""
MIN_NUMBERED = 100
"""Rows that it takes to see an identifier in its values alone."""
NEARLY_ALL = 0.95
EXACT_DIGITS = 16
"""Whole numbers of so many digits are beyond 2**53, or nearly: not kept to the last digit."""
_CLASSIC = re.compile(r"-9|-?9{2,}|-?8{3,}|-?7{3,}|-88|-77")
_BESIDE = (-1.0, -2.0, -7.0, -8.0)
_THINGS = (
    "object",
    "record",
    "sample",
    "specimen",
    "visit",
    "encounter",
    "admission",
    "order",
    "invoice",
    "account",
    "policy",
    "ticket",
    "serial",
    "device",
    "bed",
    "event",
    "file",
    "row",
    "item",
    "batch",
    "tube",
    "plate",
    "reference",
)
"""What is numbered, beyond subjects."""


def is_code(text: str) -> bool:
    """Whether a number is one that is written for a missing value."""
    return _CLASSIC.fullmatch(text) is not None


def missing_codes(numbers: NDArray[np.float64]) -> dict[float, int]:
    """Codes for missing values in a column (n,), with the number of their rows."""
    known = numbers[~np.isnan(numbers)]
    if len(known) < MIN_ROWS:
        return {}
    values, counts = np.unique(known, return_counts=True)
    looks = np.array([is_code(f"{value:.15g}") for value in values])
    repeated = looks & (counts >= MIN_REPEATS)
    if not repeated.any():
        return {}
    low, high = 0, len(values)
    while low < high and repeated[low]:
        low += 1
    while high > low and repeated[high - 1]:
        high -= 1
    negative = values < 0
    only_codes = bool((looks | np.isin(values, _BESIDE))[negative].all() and repeated[negative].any())
    is_other = np.zeros(len(values), dtype=bool)
    is_other[low:high] = True
    is_other &= ~(negative & only_codes)
    others = values[is_other]
    if len(others) < 2 or counts[is_other].sum() < MIN_OTHERS:
        return {}
    distance = np.maximum(others[0] - values, values - others[-1])
    found = (repeated & (distance > others[-1] - others[0])) | (negative & only_codes)
    return {float(value): int(count) for value, count in zip(values[found], counts[found], strict=True)}


def say_codes(name: str, codes: dict[float, int], numbers: NDArray[np.float64]) -> str:
    """That a column has such codes, in a sentence with what to type."""
    others = numbers[~np.isnan(numbers) & ~np.isin(numbers, list(codes))]
    shown = ", ".join(f"{value:.15g} in {count} of {len(numbers)} rows" for value, count in codes.items())
    first = f"{next(iter(codes)):.15g}"
    return (
        f"Column {name!r} has {shown}, apart from its other values ({others.min():.6g} to {others.max():.6g}): taken "
        f"as missing. Where these are measurements, give --numeric {shlex.quote(name)}; where such a code stands in "
        f"other columns too, --missing {first}."
    )


def say_few(names: Sequence[str]) -> list[str]:
    """That columns hold few whole numbers, in one sentence for all of them."""
    if not names:
        return []
    shown = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    columns, hold, are = ("Column", "holds", "is") if len(names) == 1 else ("Columns", "hold", "are")
    return [
        f"{columns} {shown} {hold} few different whole numbers and {are} taken as numbers; where these are codes of "
        f"categories, give --categorical {shlex.quote(names[0])}."
    ]


def few_whole_numbers(numbers: NDArray[np.float64]) -> bool:
    """Whether a column holds three to ten different whole numbers, which may be codes of categories."""
    known = numbers[~np.isnan(numbers)]
    values = np.unique(known)
    return len(known) >= MIN_ROWS and 2 < len(values) <= MAX_FEW and bool((values == np.round(values)).all())


def are_days(numbers: NDArray[np.float64]) -> bool:
    """Whether nearly all numbers are days of the calendar, written as 20240131."""
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    within = (values >= 19000101) & (values <= 21001231)
    if counts[within].sum() < NEARLY_ALL * counts.sum() or within.sum() < 3:
        return False
    days = np.array([_is_day(value) for value in values[within]])
    return bool(counts[within][days].sum() >= NEARLY_ALL * counts.sum())


def has_padding(values: Any, counts: NDArray[np.int64]) -> bool:
    """Whether different texts are digits that were filled up with zeros (007): all of one length, or many of them."""
    if not _matches(values, r"^\d+$").all():
        return False
    padded = _matches(values, r"^0\d+$")
    lengths = pc.utf8_length(values).to_numpy()
    return bool(padded.any() and (len(set(lengths)) == 1 or counts[padded].sum() > (1 - NEARLY_ALL) * counts.sum()))


def has_long_numbers(column: Any) -> bool:
    """Whether most values are whole numbers of more digits than a floating-point number keeps."""
    if pa.types.is_integer(column.type):
        column = pc.cast(column, pa.string())
    if not pa.types.is_string(column.type):
        return False
    known = column.drop_null()
    return len(known) > 0 and bool(_matches(known, rf"^\s*[+-]?\d{{{EXACT_DIGITS},}}\s*$").mean() > 0.5)


def why_identifier(name: str, words: Sequence[str], numbers: NDArray[np.float64], subjects: Sequence[str]) -> str:
    """Why a column of numbers names rows; empty where it does not."""
    known = numbers[~np.isnan(numbers)]
    if len(known) < MIN_ROWS or not (known == np.round(known)).all():
        return ""
    distinct = len(np.unique(known))
    if distinct <= IDENTIFIER_SHARE * len(known):
        return ""
    seen = f"{distinct} different whole numbers in {len(known)} rows"
    keep = f"--numeric {shlex.quote(name)} keeps it"
    if _names_things(words, subjects):
        return f"its name and its values ({seen}) say that it is an identifier; {keep}"
    if len(known) < MIN_NUMBERED:
        return ""
    if _goes_up_evenly(known):
        return f"it looks like an identifier ({seen}, which go up evenly with the rows); {keep}"
    if _numbers_things(known):
        return (
            f"it looks like an identifier ({seen}, spread evenly over {known.min():.15g} to {known.max():.15g}); {keep}"
        )
    return ""


def _names_things(words: Sequence[str], subjects: Sequence[str]) -> bool:
    """Whether a name is "number" or the like, or has such a word behind what is numbered (no "number of samples")."""
    numbering = {"no", "nr", "num", "number", "code", "key"}
    if len(words) == 1:
        return words[0] in numbering
    things = {*_THINGS, *subjects}
    return any(first in things and second in numbering for first, second in itertools.pairwise(words))


def _goes_up_evenly(values: NDArray[np.float64]) -> bool:
    """As running numbers do, also where some are missing or stand in several rows."""
    steps = np.diff(values)
    if not ((steps >= 0).all() or (steps <= 0).all()):
        return False
    return bool(np.corrcoef(np.arange(len(values)), values)[0, 1] ** 2 > 0.999)


def _numbers_things(values: NDArray[np.float64]) -> bool:
    """Whether values are spread over 1, ..., N as by lot, with N about the number of rows."""
    low, high = values.min(), values.max()
    width = high - low + 1
    if len(values) < 10 * MIN_NUMBERED or not len(values) / 2 < width < 3 * len(values):
        return False
    return bool(stats.kstest(values, stats.uniform(low - 0.5, width).cdf).pvalue > 0.01)


def _is_day(value: float) -> bool:
    number = int(value)
    try:
        datetime.date(number // 10000, number // 100 % 100, number % 100)
    except ValueError:
        return False
    return True


def _matches(values: Any, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False), dtype=bool)
