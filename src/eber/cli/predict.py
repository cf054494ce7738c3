"""`eber predict`: use a saved model on a file of any size."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from eber.cli.options import Encoding, Query, Sheet, TablePath, columns_named
from eber.io.text import count, printable


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `eber fit` wrote.", show_default=False)],
    table: TablePath,
    out: Annotated[Path, typer.Option("--out", help="File to write, .csv or .parquet.", show_default=False)],
    adapt: Annotated[
        bool, typer.Option("--adapt", help="First re-estimate, from these rows, which environments they resemble.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Column to be copied into the output; may be repeated.", show_default=False),
    ] = None,
    sheet: Sheet = None,
    query: Query = None,
    encoding: Encoding = None,
) -> None:
    """Predict every row of a table; neither labels nor environments are needed in it."""
    from eber.exceptions import AdaptationWarning
    from eber.workflow.fitting import load_model

    reading = {"sheet": sheet, "query": query, "encoding": encoding}
    loaded = load_model(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)  # the remarks below say it
        kept = columns_named(keep, table, reading)
        predictions = loaded.predict_table(table, out, keep=kept, adapt=adapt, **reading)
    for line in predictions.remarks:
        typer.echo(printable(line))
    typer.echo(f"{out}: predictions for {count(len(predictions), 'row')}.")
