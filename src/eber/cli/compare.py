"""`eber compare`: every method on a table, each environment held out in turn."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eber.cli.options import (
    Drop,
    EnvironmentColumn,
    Features,
    Label,
    Quick,
    Selection,
    Table,
    columns_named,
    count,
    effort_of,
    say_notes,
)
from eber.io.text import printable

if TYPE_CHECKING:
    from eber.compare.folds import FoldPlan
    from eber.compare.methods import Effort
    from eber.compare.record import ComparisonRecord
    from eber.tables.training import TrainingTable


def compare(
    table: Table,
    label: Label,
    environment: EnvironmentColumn,
    out: Annotated[
        Path | None, typer.Option("--out", help="Output folder; results/NAME of the table when not given.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas; all when not given.", show_default=False)
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0, 1, ...")] = 1,
    metric: Annotated[
        str, typer.Option(help="What methods are ranked by: nll, accuracy, ece, brier, auroc or auprc.")
    ] = "nll",
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
    drop: Drop = None,
    features: Features = None,
    quick: Quick = False,
    selection: Selection = None,
) -> None:
    """Compare EBER, its baselines, logistic regression and gradient boosting on a table.

    Each environment is held out in turn. The output folder gets every score (cells.csv) and a page to read
    (report.html). A run that was stopped goes on where it was when the same command is given again.
    """
    import torch

    from eber.compare.folds import plan_folds
    from eber.compare.methods import METHODS
    from eber.compare.preview import expected_seconds
    from eber.compare.record import record_comparison
    from eber.compare.suspicions import find_suspicions
    from eber.evaluation.metrics import find_metric
    from eber.runs.runner import run, writing_outputs
    from eber.runs.spec import choose
    from eber.tables.files import open_table
    from eber.tables.training import read_training_table

    torch.set_num_threads(1)
    effort = effort_of(quick, selection)
    find_metric(metric)
    chosen = choose([part.strip() for part in methods.split(",") if part.strip()] or METHODS, METHODS, "method")
    names = open_table(table).names
    dropped = columns_named(drop, names)
    wanted = columns_named(features, names) if features else None
    data = read_training_table(table, label=label, environment=environment, drop=dropped, features=wanted)
    say_notes([*data.contents, *data.notes])
    plan = plan_folds(data.y, data.environments)
    say_notes(plan.remarks)
    folder = out or Path("results") / table.resolve().name.split(".")[0]
    typer.echo(
        f"{len(data)} rows, {count(len(data.schema.features), 'feature')}, {len(set(data.environments))} environments. "
        f"To be run: {_planned(chosen, plan, seeds, data, effort)}.",
        err=True,
    )
    seconds = expected_seconds(data, chosen, plan, seeds, effort, jobs)
    typer.echo(f"This takes {duration(seconds)} with {count(jobs, 'job')}. Output: {folder}", err=True)
    suspicions = find_suspicions(data, plan)
    record = record_comparison(data, plan, effort, metric, suspicions, drop=dropped, features=wanted)
    folder.mkdir(parents=True, exist_ok=True)
    with writing_outputs(folder):
        record.save(folder)
    summary = run(
        record.experiment,
        out=folder,
        seeds=seeds,
        methods=chosen,
        data_dir=table,
        jobs=jobs,
        command=shlex.join(["eber", *sys.argv[1:]]),
    )
    show(folder, record)
    raise typer.Exit(summary.exit_status)


def show(folder: Path, record: ComparisonRecord) -> None:
    """Print the table and write the report of a comparison."""
    from rich.console import Console

    from eber.compare.summary import summarise_comparison
    from eber.report.comparison_page import write_comparison_page
    from eber.report.comparison_tables import ranking_for_terminal
    from eber.runs.runner import writing_outputs

    results = record.results(folder)
    summary = summarise_comparison(results)
    with writing_outputs(folder):
        page = write_comparison_page(results, record, summary)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print()
    console.print(ranking_for_terminal(summary))
    console.print(printable(summary.verdict), highlight=False, markup=False, style="bold")
    for sentence in record.suspicions:
        console.print(printable(f"- Suspicious: {sentence}"), highlight=False, markup=False)
    console.print(f"\nReport: {page}", highlight=False, markup=False)


def _planned(methods: Sequence[str], plan: FoldPlan, seeds: int, table: TrainingTable, effort: Effort) -> str:
    """What will be run, in numbers: methods x folds x seeds, and what the search of weights adds."""
    from eber.compare.preview import fits_of

    cells = len(plan.folds) * seeds
    text = (
        f"{count(len(methods), 'method')} x {count(len(plan.folds), 'held-out fold')} x {count(seeds, 'seed')} = "
        f"{count(len(methods) * cells, 'result')}"
    )
    searched = {method: fits_of(method, table, effort) for method in methods}
    searched = {method: fits for method, fits in searched.items() if fits > 1}
    if not searched:
        return text
    return (
        f"{text}; {', '.join(searched)} with a search of {count(len(effort.penalty_weights), 'penalty weight')} by "
        f"{effort.selection}, {max(searched.values())} fits each"
    )


def duration(seconds: float) -> str:
    """A time in words, no more exact than it is known."""
    if seconds < 50:
        return f"about {max(5 * round(seconds / 5), 5)} seconds"
    if seconds < 50 * 60:
        return f"about {count(max(round(seconds / 60), 1), 'minute')}"
    hours = round(2 * seconds / 3600) / 2
    return f"about {hours:g} {'hour' if hours == 1 else 'hours'}"
