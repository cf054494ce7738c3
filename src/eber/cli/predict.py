"""`eber predict`: use a saved model on a file of any size."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from eber.cli.options import (
    Address,
    BackendName,
    Encoding,
    Query,
    Sheet,
    TablePath,
    backend_named,
    columns_named,
)
from eber.io.text import count, printable


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `eber fit` wrote.", show_default=False)],
    table: TablePath,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="File to write, .csv or .parquet; or, where the table is a folder, a folder that gets a file of "
            "predictions for each of its files.",
            show_default=False,
        ),
    ],
    adapt: Annotated[
        bool, typer.Option("--adapt", help="First re-estimate, from these rows, which environments they resemble.")
    ] = False,
    force_adapt: Annotated[
        bool,
        typer.Option("--force-adapt", help="Adapt also where that did not help in left-out training environments."),
    ] = False,
    labelled: Annotated[
        Path | None,
        typer.Option(
            "--labelled",
            help="Rows of the new environment with their labels, to learn slope and intercepts from; may be the table "
            "itself.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="Probability of lying between the columns low and high.")
    ] = 0.9,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Column to be copied into the output; may be repeated.", show_default=False),
    ] = None,
    sheet: Sheet = None,
    query: Query = None,
    encoding: Encoding = None,
    jobs: Annotated[int, typer.Option(min=1, help="Files at once, from a folder into a folder.")] = 1,
    backend: BackendName = "processes",
    address: Address = "",
) -> None:
    """Predict every row of a table; neither labels nor environments are needed in it.

    From a folder into a folder, file by file: what is done is not done again when the same command is given again.
    """
    from eber.exceptions import AdaptationWarning
    from eber.tables.prediction import is_folder_of_outputs
    from eber.tables.reading import Reading
    from eber.workflow.fitting import load_model
    from eber.workflow.interruption import saying_what_is_kept
    from eber.workflow.predicting import kept_predictions, predict_folder

    reading: dict[str, Any] = {"sheet": sheet, "query": query, "encoding": encoding}
    place, file_by_file = backend_named(backend, address), is_folder_of_outputs(table, out)
    if not file_by_file and (place != "processes" or jobs > 1):
        raise ValueError("--backend and --jobs are for a folder of Parquet files that is predicted into a folder.")
    with (
        saying_what_is_kept(_say, lambda: kept_predictions(table, out, file_by_file=file_by_file)),
        warnings.catch_warnings(),
    ):
        loaded = load_model(model)
        warnings.simplefilter("ignore", AdaptationWarning)  # the remarks below say it
        asked: dict[str, Any] = {
            "keep": columns_named(keep, table, reading),
            "adapt": adapt,
            "force": force_adapt,
            "labelled": labelled,
            "level": level,
        }
        if file_by_file:
            how = Reading(sheet, query, encoding)
            predictions = predict_folder(loaded, table, out, reading=how, jobs=jobs, backend=place, **asked)
        else:
            predictions = loaded.predict_table(table, out, **asked, **reading)
    for line in predictions.remarks:
        typer.echo(printable(line))
    files = f" in {count(predictions.report.files, 'file')}" if file_by_file else ""
    typer.echo(f"{out}: predictions for {count(len(predictions), 'row')}{files}.")


def _say(sentence: str) -> None:
    typer.echo(printable(sentence), err=True)
