"""What is accepted as X, y and environments, and what is said when it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import nn

from eber.exceptions import EnvironmentWarning, FitWarning, warn_user

CHECKED_VALUES = 1 << 22
"""Values that are looked at together: a mask of a large table would be a quarter of it."""
MAX_LISTED = 5
"""A message names no more environments or classes than this."""


def plain(value: Any) -> Any:
    """A label or the name of an environment as Python shows it: 'A' and not np.str_('A')."""
    return value.item() if isinstance(value, np.generic) else value


def check_widths(name: str, widths: Sequence[Any]) -> None:
    """Refuse layer widths that are not positive integers."""
    for width in widths:
        if not isinstance(width, Integral) or width < 1:
            raise ValueError(f"{name} holds {plain(width)!r}; the width of a layer is a positive integer.")


def check_batches(module: nn.Module, n_rows: int, batch_size: int) -> None:
    """Refuse a last batch of one row where a module normalises over the batch."""
    normalises = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules())
    if normalises and (n_rows % batch_size == 1 or batch_size == 1):
        raise ValueError(
            f"With {n_rows} rows in batches of {batch_size} a batch has one row, over which the featurizer's batch "
            "normalisation cannot be taken. Choose another batch_size."
        )


KEPT_STEPS = 100
"""Different values of a column that float32 must have room for between the least and the largest of it."""


def warn_of_lost_digits(X: Any, names: Any) -> None:
    """Say which columns vary by less than float32, in which is fitted, can tell apart at their size.

    A column such as 1e8 + y, or a Julian date, is nearly constant then, and what it says is lost.
    """
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype not in (np.float64, np.int64) or len(values) == 0:
        return
    low, high = values.min(0).astype(np.float64), values.max(0).astype(np.float64)
    size = np.maximum(np.abs(low), np.abs(high))
    lost = np.flatnonzero((high > low) & (high - low < KEPT_STEPS * np.finfo(np.float32).eps * size))
    if len(lost):
        first = lost[0] if names is None else repr(str(names[lost[0]]))
        warn_user(
            f"Column {first} of X goes from {low[lost[0]]:.17g} to {high[lost[0]]:.17g}: fits are in float32, which "
            f"has fewer than {KEPT_STEPS} different values in between ({len(lost)} such "
            f"{'column' if len(lost) == 1 else 'columns'}). Subtract its mean first.",
            FitWarning,
        )


def check_finite(X: NDArray[Any], feature_names: NDArray[Any] | None) -> None:
    """Refuse NaN and infinities, naming the first row and column that has one."""
    step = max(1, CHECKED_VALUES // max(1, math.prod(X.shape[1:])))
    found, position = 0, tuple[int, ...]()
    for start in range(0, len(X), step):
        bad = ~np.isfinite(X[start : start + step])
        if not found and bad.any():
            row, *others = (int(i) for i in np.argwhere(bad)[0])
            position = (start + row, *others)
        found += int(bad.sum())
    if not found:
        return
    value = X[position]
    kind = "NaN" if np.isnan(value) else "infinity (inf) or a value too large for float32"
    if feature_names is not None and X.ndim == 2:
        place = f"column {feature_names[position[1]]!r}, row {position[0]}"
    elif X.ndim == 2:
        place = f"column {position[1]}, row {position[0]}"
    else:
        place = f"position {position}"
    raise ValueError(
        f"Input X contains {kind} in {place} ({found} such values in all). "
        "Impute or drop them first, for instance with sklearn.impute.SimpleImputer in a Pipeline."
    )


def check_columns_are_numbers(X: Any) -> None:
    """Refuse a DataFrame with a column that cannot be read as numbers, naming it."""
    if not isinstance(X, pd.DataFrame):
        return
    for column, dtype in X.dtypes.items():
        try:
            if getattr(dtype, "kind", "") in "mM":  # numpy would take their nanoseconds for numbers
                raise TypeError(f"its type is {dtype}")
            X[column].to_numpy(dtype=np.float32, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {column!r} of X is not numeric ({error}). Encode it first, for instance with "
                "sklearn.preprocessing.OneHotEncoder in a ColumnTransformer, or leave it out."
            ) from error


def categories(values: Any, name: str) -> NDArray[Any]:
    """Labels or environments as an array, refusing missing entries by row.

    What is missing is looked for before numpy makes one type of all entries, since it would turn a NaN among strings
    into the string 'nan'. Numbers and booleans that come as objects become arrays of their own type. An array that has
    one type already, in which nothing can be missing, is taken as it is, without an object for each of its entries.
    """
    if type(values) is np.ndarray and values.dtype.kind in "biuU":
        return values
    objects = np.asarray(values, dtype=object)
    missing = np.atleast_1d(pd.isna(objects))
    if missing.any():
        row = int(np.argwhere(missing)[0, 0])
        raise ValueError(f"{name} has a missing value (NaN or None) at row {row}; name it or drop that row.")
    is_text = [isinstance(value, str) for value in objects.ravel()]
    if any(is_text) and not all(is_text):
        raise ValueError(f"{name} mixes text with numbers or other types; make all entries text.")
    array = np.asarray(values)
    return np.array(objects.tolist()) if array.dtype == object and not any(is_text) else array


def index_type(size: int) -> type[np.integer[Any]]:
    """The smallest type, of those that torch indexes with, for indices of so many things."""
    return np.uint8 if size <= 1 << 8 else np.int16 if size <= 1 << 15 else np.int32 if size <= 1 << 31 else np.int64


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distinct values in their order, and the index of each entry's; in parts, without a sorted copy of them all."""
    parts = [slice(start, start + CHECKED_VALUES // 16) for start in range(0, len(values), CHECKED_VALUES // 16)]
    found = np.unique(np.concatenate([np.unique(values[part]) for part in parts]))
    index = np.empty(len(values), dtype=index_type(len(found)))
    for part in parts:
        index[part] = np.searchsorted(found, values[part])
    return found, index


def encode_environments(
    environments: Any, y: NDArray[Any], classes: NDArray[Any], method: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distinct environments, and the index of each row's.

    Without environments all rows are one environment, with a warning; so are single environments and environments
    that lack classes warned of.
    """
    if environments is None:
        warn_user(
            f"{method}.fit got no environments and treats all rows as one environment. Pass "
            "environments=... with one entry per row to use what differs between them.",
            EnvironmentWarning,
        )
        return np.array(["all"]), np.zeros(len(y), dtype=index_type(1))
    values = one_entry_per_row(environments, len(y), "environments")
    try:
        names, index = distinct(values)
    except TypeError as error:
        raise ValueError(f"environments cannot be sorted ({error}); make them text or numbers.") from error
    if len(names) == 1:
        warn_user(
            f"All rows come from environment {plain(names[0])!r}. {method} learns from differences between "
            "environments; with one it can do no better than empirical risk minimisation.",
            EnvironmentWarning,
        )
    elif lacking := _environments_that_lack_classes(names, index, y, classes):
        listed = "; ".join(lacking[:MAX_LISTED]) + (
            f"; and {len(lacking) - MAX_LISTED} more" if len(lacking) > MAX_LISTED else ""
        )
        warn_user(
            f"{listed}: what an environment says about a class that it does not have is a guess. Merge it with a "
            "similar environment or leave it out.",
            EnvironmentWarning,
        )
    return names, index


def _environments_that_lack_classes(
    names: NDArray[Any], index: NDArray[Any], y: NDArray[Any], classes: NDArray[Any]
) -> list[str]:
    """Half a sentence about each environment that does not have all classes."""
    counts = np.zeros((len(names), len(classes)), dtype=np.int64)
    for start in range(0, len(y), CHECKED_VALUES // 16):  # numpy makes eight bytes of each index
        part = slice(start, start + CHECKED_VALUES // 16)
        np.add.at(counts, (index[part], y[part]), 1)
    found = []
    for name, of_classes in zip(names, counts, strict=True):
        present, absent = np.flatnonzero(of_classes), np.flatnonzero(of_classes == 0)
        if len(present) == 1:
            found.append(f"Environment {plain(name)!r} has only class {plain(classes[present[0]])!r}")
        elif len(absent):
            missing = ", ".join(repr(plain(label)) for label in classes[absent[:MAX_LISTED]])
            more = f" and {len(absent) - MAX_LISTED} more" if len(absent) > MAX_LISTED else ""
            found.append(f"Environment {plain(name)!r} has no row of class {missing}{more}")
    return found


def one_entry_per_row(values: Any, n_rows: int, name: str) -> NDArray[Any]:
    """Labels or environments as an array of shape (n_rows,)."""
    array = categories(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; give a column with one entry for each of {n_rows} rows.")
    if len(array) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but {name} has {len(array)} entries.")
    return array


def index_of(values: Any, known: NDArray[Any], n_rows: int, name: str, noun: str) -> NDArray[np.int64]:
    """Index of each row's value in `known`, refusing values that the fit has not seen."""
    array = one_entry_per_row(values, n_rows, name)
    index: NDArray[np.int64] = pd.Index(known).get_indexer(pd.Index(array)).astype(np.int64)
    if (index < 0).any():
        row = int(np.argmax(index < 0))
        raise ValueError(
            f"{name} has {plain(array[row])!r} at row {row}, which is no {noun} of the fit; it knows {known.tolist()}."
        )
    return index
