"""Warnings for a page: those that differ in numbers alone are one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from eber.evaluation.wording import listed
from eber.leaks.audit import LeakWarning
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
    """A sentence for each kind of warning that more than half of a method's fits in a setting gave, and which did.

    What the leak audit found is told below the scores anyway.
    """
    sentences = []
    table = results.warnings[~results.warnings["message"].str.startswith(LeakWarning.__name__)]
    for kind in alike_warnings(table[table["setting"] == setting], []):
        warned = {
            method: f"{method} ({group['seed'].nunique()} of {len(results.seeds(method, setting))} seeds)"
            for method, group in kind.groupby("method", sort=False)
            if 2 * group["seed"].nunique() > len(results.seeds(method, setting))
        }
        if warned:
            message = kind[kind["method"].isin(warned)].iloc[0]["message"]
            sentences.append(f"{listed(list(warned.values()))} warned, as in the first of them: {message}")
    return sentences
