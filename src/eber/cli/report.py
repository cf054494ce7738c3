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
    from eber.compare.record import RECORD_FILE, ComparisonRecord
    from eber.compare.running import NAME
    from eber.experiments.registry import find_experiment
    from eber.report.page import write_report
    from eber.runs.results import load_results
    from eber.runs.runner import read_run, writing_outputs

    name = read_run(folder)["experiment"]
    if name == NAME and (folder / RECORD_FILE).exists():
        from eber.cli.compare import show

        show(folder, ComparisonRecord.load(folder))
        return
    with writing_outputs(folder):
        page = write_report(load_results(find_experiment(name), folder))
    typer.echo(f"Report: {page}")
