"""Options that several commands on tables share."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eber.methods import BUILT_IN

if TYPE_CHECKING:
    from rich.console import Console

TablePath = Annotated[
    Path,
    typer.Argument(
        help="CSV, Parquet, Feather, Excel, Stata, SPSS, SQLite, DuckDB or AnnData; a folder of Parquet or CSV files; "
        "- for standard input.",
        show_default=False,
    ),
]
FILE_WIDTH = 120
"""Columns of a table where output is no terminal."""
METHODS_HELP = f"Methods, separated by commas: {', '.join(m.name for m in BUILT_IN)}, or module:Class of your own"
Label = Annotated[str, typer.Option("--label", help="Column to be predicted.", show_default=False)]
EnvironmentColumn = Annotated[
    str, typer.Option("--environment", help="Column that says where each row comes from.", show_default=False)
]
LabelUnlessPrepared = Annotated[
    str | None,
    typer.Option("--label", help="Column to be predicted; a prepared table knows it.", show_default=False),
]
EnvironmentUnlessPrepared = Annotated[
    str | None,
    typer.Option(
        "--environment",
        help="Column that says where each row comes from; a prepared table knows it.",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Column not to be used; may be repeated.", show_default=False)
]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", help="Use exactly these columns; may be repeated.", show_default=False),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", help="Column to be taken as categories; may be repeated.", show_default=False),
]
Numeric = Annotated[
    list[str] | None,
    typer.Option(
        "--numeric", help="Column to be taken as numbers, each of them believed; may be repeated.", show_default=False
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", help="Further value that counts as missing, such as -999; may be repeated.", show_default=False
    ),
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", help="Of two classes, the one that AUROC and AUPRC speak of.", show_default=False),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        help="Column that says how much each row counts, in fits and in scores; it is no feature.",
        show_default=False,
    ),
]
Sheet = Annotated[str | None, typer.Option("--sheet", help="Sheet of an Excel workbook.", show_default=False)]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        help="SQL whose answer is the table: in a database, or about a CSV or Parquet file, which it calls data.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Of CSV that is not UTF-8, such as latin-1 or utf-16.", show_default=False),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Shorter training and fixed settings, nothing is tuned: a first look.")
]

Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        min=1,
        help="Passes over the training rows of a fit; about 1500 gradient steps when not given (500 with --quick).",
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


def columns_named(given: list[str] | None, table: Path, reading: Mapping[str, str | None]) -> list[str]:
    """Column names as given; one that is no column of the table may be several, separated by commas."""
    from eber.tables.files import open_table
    from eber.tables.reading import Reading

    columns = open_table(table, Reading(**reading)).names if given else ()
    names: list[str] = []
    for text in given or ():
        names += [text] if text in columns else names_in(text)
    return names


def names_in(text: str) -> list[str]:
    """Names separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def terminal() -> Console:
    """Where tables are printed: as wide as the terminal, or as $COLUMNS says, or wide enough for a file."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH)


def typed() -> str:
    """The command as the user typed it, for the report."""
    return shlex.join(["eber", *sys.argv[1:]])
