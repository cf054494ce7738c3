"""`eber prepare`: a table larger than memory as a folder that models are fitted from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eber.cli.options import (
    Address,
    BackendName,
    Categorical,
    Drop,
    Encoding,
    EnvironmentColumn,
    Features,
    Label,
    Missing,
    Numeric,
    Positive,
    backend_named,
    columns_named,
    names_in,
)
from eber.io.text import count


def prepare(
    table: Annotated[
        Path,
        typer.Argument(help="CSV, Parquet or Feather, or a folder of Parquet or CSV files.", show_default=False),
    ],
    label: Label,
    environment: EnvironmentColumn,
    out: Annotated[Path, typer.Option("--out", help="Folder for the prepared table.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of the rows.")] = 0,
    drop: Drop = None,
    features: Features = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    missing: Missing = None,
    positive: Positive = None,
    encoding: Encoding = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Parts of the table at once.")] = 1,
    backend: BackendName = "processes",
    address: Address = "",
) -> None:
    """Prepare a table larger than memory: rows in random order on disk, from which eber fit learns."""
    from eber.workflow.preparing import prepare_table

    reading = {"sheet": None, "query": None, "encoding": encoding}
    prepared = prepare_table(
        table,
        out,
        label=label,
        environment=environment,
        seed=seed,
        drop=columns_named(drop, table, reading),
        features=columns_named(features, table, reading) if features else None,
        categorical=columns_named(categorical, table, reading),
        numeric=columns_named(numeric, table, reading),
        missing=[value for text in missing or () for value in names_in(text)],
        positive=positive,
        encoding=encoding,
        jobs=jobs,
        backend=backend_named(backend, address),
        progress=True,
    )
    typer.echo(
        f"{out}: {len(prepared)} rows, {count(len(prepared.schema.features), 'feature')}, "
        f"{count(len(prepared.environments), 'environment')}. Fit a model with: eber fit {out} --out MODEL"
    )
