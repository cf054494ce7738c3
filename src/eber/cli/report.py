"""`eber report`: write the page of an output folder again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[
        Path, typer.Argument(help="Output folder of `eber compare` or `eber reproduce`.", show_default=False)
    ],
) -> None:
    """Write report.html from what an output folder holds."""
    from eber.cli.compare import show
    from eber.workflow.reporting import read_results
    from eber.workflow.table_comparison import TableComparison

    found = read_results(folder)
    if isinstance(found, TableComparison):
        show(found)
    else:
        typer.echo(f"Report: {found.page}")
