"""Options that several commands on tables share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eber.io.text import printable

if TYPE_CHECKING:
    from eber.compare.methods import Effort

Table = Annotated[
    Path, typer.Argument(help="CSV (also gzipped), Parquet, or a folder of Parquet files.", show_default=False)
]
Label = Annotated[str, typer.Option("--label", help="Column to be predicted.", show_default=False)]
EnvironmentColumn = Annotated[
    str, typer.Option("--environment", help="Column that says where each row comes from.", show_default=False)
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Column not to be used; may be repeated.", show_default=False)
]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", help="Use exactly these columns; may be repeated.", show_default=False),
]
Quick = Annotated[bool, typer.Option("--quick", help="Shorter training, no search of weights: a first look.")]
Selection = Annotated[
    str | None,
    typer.Option(
        "--selection",
        help="How penalty weights are chosen within the training environments: training_domain_validation (when not "
        "given), training_domain_cross_validation or leave_one_environment_out.",
        show_default=False,
    ),
]


def effort_of(quick: bool, selection: str | None) -> Effort:
    """The effort that was asked for."""
    from dataclasses import replace

    from eber.compare.methods import QUICK, THOROUGH
    from eber.model_selection import find_rule

    effort = QUICK if quick else THOROUGH
    if selection is None:
        return effort
    if not effort.searches:
        raise ValueError(
            "--quick tries a single penalty weight, so --selection has nothing to choose: give one of them."
        )
    find_rule(selection)
    return replace(effort, selection=selection)


def columns_named(given: list[str] | None, table_columns: tuple[str, ...]) -> list[str]:
    """Column names as given; one that is no column may be several, separated by commas."""
    names: list[str] = []
    for text in given or ():
        names += [text] if text in table_columns else [part.strip() for part in text.split(",") if part.strip()]
    return names


def count(number: int, noun: str) -> str:
    """1 seed, 2 seeds."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def say_notes(notes: Sequence[str]) -> None:
    """What was decided about a table, one sentence a line, on standard error."""
    for note in notes:
        typer.echo(printable(note), err=True)
