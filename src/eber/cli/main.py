"""The application: its commands, and one place where errors become sentences."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import signal
import sys
from typing import Annotated, NoReturn

import typer

import eber
from eber.cli.claims import claims
from eber.cli.compare import compare
from eber.cli.data import data
from eber.cli.example import example
from eber.cli.fit import fit
from eber.cli.predict import predict
from eber.cli.prepare import prepare
from eber.cli.report import report
from eber.cli.reproduce import reproduce
from eber.io.text import printable

app = typer.Typer(
    help="Prediction in environments nobody has seen yet: EBER, its baselines, and the paper's experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its help has tables whose columns are cut where a terminal is narrow
)
# Short enough for a list of commands in 60 columns, where longer ones would be cut.
for command, short_help in (
    (compare, "Find the best method for a table."),
    (fit, "Fit a model on a table and save it."),
    (predict, "Predict the rows of a table."),
    (prepare, "Prepare a table larger than memory."),
    (report, "Write the page of results again."),
    (example, "Write a table to try the commands on."),
    (reproduce, "Run an experiment of the paper."),
    (claims, "Say which of the paper's claims hold."),
):
    app.command(short_help=short_help)(command)
app.add_typer(data, name="data")

STANDS_ON = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
"""Packages whose versions decide over figures; what a report of a mistake needs."""
EXPECTED_ERRORS = (ValueError, OSError, ArithmeticError, ImportError, MemoryError)
"""What bad input, a full disk or a missing extra looks like. Anything else is our fault and keeps its traceback."""


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"eber {eber.__version__}")
        installed = (f"{name} {importlib.metadata.version(name)}" for name in STANDS_ON)
        typer.echo(", ".join([f"Python {platform.python_version()}", *installed]))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the versions of eber and its foundations."
        ),
    ] = False,
) -> None:
    """Options before any command."""


def main() -> None:
    """Run the command line; bad input ends in one clear sentence and status 2, not in a traceback."""
    before = signal.signal(signal.SIGTERM, _end)
    try:
        _require_working_directory()
        app()
    except EXPECTED_ERRORS as error:
        typer.secho(f"eber: {printable(_sentence(error))}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_working_directory() -> None:
    """Libraries end the process in ways of their own where there is none."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise FileNotFoundError(
            "The working directory has been removed: change to another one and give the command again."
        ) from error


def _end(number: int, frame: object) -> NoReturn:
    """End as after any error: temporary files are removed, locks released, workers stopped."""
    sys.exit(128 + number)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}. Put that right and give the same command again."
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error or 'an array does not fit'}): use fewer rows or jobs."
    return str(error)
