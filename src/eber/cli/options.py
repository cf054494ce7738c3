"""Options that several commands on tables share."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from eber.methods import BUILT_IN

TablePath = Annotated[
    Path, typer.Argument(help="CSV (also gzipped), Parquet, or a folder of Parquet files.", show_default=False)
]
METHODS_HELP = f"Methods, separated by commas: {', '.join(m.name for m in BUILT_IN)}, or module:Class of your own"
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
BackendName = Annotated[
    str, typer.Option("--backend", help="Where to compute: processes of this machine, or ray (the extra eber[ray]).")
]
Address = Annotated[
    str,
    typer.Option(
        "--address", help="Of the Ray cluster; without it, Ray is started here for the run.", show_default=False
    ),
]


def backend_named(name: str, address: str) -> Any:
    """The backend as it was typed."""
    from eber.runs.backends import RayCluster

    if name == "ray":
        return RayCluster(address or None)
    if address:
        raise ValueError("--address belongs to --backend ray.")
    return name


def check_selection(quick: bool, selection: str | None) -> None:
    """Refuse two options that exclude each other, by the names that were typed."""
    if quick and selection is not None:
        raise ValueError(
            "--quick tries a single penalty weight, so --selection has nothing to choose: give one of them."
        )


def columns_named(given: list[str] | None, table: Path) -> list[str]:
    """Column names as given; one that is no column of the table may be several, separated by commas."""
    from eber.tables.files import open_table

    columns = open_table(table).names if given else ()
    names: list[str] = []
    for text in given or ():
        names += [text] if text in columns else names_in(text)
    return names


def names_in(text: str) -> list[str]:
    """Names separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def typed() -> str:
    """The command as the user typed it, for the report."""
    return shlex.join(["eber", *sys.argv[1:]])
