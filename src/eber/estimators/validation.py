"""What is accepted as X, y and environments, and what is said when it is not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from eber.exceptions import EnvironmentWarning


def check_finite(X: NDArray[Any], feature_names: NDArray[Any] | None) -> None:
    """Refuse NaN and infinities, naming the first row and column that has one."""
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    position = tuple(int(i) for i in np.argwhere(bad)[0])
    value = X[position]
    kind = "NaN" if np.isnan(value) else "infinity (inf) or a value too large for float32"
    if feature_names is not None and X.ndim == 2:
        place = f"column {feature_names[position[1]]!r}, row {position[0]}"
    elif X.ndim == 2:
        place = f"column {position[1]}, row {position[0]}"
    else:
        place = f"position {position}"
    raise ValueError(
        f"Input X contains {kind} in {place} ({int(bad.sum())} such values in all). "
        "Impute or drop them first, for instance with sklearn.impute.SimpleImputer in a Pipeline."
    )


def encode_environments(
    environments: Any, n_rows: int, y: NDArray[np.int64], classes: NDArray[Any], method: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct environments, and the index of each row's.

    Without environments all rows are one environment, with a warning; so are single environments and environments
    that have only one class warned of.
    """
    if environments is None:
        warnings.warn(
            f"{method}.fit got no environments and treats all rows as one environment. Pass "
            "environments=... with one entry per row to use what differs between them.",
            EnvironmentWarning,
            stacklevel=4,
        )
        return np.array(["all"]), np.zeros(n_rows, dtype=np.int64)
    values = column_or_1d(np.asarray(environments))
    check_consistent_length(y, values)
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(f"environments has a missing value at row {int(np.argmax(missing))}; name or drop that row.")
    try:
        names, index = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "environments mixes types that cannot be sorted (for instance numbers and strings); make them all strings."
        ) from error
    if len(names) == 1:
        warnings.warn(
            f"All rows come from environment {names[0]!r}. {method} learns from differences between environments; with "
            "one it can do no better than empirical risk minimisation.",
            EnvironmentWarning,
            stacklevel=4,
        )
    for j, name in enumerate(names):
        labels = np.unique(y[index == j])
        if len(names) > 1 and len(labels) == 1:
            warnings.warn(
                f"Environment {name!r} has only class {classes[labels[0]]!r}: what it says about other classes is a "
                "guess. Merge it with a similar environment or leave it out.",
                EnvironmentWarning,
                stacklevel=4,
            )
    return names, index.astype(np.int64)
