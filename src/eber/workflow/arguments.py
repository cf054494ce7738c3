"""Arguments that several functions share: checked here, before anything is read, fitted or written."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from eber.compare import methods
from eber.compare.methods import Effort
from eber.runs.progress import Progress, progress_on
from eber.tables.choices import ColumnChoices
from eber.tables.files import STANDARD_INPUT
from eber.tables.frames import is_path

RESULTS = Path("results")
"""Where output goes unless a folder is named."""
FRAME_FILE = "table.parquet"
"""The rows of a frame, a workbook or a query in an output folder, for the worker processes and for going on later."""


def effort_of(quick: bool, epochs: int | None) -> Effort:
    """The effort that was asked for."""
    effort = methods.QUICK if quick else methods.THOROUGH
    return effort if epochs is None else replace(effort, passes=whole_number(epochs, "epochs", 1))


def results_folder(table: Any, quick: bool) -> Path:
    """Where the comparison of a table goes unless a folder is named: by the name of its file, a quick look apart."""
    named = is_path(table) and str(table) != STANDARD_INPUT
    name = Path(table).resolve().name.split(".")[0] if named else Path(FRAME_FILE).stem
    return RESULTS / (f"{name}-quick" if quick else name)


def names_of(given: str | Iterable[str] | None, what: str) -> list[str]:
    """Names as a list; a single one may be given as it is."""
    names = [given] if isinstance(given, str) else list(given or ())
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} takes names; {name!r} is none.")
    return names


def choices_of(
    categorical: str | Iterable[str],
    numeric: str | Iterable[str],
    missing: str | Iterable[str],
    positive: str | None,
    weight: str | None,
) -> ColumnChoices:
    """What was said about columns and classes; values may be given as numbers."""
    values = [missing] if isinstance(missing, str | int | float) else list(missing)
    return ColumnChoices(
        tuple(names_of(categorical, "categorical")),
        tuple(names_of(numeric, "numeric")),
        tuple(str(value) for value in values),
        None if positive is None else str(positive),
        weight,
    )


def whole_number(value: Any, what: str, at_least: int) -> int:
    """The value, where it is a whole number of that size."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ValueError(f"{what} must be a whole number of at least {at_least}; {value!r} is not.")
    return value


def as_progress(progress: bool | Progress) -> Progress:
    """Who is told what happens: nobody, standard error, or a listener of one's own."""
    if isinstance(progress, Progress):
        return progress
    return progress_on(sys.stderr) if progress else Progress()


def call_text(function: Callable[..., Any], first: Any, **arguments: Any) -> str:
    """The call as somebody would type it, for the report; arguments that are the defaults are left out."""
    defaults = inspect.signature(function).parameters
    given = [f"{key}={value!r}" for key, value in arguments.items() if value != defaults[key].default]
    shown = repr(str(first)) if isinstance(first, str | Path) else "table"
    return f"eber.{function.__name__}({', '.join([shown, *given])})"
