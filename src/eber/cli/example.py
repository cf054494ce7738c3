"""`eber example`: a table to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eber.io.files import write_atomically


def example(
    file: Annotated[Path, typer.Argument(help="CSV file to write.")] = Path("hospitals.csv"),
    rows: Annotated[int, typer.Option(min=80, max=5_000_000, help="About so many patients.")] = 2600,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a synthetic but believable table: patients of eight hospitals, some of whom get sepsis."""
    from eber.datasets.hospitals import draw_hospitals

    if file.suffix != ".csv":
        raise ValueError(f"The example is written as CSV; give a name that ends in .csv, not {file.name!r}.")
    if file.exists() and not force:
        raise ValueError(f"{file} exists; give another name, or --force to write over it.")
    if not file.parent.is_dir():
        raise ValueError(f"There is no folder {file.parent}.")
    table = draw_hospitals(rows, seed)
    write_atomically(file, table.to_csv(index=False))
    typer.echo(f"{file}: {len(table)} patients of {table['hospital'].nunique()} hospitals. Try:")
    typer.echo(f"  eber compare {file} --label sepsis --environment hospital --quick")
    typer.echo(f"  eber fit {file} --label sepsis --environment hospital --out model")
