"""`eber reproduce`: run an experiment of the paper and show our table beside the paper's."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.report.holdout_tables import holdouts_as_rich
from eber.report.page import write_report
from eber.report.tables import as_rich
from eber.runs.holdout_summary import summarise_holdouts
from eber.runs.holdout_wording import caution, holdout_remarks
from eber.runs.holdouts import hold_out_settings
from eber.runs.parameters import parse_assignments
from eber.runs.results import load_results, summarise
from eber.runs.runner import RunSummary, run, writing_outputs
from eber.runs.spec import Experiment
from eber.runs.wording import deviations, verdict

WIDTH = 120
"""Columns of the table where output is no terminal."""

ALL = "all"
NAMES = ", ".join((*EXPERIMENTS, ALL))


def reproduce(
    name: Annotated[str, typer.Argument(help=f"The experiment: {NAMES}.", show_default=False)],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0, 1, ...")] = 3,
    methods: Annotated[
        str,
        typer.Option(help="Methods, separated by commas; all but the ablations when not given.", show_default=False),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output folder; results/NAME when not given. For all, each experiment has a folder in it.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
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
    if settings and (sensitivity or all_holdouts):
        raise ValueError("Give either --settings or --sensitivity and --all-holdouts, not both.")
    if name == ALL and (methods or settings):
        raise ValueError("--methods and --settings belong to one experiment: name it in place of 'all'.")
    experiments = [find_experiment(each) for each in (EXPERIMENTS if name == ALL else [name])]
    overrides = _overrides(experiments, parse_assignments(set_ or ()))
    if all_holdouts and not any(map(hold_out_settings, experiments)):
        raise ValueError(f"Experiment {name!r} has no environment to hold out in turn; leave out --all-holdouts.")
    reading = [experiment.name for experiment in experiments if experiment.fingerprint is not None]
    if reading and data is None:
        data = _fetched_data(reading)
    statuses = []
    for experiment, changes in zip(experiments, overrides, strict=True):
        folder = out or Path("results") / (name if name == ALL else experiment.name)
        summary = _reproduce(
            experiment,
            folder / experiment.name if name == ALL else folder,
            seeds=seeds,
            jobs=jobs,
            data=data,
            methods=_methods(experiment, _split(methods), ablation),
            settings=_settings(experiment, _split(settings), sensitivity, all_holdouts),
            overrides=changes,
        )
        statuses.append(summary.exit_status)
        if summary.interrupted:
            break
    raise typer.Exit(max(statuses))


def _reproduce(
    experiment: Experiment,
    folder: Path,
    *,
    seeds: int,
    jobs: int,
    data: Path | None,
    methods: list[str] | None,
    settings: list[str] | None,
    overrides: dict[str, str],
) -> RunSummary:
    """Run one experiment, print its tables, write its report."""
    summary = run(
        experiment,
        out=folder,
        seeds=seeds,
        methods=methods,
        settings=settings,
        overrides=overrides,
        data_dir=data,
        jobs=jobs,
        command=shlex.join(["eber", *sys.argv[1:]]),
    )
    results = load_results(experiment, folder)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    summaries = summarise(results)
    for setting in summaries:
        console.print()
        console.print(as_rich(setting))
        console.print(verdict(setting), highlight=False, style="bold")
        for finding in setting.audit:
            console.print(finding, highlight=False, markup=False)
        for sentence in deviations(setting):
            console.print(f"- {sentence}", highlight=False)
    for holdouts in summarise_holdouts(experiment, summaries):
        for table in holdouts_as_rich(holdouts):
            console.print()
            console.print(table)
        console.print(verdict(holdouts), highlight=False, style="bold")
        for sentence in filter(None, (caution(holdouts), *holdout_remarks(holdouts))):
            console.print(sentence, highlight=False, markup=False)
    with writing_outputs(folder):
        page = write_report(results)
    console.print(f"\nReport: {page}", highlight=False, markup=False)
    return summary


def _fetched_data(experiments: list[str]) -> Path:
    """The folder that `eber data fetch` fills, where it is there."""
    from eber.datasets.fetch import default_data_dir

    folder = default_data_dir()
    if not folder.is_dir():
        raise ValueError(
            f"{', '.join(experiments)} {'reads' if len(experiments) == 1 else 'read'} data files: say with --data in "
            f"which folder they are, or download them with: eber data fetch all (to {folder})"
        )
    return folder


def _overrides(experiments: list[Experiment], changes: dict[str, str]) -> list[dict[str, str]]:
    """The changes that each experiment takes: one alone takes all of them, several those that they have."""
    if len(experiments) == 1:
        return [changes]
    for key in changes:
        if not any(key in experiment.parameters for experiment in experiments):
            raise ValueError(f"No experiment has a parameter {key!r}.")
    return [
        {key: value for key, value in changes.items() if key in experiment.parameters} for experiment in experiments
    ]


def _methods(experiment: Experiment, chosen: list[str] | None, ablation: bool) -> list[str] | None:
    if not ablation:
        return chosen
    return [*(chosen or (*experiment.oracles, *experiment.methods)), *experiment.ablations]


def _settings(
    experiment: Experiment, chosen: list[str] | None, sensitivity: bool, all_holdouts: bool
) -> list[str] | None:
    """The settings to run; None for the default ones."""
    if sensitivity:
        return list(experiment.settings)
    if all_holdouts:
        default = experiment.default_settings or tuple(experiment.settings)
        return list(dict.fromkeys([*default, *hold_out_settings(experiment)]))
    return chosen


def _split(text: str) -> list[str] | None:
    """Names separated by commas; None where there are none."""
    return [part.strip() for part in text.split(",") if part.strip()] or None
