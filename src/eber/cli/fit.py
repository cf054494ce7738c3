"""`eber fit`: learn from a table and save the model with all that is needed to use it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from eber.cli.options import (
    Categorical,
    Drop,
    Encoding,
    EnvironmentUnlessPrepared,
    Epochs,
    Features,
    LabelUnlessPrepared,
    Missing,
    Numeric,
    Positive,
    Query,
    Quick,
    Sheet,
    TablePath,
    Weight,
    columns_named,
    names_in,
)
from eber.io.text import count
from eber.methods import BUILT_IN

METHODS = [method.name for method in BUILT_IN if not method.package]
"""Those whose models are plain data."""


def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    label: LabelUnlessPrepared = None,
    environment: EnvironmentUnlessPrepared = None,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}, or module:Class of your own.")] = "EBER",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the fit.")] = 0,
    drop: Drop = None,
    features: Features = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    missing: Missing = None,
    positive: Positive = None,
    weight: Weight = None,
    sheet: Sheet = None,
    query: Query = None,
    encoding: Encoding = None,
    quick: Quick = False,
    epochs: Epochs = None,
    scores: Annotated[bool, typer.Option(help="Measure leave-one-environment-out scores for the model card.")] = True,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Output folder of a comparison: scores of the very same fits are taken from there. results/NAME of "
            "the table when not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Fit a model on a table and save it: classifier, preprocessing, columns and a model card."""
    from eber.workflow.fitting import fit_table

    reading = {"sheet": sheet, "query": query, "encoding": encoding}
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _say_warning
        model = fit_table(
            table,
            label=label,
            environment=environment,
            method=method,
            out=out,
            seed=seed,
            drop=columns_named(drop, table, reading),
            features=columns_named(features, table, reading) if features else None,
            categorical=columns_named(categorical, table, reading),
            numeric=columns_named(numeric, table, reading),
            missing=[value for text in missing or () for value in names_in(text)],
            positive=positive,
            weight=weight,
            **reading,
            quick=quick,
            epochs=epochs,
            scores=scores,
            results=results,
            progress=True,
        )
    data = model.card["data"]
    typer.echo(
        f"{out}: {model.card['method']} fitted on {data['rows']} rows, "
        f"{count(len(model.schema.features), 'feature')}, {count(len(data['environments']), 'environment')}. "
        f"Its model card is {out / 'card.md'}."
    )


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.secho(f"Warning: {message}", fg=typer.colors.YELLOW, err=True)
