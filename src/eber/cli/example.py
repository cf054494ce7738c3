"""`eber example`: tables to try the other commands on."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from eber.io.files import replacing

NEW_HOSPITAL_FILE = "new_hospital.csv"


def example(
    file: Annotated[Path, typer.Argument(help="CSV file to write.")] = Path("hospitals.csv"),
    rows: Annotated[int, typer.Option(min=80, max=5_000_000, help="About so many patients.")] = 2600,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a synthetic but believable table: patients of eight hospitals, some of whom get sepsis.

    Beside it, new_hospital.csv has patients of a ninth hospital, of whom nobody knows yet who will.
    """
    from eber.datasets.hospitals import draw_hospitals, draw_new_hospital

    new = file.with_name(NEW_HOSPITAL_FILE)
    if file.suffix != ".csv":
        raise ValueError(f"The example is written as CSV; give a name that ends in .csv, not {file.name!r}.")
    if file == new:
        raise ValueError(f"{NEW_HOSPITAL_FILE} is what the rows of the ninth hospital are called; give another name.")
    if not file.parent.is_dir():
        raise ValueError(f"There is no folder {file.parent}.")
    for place in (file, new):
        if place.exists() and (not force or not place.is_file()):
            raise ValueError(f"{place} exists; give another name, or --force to write over it. Nothing was written.")
    table, patients = draw_hospitals(rows, seed), draw_new_hospital(random_state=seed)
    unlabelled = patients.drop(columns="sepsis")
    _write_together({file: table.to_csv(index=False), new: unlabelled.to_csv(index=False)})
    typer.echo(f"{file}: {len(table)} patients of {table['hospital'].nunique()} hospitals.")
    typer.echo(f"{new}: {len(unlabelled)} patients of a ninth, without the label. Try:")
    columns = "--label sepsis --environment hospital"
    typer.echo(f"  eber compare {file} {columns} --quick")
    typer.echo(f"  eber fit {file} {columns} --out model")
    typer.echo(f"  eber predict model {new} --out predictions.parquet --adapt")


def _write_together(contents: Mapping[Path, str]) -> None:
    """Write files of which none gets its name before all are written."""
    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(replacing(path)) for path in contents]
        for temporary, content in zip(temporaries, contents.values(), strict=True):
            temporary.write_bytes(content.encode())
