"""`eber reproduce`: run an experiment of the paper and show our table beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eber.cli.options import (
    METHODS_HELP,
    Address,
    BackendName,
    backend_named,
    names_in,
    terminal,
    typed,
)
from eber.experiments.registry import EXPERIMENTS

if TYPE_CHECKING:
    from eber.workflow.reproduction import Reproduction

ALL = "all"
NAMES = ", ".join((*EXPERIMENTS, ALL))


def reproduce(
    name: Annotated[str, typer.Argument(help=f"The experiment: {NAMES}.", show_default=False)],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0, 1, ...")] = 3,
    methods: Annotated[
        str,
        typer.Option(
            help=f"{METHODS_HELP}, or a row of the experiment; the paper's, without the ablations, when not given.",
            show_default=False,
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output folder; results/NAME when not given. For all, each experiment has a folder in it.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
    backend: BackendName = "processes",
    address: Address = "",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Change a parameter: key=value; may be repeated. For all, in each experiment that has it.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        str, typer.Option(help="Settings, separated by commas; the baseline when not given.", show_default=False)
    ] = "",
    sensitivity: Annotated[bool, typer.Option("--sensitivity", help="Run every setting of the experiment.")] = False,
    all_holdouts: Annotated[
        bool,
        typer.Option("--all-holdouts", help="Hold out each environment in turn too, where data are real, and sum up."),
    ] = False,
    tuned: Annotated[
        bool,
        typer.Option(
            "--tuned",
            help="Run each method of the paper also with settings chosen by leaving training environments out, where "
            "data are real; takes many times as long.",
        ),
    ] = False,
    ablation: Annotated[bool, typer.Option("--ablation", help="Run the ablations too.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the real data, for experiments that need it; $EBER_DATA or the cache of `eber data fetch` "
            "when not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run an experiment of the paper and print our table beside the paper's.

    The output folder gets cells.csv, timings.csv, table.md, table.tex, the figures and report.html. A run that was
    stopped goes on where it was when the same command is given again.
    """
    from eber.runs.parameters import parse_assignments
    from eber.workflow.reproducing import reproduce as reproduce_one
    from eber.workflow.reproducing import reproduce_all

    if settings and (sensitivity or all_holdouts):
        raise ValueError("Give either --settings or --sensitivity and --all-holdouts, not both.")
    if name == ALL and (methods or settings):
        raise ValueError("--methods and --settings belong to one experiment: name it in place of 'all'.")
    options: dict[str, Any] = {
        "seeds": seeds,
        "out": out,
        "jobs": jobs,
        "backend": backend_named(backend, address),
        "parameters": parse_assignments(set_ or ()),
        "sensitivity": sensitivity,
        "all_holdouts": all_holdouts,
        "tuned": tuned,
        "ablation": ablation,
        "data": data,
        "progress": True,
        "command": typed(),
    }
    statuses = []
    if name == ALL:
        finished = reproduce_all(**options)
    else:
        finished = iter([reproduce_one(name, methods=names_in(methods), settings=names_in(settings), **options)])
    for reproduction in finished:
        show(reproduction)
        statuses.append(reproduction.exit_status)
        if reproduction.run is not None and reproduction.run.interrupted:
            break
    raise typer.Exit(max(statuses))


def show(reproduction: Reproduction) -> None:
    """Print the tables of an experiment, ours beside the paper's, and what they say."""
    from eber.report.holdout_tables import holdouts_as_rich
    from eber.report.tables import as_rich
    from eber.runs.holdout_wording import caution, holdout_remarks
    from eber.runs.wording import deviations, verdict

    console = terminal()
    for setting in reproduction.summaries:
        console.print()
        console.print(as_rich(setting, console.width))
        console.print(verdict(setting), highlight=False, style="bold")
        for remark in setting.remarks:
            console.print(remark, highlight=False, markup=False)
        for sentence in deviations(setting):
            console.print(f"- {sentence}", highlight=False)
    for holdouts in reproduction.holdouts:
        for table in holdouts_as_rich(holdouts, console.width):
            console.print()
            console.print(table)
        console.print(verdict(holdouts), highlight=False, style="bold")
        for sentence in filter(None, (caution(holdouts), *holdout_remarks(holdouts))):
            console.print(sentence, highlight=False, markup=False)
    console.print(f"\nReport: {reproduction.page}", highlight=False, markup=False, soft_wrap=True)
