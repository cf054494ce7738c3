"""The application: its commands, and one place where errors become sentences."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import eber
from eber.cli.claims import claims
from eber.cli.compare import compare
from eber.cli.data import data
from eber.cli.example import example
from eber.cli.fit import fit
from eber.cli.predict import predict
from eber.cli.report import report
from eber.cli.reproduce import reproduce

app = typer.Typer(
    help="Prediction in environments nobody has seen yet: EBER, its baselines, and the paper's experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (compare, fit, predict, report, example, reproduce, claims):
    app.command()(command)
app.add_typer(data, name="data")

EXPECTED_ERRORS = (ValueError, OSError, ArithmeticError, ImportError, MemoryError)
"""What bad input, a full disk or a missing extra looks like. Anything else is our fault and keeps its traceback."""


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"eber {eber.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options before any command."""


def main() -> None:
    """Run the command line; bad input ends in one clear sentence and status 2, not in a traceback."""
    try:
        app()
    except EXPECTED_ERRORS as error:
        typer.secho(f"eber: {_sentence(error)}", fg=typer.colors.RED, err=True)
        sys.exit(2)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}. Put that right and give the same command again."
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error or 'an array does not fit'}): use fewer rows or jobs."
    return str(error)
