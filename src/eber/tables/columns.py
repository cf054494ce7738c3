"""What a column means: numbers, yes or no, categories, or something that no model here can use.

The rules are the same when a model is fitted and when it is used. A column of text is

- *boolean* when all its values are true/false, yes/no, y/n or +/-, in any letter case;
- *categorical* when it holds digits that were filled up with zeros (007): such numbers are names;
- *numeric* when all its values are numbers or detection limits ("<0.5", "≥100"), which are read as the limit, or
  nearly all: up to `MAX_ODD_TEXTS` different other texts (such as "unknown") in up to `MAX_ODD_SHARE` of the rows then
  count as missing, and are remembered by name;
- *grouped* when it has numbers with thousands separators ("1,234.5"), which cannot be told from decimals safely;
- a *date* when nearly all its values look like one;
- *ordinal* when its values are steps of one of the `SCALES`, three of them at least;
- *categorical* otherwise, with a remark where most values are numbers, or numbers with a unit: somebody meant numbers.

More different limits than different numbers ("<18", "18", ">65") are groups and no measurements. A column of Parquet
that was stored as an ordered category (pandas' `Categorical(..., ordered=True)`) is ordinal too, and one that was
stored as a category without order stays categorical though all its texts are numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eber.io.text import shortened
from eber.tables.guesses import has_padding

Kind = Literal["numeric", "boolean", "ordinal", "categorical", "date", "grouped", "unusable"]

MAX_ODD_SHARE = 0.05
MAX_ODD_TEXTS = 20
BOOLEAN_WORDS = {
    "true": True,
    "yes": True,
    "y": True,
    "+": True,
    "false": False,
    "no": False,
    "n": False,
    "-": False,
}
SCALES = (
    ("none", "mild", "moderate", "severe", "critical"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("very low", "low", "medium", "high", "very high"),
    ("low", "moderate", "high"),
    ("small", "medium", "large"),
    ("i", "ii", "iii", "iv", "v"),
)
"""Words in the order of what they say, in any letter case."""
_DIGITS = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = rf"^\s*{_DIGITS}\s*$|^\s*[+-]?[iI][nN][fF](inity)?\s*$"
_LIMIT = rf"^\s*(?:[<>]=?|≤|≥)\s*({_DIGITS})\s*$"
_UNIT = rf"^\s*{_DIGITS}\s*([\pL%°].*)$"
_GROUPED = r"^\s*[+-]?\d{1,3}([.,]\d{3})+[.,]\d+\s*$|^\s*[+-]?\d{1,3}(,\d{3})+\s*$|^\s*[+-]?\d{1,3}([.,]\d{3}){2,}\s*$"
_DECIMAL_COMMA = r"^\s*[+-]?\d*,\d+\s*$"
_POINTED = r"^\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*$"
"""1.234, which may be a thousand; beside 1,5 in one column it is."""
_DATE = (
    r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4})"
    r"([ T]\d{1,2}:\d{2}.*)?\s*$|^\s*\d{1,2}:\d{2}(:\d{2})?\s*$"
)


@dataclass(frozen=True)
class Meaning:
    """What a column was found to be.

    Parameters
    ----------
    kind : str
        "numeric", "boolean", "ordinal", "categorical", "date", "grouped" or "unusable".
    odd_texts : tuple of str
        Texts in a numeric column that count as missing.
    steps : tuple of str
        Values of an ordinal column in their order, in small letters.
    remark : str
        What makes one doubt that the column is meant so, as a sentence without the column's name.
    """

    kind: Kind
    odd_texts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    remark: str = ""


def find_meaning(column: Any, decimal_comma: bool) -> Meaning:
    """Decide what a pyarrow column is."""
    if steps := _stored_order(column):
        return Meaning("ordinal", steps=steps)
    is_category = pa.types.is_dictionary(column.type)
    column = plain_column(column)
    kind = kind_of_type(column.type)
    if kind is not None:
        return Meaning(kind)
    distinct = pc.value_counts(column.drop_null()).flatten()
    values, counts = distinct[0], distinct[1].to_numpy()
    total = counts.sum()
    if total == 0:
        return Meaning("categorical")
    if pc.all(pc.is_in(_words(values), pa.array(list(BOOLEAN_WORDS)))).as_py():
        return Meaning("boolean")
    texts = _number_texts(values, decimal_comma)
    is_number, is_limit = _looks_like(texts, _NUMBER), _looks_like(texts, _LIMIT)
    if is_limit.sum() <= is_number.sum():
        is_number |= is_limit
    odd = ~is_number
    is_grouped = (odd & _looks_like(values, _GROUPED)) | _thousands(values, decimal_comma)
    if is_grouped.any() and counts[is_number | is_grouped].sum() >= (1 - MAX_ODD_SHARE) * total:
        return Meaning("grouped")
    if is_number.all() and is_category:
        return Meaning("categorical")
    if has_padding(values, counts):
        shown = shortened(values[int(np.argmax(_looks_like(values, r"^0\d+$")))].as_py())
        why = f"its numbers are filled up with zeros, such as {shown}, so they are taken as names of categories"
        return Meaning("categorical", remark=f"{why}. To have it used as numbers, give --numeric with its name")
    if is_number.any() and odd.sum() <= MAX_ODD_TEXTS and counts[odd].sum() <= MAX_ODD_SHARE * total:
        return Meaning("numeric", tuple(sorted(values.filter(pa.array(odd)).to_pylist())))
    if counts[_looks_like(values, _DATE)].sum() >= (1 - MAX_ODD_SHARE) * total:
        return Meaning("date")
    words = set(_words(values).to_pylist())
    scale = next((scale for scale in SCALES if words <= set(scale)), None)
    if scale and len(words) > 2:
        return Meaning("ordinal", steps=scale)
    return Meaning("categorical", remark=_why_numbers_were_meant(values, texts, counts, is_number))


def meaning_as_told(column: Any, kind: str, decimal_comma: bool, where: str) -> Meaning:
    """The meaning that the user has named, "categorical" or "numeric"; `where` is the column, for a refusal."""
    column = plain_column(column)
    of_type = kind_of_type(column.type)
    if of_type in ("date", "unusable"):
        return Meaning(of_type)
    if kind == "categorical":
        return Meaning("categorical")
    if of_type is not None:
        return Meaning("numeric")
    values = pc.unique(column.drop_null())
    texts = _number_texts(values, decimal_comma)
    is_number, is_limit = _looks_like(texts, _NUMBER), _looks_like(texts, _LIMIT)
    if not is_number.any():
        raise ValueError(f"{where} is said to be numeric, but none of its values is a number.")
    odd = values.filter(pa.array(~(is_number | is_limit))).to_pylist()
    return Meaning("numeric", tuple(sorted(odd)))


def find_limits(column: Any, decimal_comma: bool, odd_texts: tuple[str, ...]) -> tuple[int, str]:
    """How many values of a numeric column are detection limits that are read as the limit, and the first of them."""
    column = plain_column(column)
    if not pa.types.is_string(column.type) or not _reads_limits(odd_texts, decimal_comma):
        return 0, ""
    limits = np.flatnonzero(_looks_like(_number_texts(column, decimal_comma), _LIMIT))
    return len(limits), column[int(limits[0])].as_py().strip() if len(limits) else ""


def say_limits(name: str, limits: int, rows: int, example: str) -> str:
    """That a column has detection limits, in a sentence."""
    return (
        f"Column {name!r}: {limits} of {rows} {'row' if rows == 1 else 'rows'} {'has' if limits == 1 else 'have'} a "
        f"detection limit such as {shortened(example)}, which is read as the limit."
    )


def as_numbers(
    column: Any, decimal_comma: bool, odd_texts: tuple[str, ...], where: str, first_row: int = 0
) -> NDArray[np.float64]:
    """A column as float64 with NaN where missing; infinities count as missing, and detection limits as the limit.

    Raises
    ------
    ValueError
        For a text that is no number and not among `odd_texts`; `where` says in which file and column, and `first_row`
        how many rows came before these.
    """
    column = plain_column(column)
    if pa.types.is_string(column.type):
        texts = column
        if odd_texts:
            odd = pc.is_in(texts, pa.array(odd_texts))
            texts = pc.if_else(odd, pa.scalar(None, pa.string()), texts)
        if (grouped := _thousands(texts, decimal_comma)).any():
            row = int(np.argmax(grouped))
            raise ValueError(
                f"{where} has {shortened(texts[row].as_py())} in row {first_row + row + 1} and numbers with a decimal "
                "comma in others, so that its points are for thousands: write numbers without these."
            )
        texts = pc.utf8_trim_whitespace(_number_texts(texts, decimal_comma))
        if _reads_limits(odd_texts, decimal_comma):
            texts = pc.replace_substring_regex(texts, _LIMIT, r"\1")
        bad = np.flatnonzero(~_looks_like(texts, _NUMBER) & ~texts.is_null().to_numpy(zero_copy_only=False))
        if len(bad):
            raise ValueError(
                f"{where} holds numbers in the data of the fit, but row {first_row + bad[0] + 1} has "
                f"{shortened(column[int(bad[0])].as_py())}. Correct it, or leave it empty if the value is missing."
            )
        column = pc.cast(pc.utf8_ltrim(texts, "+"), pa.float64())
    elif kind_of_type(column.type) not in ("numeric", "boolean"):
        raise ValueError(f"{where} holds numbers in the data of the fit, but values of type {column.type} here.")
    else:
        column = _to_float(column)
    numbers: NDArray[np.float64] = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    numbers[np.isinf(numbers)] = np.nan
    return numbers


def as_booleans(column: Any, where: str, first_row: int = 0) -> NDArray[np.float64]:
    """A column of true/false, yes/no or 1/0 as float64, with NaN where missing."""
    column = plain_column(column)
    if pa.types.is_string(column.type):
        words = _words(column)
        yes = pc.is_in(words, pa.array([*(word for word, value in BOOLEAN_WORDS.items() if value), "1"]))
        no = pc.is_in(words, pa.array([*(word for word, value in BOOLEAN_WORDS.items() if not value), "0"]))
        known = pc.or_(pc.or_(yes, no), words.is_null()).to_numpy(zero_copy_only=False)
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"{where} holds true/false or yes/no in the data of the fit, but row {first_row + row + 1} has "
                f"{shortened(column[row].as_py())}."
            )
        column = pc.if_else(words.is_null(), pa.scalar(None, pa.bool_()), yes)
    elif kind_of_type(column.type) not in ("numeric", "boolean"):
        raise ValueError(
            f"{where} holds true/false or yes/no in the data of the fit, but values of type {column.type} here."
        )
    numbers: NDArray[np.float64] = np.array(_to_float(column).to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all():
        raise ValueError(f"{where} holds true/false or yes/no in the data of the fit, but other numbers here.")
    return numbers


def as_words(column: Any) -> Any:
    """A column as text in small letters, as the steps of an ordinal column are kept."""
    return _words(as_texts(column))


def as_texts(column: Any) -> Any:
    """A column as a pyarrow array of text; whole numbers are written without a decimal point, whatever their type."""
    column = plain_column(column)
    if pa.types.is_string(column.type):
        return pc.utf8_trim_whitespace(column)
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        write = _decimal_text if pa.types.is_decimal(column.type) else number_text
        values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=object)
        return pa.array([None if value is None or value != value else write(value) for value in values], pa.string())
    return pc.cast(column, pa.string())


def number_text(value: float) -> str:
    """A number as `as_texts` writes it: a whole one to its last digit, which tells two apart; zero without a sign."""
    number = float(value) + 0.0
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**63 else f"{number:.15g}"


def _decimal_text(value: Decimal) -> str:
    """All digits, without zeros at the end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain_column(column: Any) -> Any:
    """One array, with dictionaries and large or viewed strings as plain strings."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # too large for one array of text
        raise ValueError("A column of text is larger than 2 GiB; split the table into several files.")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.string())
    if pa.types.is_null(column.type):
        column = pc.cast(column, pa.string())
    return column


def _stored_order(column: Any) -> tuple[str, ...]:
    """The values of an ordered category as Parquet keeps it; none for any other column."""
    type_ = column.type
    if not (pa.types.is_dictionary(type_) and type_.ordered and kind_of_type(type_) is None):
        return ()
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    orders = {tuple(as_words(chunk.dictionary).to_pylist()) for chunk in chunks}
    # Files that disagree about the order, or steps that differ in letter case alone, leave no order to go by.
    order = orders.pop() if len(orders) == 1 else ()
    return order if len(set(order)) == len(order) else ()


def kind_of_type(type_: Any) -> Kind | None:
    """The meaning that a type settles; None for text, which has to be looked at."""
    t = pa.types
    if t.is_dictionary(type_):
        return kind_of_type(type_.value_type)
    if t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_) or t.is_null(type_):
        return None
    if t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_):
        return "numeric"
    if t.is_boolean(type_):
        return "boolean"
    return "date" if t.is_temporal(type_) else "unusable"


def _reads_limits(odd_texts: tuple[str, ...], decimal_comma: bool) -> bool:
    """Not where the fit has taken a limit for missing: all limits of a column are read alike."""
    return not _looks_like(_number_texts(pa.array(odd_texts, type=pa.string()), decimal_comma), _LIMIT).any()


def _why_numbers_were_meant(values: Any, texts: Any, counts: NDArray[np.int64], is_number: NDArray[np.bool_]) -> str:
    """What speaks for numbers in a column that is taken as text; `texts` are its values with decimal points."""
    advice = "it is taken as text. To have it used as numbers, write numbers alone"
    share = counts[is_number].sum() / counts.sum()
    if share > 0.5:
        strange = values[int(np.argmax(np.where(is_number, 0, counts)))].as_py()
        return f"{min(int(100 * share), 99)} % of its values are numbers, but {shortened(strange)} is not, so {advice}"
    with_unit = _looks_like(texts, _UNIT)
    if not with_unit.any():
        return ""
    units = pc.replace_substring_regex(texts.filter(pa.array(with_unit)), _UNIT, r"\1").to_pylist()
    rows_of: Counter[str] = Counter()
    for unit, rows in zip(units, counts[with_unit].tolist(), strict=True):
        rows_of[unit.strip()] += rows
    ((unit, size),) = rows_of.most_common(1)
    if size + counts[is_number].sum() <= counts.sum() / 2:
        return ""
    return f"most of its values are numbers with {shortened(unit)} behind them, so {advice}"


def _to_float(column: Any) -> Any:
    if pa.types.is_float16(column.type):
        column = pc.cast(column, pa.float32())
    # Integers beyond 2**53 lose digits that no model here could use.
    return pc.cast(column, pa.float64(), safe=False)


def _words(values: Any) -> Any:
    return pc.utf8_lower(pc.utf8_trim_whitespace(values))


def _thousands(values: Any, decimal_comma: bool) -> NDArray[np.bool_]:
    """Which texts are numbers with points for thousands, as others have a comma for decimals."""
    if not decimal_comma or not _looks_like(values, _DECIMAL_COMMA).any():
        return np.zeros(len(values), dtype=bool)
    return _looks_like(values, _POINTED)


def _number_texts(values: Any, decimal_comma: bool) -> Any:
    return pc.replace_substring(values, ",", ".") if decimal_comma else values


def _looks_like(values: Any, pattern: str) -> NDArray[np.bool_]:
    found = pc.fill_null(pc.match_substring_regex(values, pattern), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)
