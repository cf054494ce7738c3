"""`eber compare`: every method on a table, each environment held out in turn."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eber.cli.options import Drop, EnvironmentColumn, Features, Label, Quick, Table, columns_named, count

if TYPE_CHECKING:
    from eber.compare.record import ComparisonRecord


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
) -> None:
    """Compare EBER, its baselines, logistic regression and gradient boosting on a table.

    Each environment is held out in turn. The output folder gets every score (cells.csv) and a page to read
    (report.html). A run that was stopped goes on where it was when the same command is given again.
    """
    import torch

    from eber.compare.folds import plan_folds
    from eber.compare.methods import METHODS, QUICK, THOROUGH
    from eber.compare.preview import expected_seconds
    from eber.compare.record import record_comparison
    from eber.compare.suspicions import find_suspicions
    from eber.experiments.runner import run, writing_outputs
    from eber.experiments.spec import choose
    from eber.metrics import find_metric
    from eber.tables.files import open_table
    from eber.tables.training import read_training_table

    torch.set_num_threads(1)
    find_metric(metric)
    chosen = choose([part.strip() for part in methods.split(",") if part.strip()] or METHODS, METHODS, "method")
    names = open_table(table).names
    dropped = columns_named(drop, names)
    wanted = columns_named(features, names) if features else None
    data = read_training_table(table, label=label, environment=environment, drop=dropped, features=wanted)
    plan = plan_folds(data.y, data.environments)
    effort = QUICK if quick else THOROUGH
    folder = out or Path("results") / table.resolve().name.split(".")[0]
    for note in (*data.notes, *plan.remarks):
        typer.echo(note, err=True)
    seconds = expected_seconds(data, chosen, len(plan.folds), seeds, effort, jobs)
    fits = len(chosen) * len(plan.folds) * seeds
    typer.echo(
        f"{len(data)} rows, {count(len(data.schema.features), 'feature')}, {len(set(data.environments))} environments: "
        f"{count(len(chosen), 'method')} x {count(len(plan.folds), 'held-out fold')} x {count(seeds, 'seed')} = "
        f"{count(fits, 'fit')}, {_duration(seconds)} with {count(jobs, 'job')}. Output: {folder}",
        err=True,
    )
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
    from eber.experiments.results import load_results
    from eber.experiments.runner import writing_outputs
    from eber.report.comparison_page import write_comparison_page
    from eber.report.comparison_tables import ranking_for_terminal

    results = load_results(record.experiment, folder)
    summary = summarise_comparison(results)
    with writing_outputs(folder):
        page = write_comparison_page(results, record, summary)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print()
    console.print(ranking_for_terminal(summary))
    console.print(summary.verdict, highlight=False, style="bold")
    for sentence in record.suspicions:
        console.print(f"- Suspicious: {sentence}", highlight=False, markup=False)
    console.print(f"\nReport: {page}", highlight=False)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
