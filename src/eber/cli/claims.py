"""`eber claims`: which of the paper's claims hold, by the results of its experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def claims(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="What `eber reproduce all` filled, a folder for each experiment; results/all when not given.",
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            help="A folder that keeps what results said, a small file for each experiment: what FOLDER has is written "
            "there, what it lacks is taken from there.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the page there too, as Markdown.", show_default=False)] = None,
) -> None:
    """Hold every claim of the paper against results: which are confirmed, under which condition, and which not.

    A claim whose results are not there says which command gives them.
    """
    from eber.workflow.claiming import claims as judge

    found = judge(folder, evidence)
    typer.echo(repr(found))
    if out is not None:
        typer.echo(f"\nPage: {found.save(out)}")
