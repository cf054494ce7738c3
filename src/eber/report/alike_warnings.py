"""Warnings for a page: those that differ in numbers alone are one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from eber.runs.results import Results

NUMBERS = r"\d[\d.e+-]*"
NUMBERS_AND_NAMES = rf"{NUMBERS}|'[^']*'"


def alike_warnings(table: pd.DataFrame, by: Sequence[str], differing: str = NUMBERS) -> list[pd.DataFrame]:
    """The rows of `warnings.csv`, in groups that a page shows by their first.

    Parameters
    ----------
    table : DataFrame
        As :attr:`eber.runs.results.Results.warnings`.
    by : sequence of str
        Columns in which the warnings of a group are the same.
    differing : str
        Regular expression: in what their messages may differ.
    """
    kind = table["message"].str.replace(differing, "#", regex=True)
    return [group for _, group in table.groupby([*by, kind], sort=False)]


def usual_warnings(results: Results, setting: str) -> list[str]:
    """A sentence for each kind of warning that more than half of a method's fits in a setting gave."""
    sentences = []
    for group in alike_warnings(results.warnings[results.warnings["setting"] == setting], ["method"]):
        method, message = group.iloc[0]["method"], group.iloc[0]["message"]
        warned, seeds = group["seed"].nunique(), len(results.seeds(method, setting))
        if 2 * warned > seeds:
            sentences.append(f"{method} warned under {warned} of {seeds} seeds, as in the first of them: {message}")
    return sentences
