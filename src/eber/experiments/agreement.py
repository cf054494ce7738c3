"""Where methods agree: on which rows all are right or all wrong, and who is right where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eber.runs.results import Results


@dataclass(frozen=True)
class Agreement:
    """Shares of the test rows of one seed.

    Parameters
    ----------
    all_right, all_wrong : float
        Shares of rows on which every method is right, or wrong.
    right_with_reference : mapping
        Other method to the share of rows on which it is right, among those where methods differ and the reference is
        right; NaN where there are no such rows.
    right_without_reference : mapping
        The same among rows where methods differ and the reference is wrong.
    """

    all_right: float
    all_wrong: float
    right_with_reference: Mapping[str, float]
    right_without_reference: Mapping[str, float]


def agreement(correct: Mapping[str, NDArray[np.bool_]], reference: str) -> Agreement:
    """Compare the methods row by row.

    Parameters
    ----------
    correct : mapping
        Method to whether it is right, shape (n,) each.
    reference : str
        One of the methods.
    """
    lengths = {len(right) for right in correct.values()}
    if reference not in correct or len(correct) < 2 or lengths in ({0}, set()) or len(lengths) > 1:
        raise ValueError(
            f"Agreement needs {reference!r} and another method on the same rows; got "
            f"{', '.join(f'{method} ({len(right)} rows)' for method, right in correct.items()) or 'none'}."
        )
    table = np.stack([np.asarray(right, dtype=bool) for right in correct.values()])  # (methods, n)
    all_right, all_wrong = table.all(axis=0), ~table.any(axis=0)
    differ = ~(all_right | all_wrong)
    reference_right = np.asarray(correct[reference], dtype=bool)

    def shares(rows: NDArray[np.bool_]) -> dict[str, float]:
        return {
            method: float(np.mean(right[rows])) if rows.any() else float("nan")
            for method, right in zip(correct, table, strict=True)
            if method != reference
        }

    return Agreement(
        float(all_right.mean()),
        float(all_wrong.mean()),
        shares(differ & reference_right),
        shares(differ & ~reference_right),
    )


def agreements(results: Results, setting: str) -> dict[int, Agreement]:
    """The agreement under each seed that all methods with results in a setting have finished, where it was kept which
    rows they are right on.
    """
    experiment = results.experiment
    methods = [method for method in experiment.methods if results.seeds(method, setting)]
    if experiment.reference_method not in methods or len(methods) < 2:
        return {}
    found = {}
    for seed in sorted(set.intersection(*(set(results.seeds(method, setting)) for method in methods))):
        arrays = {method: results.arrays(method, seed, setting) for method in methods}
        if all("correct" in kept for kept in arrays.values()):
            correct = {method: kept["correct"].astype(bool) for method, kept in arrays.items()}
            found[seed] = agreement(correct, experiment.reference_method)
    return found
