"""`eber report`: write the page of an output folder again."""

from __future__ import annotations

import json
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
    from eber.experiments.results import load_results
    from eber.experiments.runner import RUN_FILE
    from eber.report.page import write_report

    run_file = folder / RUN_FILE
    if not run_file.exists():
        raise FileNotFoundError(
            f"{folder} holds no results: there is no {RUN_FILE} in it. Give an output folder of `eber compare` or "
            "`eber reproduce`."
        )
    try:
        name = json.loads(run_file.read_text())["experiment"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{run_file} was altered: run the command that wrote it again.") from error
    if name == NAME and (folder / RECORD_FILE).exists():
        from eber.cli.compare import show

        show(folder, ComparisonRecord.load(folder))
        return
    page = write_report(load_results(find_experiment(name), folder))
    typer.echo(f"Report: {page}")
