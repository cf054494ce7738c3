"""`eber reproduce`: run an experiment of the paper and show our table beside the paper's."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eber.experiments.parameters import parse_assignments
from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.experiments.results import load_results, summarise
from eber.experiments.runner import run
from eber.experiments.wording import deviations, verdict
from eber.report.page import write_report
from eber.report.tables import as_rich

WIDTH = 120
"""Columns of the table where output is no terminal."""

NAMES = ", ".join(EXPERIMENTS)


def reproduce(
    name: Annotated[str, typer.Argument(help=f"The experiment: {NAMES}.", show_default=False)],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0, 1, ...")] = 3,
    methods: Annotated[
        str,
        typer.Option(help="Methods, separated by commas; all but the ablations when not given.", show_default=False),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Output folder; results/NAME when not given.", show_default=False)
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a parameter: key=value; may be repeated.", show_default=False),
    ] = None,
    settings: Annotated[
        str, typer.Option(help="Settings, separated by commas; the baseline when not given.", show_default=False)
    ] = "",
    sensitivity: Annotated[bool, typer.Option("--sensitivity", help="Run every setting of the experiment.")] = False,
    ablation: Annotated[bool, typer.Option("--ablation", help="Run the ablations too.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the real data, for experiments that need it.", show_default=False)
    ] = None,
) -> None:
    """Run an experiment of the paper and print our table beside the paper's.

    The output folder gets cells.csv, timings.csv, table.md, table.tex, the figures and report.html. A run that was
    stopped goes on where it was when the same command is given again.
    """
    experiment = find_experiment(name)
    if settings and sensitivity:
        raise ValueError("Give either --settings or --sensitivity, not both.")
    chosen_settings = list(experiment.settings) if sensitivity else _split(settings)
    chosen_methods = _split(methods)
    if ablation:
        chosen_methods = [*(chosen_methods or (*experiment.oracles, *experiment.methods)), *experiment.ablations]
    folder = out or Path("results") / experiment.name
    summary = run(
        experiment,
        out=folder,
        seeds=seeds,
        methods=chosen_methods,
        settings=chosen_settings,
        overrides=parse_assignments(set_ or ()),
        data_dir=data,
        jobs=jobs,
        command=shlex.join(["eber", *sys.argv[1:]]),
    )
    results = load_results(experiment, folder)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for setting in summarise(results):
        console.print()
        console.print(as_rich(setting))
        console.print(verdict(setting), highlight=False, style="bold")
        for sentence in deviations(setting):
            console.print(f"- {sentence}", highlight=False)
    page = write_report(results)
    console.print(f"\nReport: {page}", highlight=False)
    raise typer.Exit(summary.exit_status)


def _split(text: str) -> list[str] | None:
    """Names separated by commas; None where there are none."""
    return [part.strip() for part in text.split(",") if part.strip()] or None
