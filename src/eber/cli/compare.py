"""`eber compare`: every method on a table, each environment held out in turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eber.cli.options import (
    METHODS_HELP,
    Address,
    BackendName,
    Drop,
    EnvironmentColumn,
    Features,
    Label,
    Quick,
    Selection,
    TablePath,
    backend_named,
    check_selection,
    columns_named,
    names_in,
    typed,
)

if TYPE_CHECKING:
    from eber.workflow.table_comparison import TableComparison


def compare(
    table: TablePath,
    label: Label,
    environment: EnvironmentColumn,
    out: Annotated[
        Path | None, typer.Option("--out", help="Output folder; results/NAME of the table when not given.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help=f"{METHODS_HELP}; all of these when not given.", show_default=False)
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0, 1, ...")] = 1,
    metric: Annotated[
        str, typer.Option(help="What methods are ranked by: nll, accuracy, ece, brier, auroc or auprc.")
    ] = "nll",
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 2,
    backend: BackendName = "processes",
    address: Address = "",
    drop: Drop = None,
    features: Features = None,
    quick: Quick = False,
    selection: Selection = None,
) -> None:
    """Compare EBER, its baselines, logistic regression and gradient boosting on a table.

    Each environment is held out in turn. The output folder gets every score (cells.csv) and a page to read
    (report.html). A run that was stopped goes on where it was when the same command is given again.
    """
    from eber.workflow.comparing import compare_table

    check_selection(quick, selection)
    comparison = compare_table(
        table,
        label=label,
        environment=environment,
        out=out,
        methods=names_in(methods),
        seeds=seeds,
        metric=metric,
        jobs=jobs,
        backend=backend_named(backend, address),
        drop=columns_named(drop, table),
        features=columns_named(features, table) if features else None,
        quick=quick,
        selection=selection,
        progress=True,
        command=typed(),
    )
    show(comparison)
    raise typer.Exit(comparison.exit_status)


def show(comparison: TableComparison) -> None:
    """Print the table of a comparison, what to use, and what is suspicious."""
    from rich.console import Console

    from eber.report.comparison_tables import ranking_for_terminal

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print()
    console.print(ranking_for_terminal(comparison.summary))
    console.print(comparison.verdict, highlight=False, style="bold")
    for sentence in comparison.suspicions:
        console.print(f"- Suspicious: {sentence}", highlight=False, markup=False)
    console.print(f"\nReport: {comparison.page}", highlight=False)
