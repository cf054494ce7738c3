"""The column that says how much each row counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eber.io.text import count, shortened
from eber.tables.columns import as_numbers, find_meaning
from eber.tables.files import TableFile

MAX_LISTED = 5


def weigh_rows(
    rows: Any, name: str, environments: NDArray[Any], file: TableFile, numbers: NDArray[np.int64]
) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None, list[str]]:
    """The rows that count, with their environments and weights of mean one, (n,) each, and what there is to say.

    Weights that are all alike are none.

    Parameters
    ----------
    rows : pyarrow Table
    name : str
        The column.
    environments : array of shape (n,)
    numbers : array of shape (n,)
        Of the rows in the table, for refusals.
    """
    weights = read_weights(rows[name], name, environments, file, numbers)
    notes, counted = [], weights > 0
    zero = int((~counted).sum())
    if zero:
        have, are = ("has", "is") if zero == 1 else ("have", "are")
        notes.append(f"{zero} of {rows.num_rows} rows {have} a weight of zero and {are} left out.")
        rows, environments, weights = rows.filter(pa.array(counted)), environments[counted], weights[counted]
    span = f"from {weights.min():g} to {weights.max():g}"
    notes.append(f"Rows count by their weight, column {name!r}, {span}: in fits and in scores.")
    if weights.min() == weights.max():
        return rows, environments, None, notes
    # Scikit-learn's methods hold the sum of the weights against a penalty: only ratios are to matter.
    weights = weights / weights.max()  # so that no sum overflows
    return rows, environments, weights / weights.mean(), notes


def read_weights(
    column: Any, name: str, environments: NDArray[Any], file: TableFile, numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The weight of each row, (n,), from zero on.

    Raises
    ------
    ValueError
        For a column that is not of numbers; for weights that are missing, infinite or negative; and for environments in
        which no row counts.
    """
    where = f"The weight {name!r} of {file.title}"
    meaning = find_meaning(column, file.decimal_comma)
    if meaning.kind != "numeric" or meaning.odd_texts:
        odd = f", such as {shortened(meaning.odd_texts[0])}" if meaning.odd_texts else ""
        raise ValueError(f"{where} holds what is no number{odd}; a weight is a number from zero on.")
    weights = as_numbers(column, file.decimal_comma, (), where)
    for wrong, what in ((np.isnan(weights), "missing or infinite"), (weights < 0, "negative")):
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValueError(
                f"{where} is {what} in {count(int(wrong.sum()), 'row')}, first in row {numbers[first]} "
                f"({environments[first]}); a weight is a number from zero on. Fill it in, or leave such rows out."
            )
    names, index = np.unique(environments, return_inverse=True)
    empty = names[np.bincount(index, weights) == 0]
    if len(empty):
        listed = ", ".join(map(str, empty[:MAX_LISTED])) + (" and more" if len(empty) > MAX_LISTED else "")
        raise ValueError(f"{where} is zero in all rows of {listed}: leave these environments out, or weigh their rows.")
    return weights
