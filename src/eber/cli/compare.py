"""`eber compare`: every method on a table, each environment held out in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eber.cli.options import (
    METHODS_HELP,
    Address,
    BackendName,
    Categorical,
    Drop,
    Encoding,
    EnvironmentColumn,
    Epochs,
    Features,
    Label,
    Missing,
    Numeric,
    Positive,
    Query,
    Quick,
    Sheet,
    TablePath,
    Weight,
    backend_named,
    columns_named,
    names_in,
    terminal,
    typed,
)
from eber.io.text import printable
from eber.methods import default_methods

if TYPE_CHECKING:
    from eber.workflow.table_comparison import TableComparison


def compare(
    table: TablePath,
    label: Label,
    environment: EnvironmentColumn,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Output folder; results/NAME of the table when not given, NAME-quick with --quick."),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help=f"{METHODS_HELP}; all for every one that is installed. When not given: "
            f"{', '.join(default_methods())}.",
            show_default=False,
        ),
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
    categorical: Categorical = None,
    numeric: Numeric = None,
    missing: Missing = None,
    positive: Positive = None,
    weight: Weight = None,
    sheet: Sheet = None,
    query: Query = None,
    encoding: Encoding = None,
    quick: Quick = False,
    epochs: Epochs = None,
    fit: Annotated[bool, typer.Option("--fit", help="Then fit the advised method on all rows and save it.")] = False,
    out_model: Annotated[Path, typer.Option("--out-model", help="Folder for the model of --fit.")] = Path("model"),
) -> None:
    """Compare methods on a table: what predicts a new environment, and how sure is that?

    Each environment is held out in turn, and every method's settings are chosen in the same way within the others. The
    output folder gets every score (cells.csv) and a page to read (report.html). A run that was stopped goes on where it
    was when the same command is given again.
    """
    from eber.workflow.comparing import compare_table

    reading = {"sheet": sheet, "query": query, "encoding": encoding}
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
        drop=columns_named(drop, table, reading),
        features=columns_named(features, table, reading) if features else None,
        categorical=columns_named(categorical, table, reading),
        numeric=columns_named(numeric, table, reading),
        missing=[value for text in missing or () for value in names_in(text)],
        positive=positive,
        weight=weight,
        **reading,
        quick=quick,
        epochs=epochs,
        progress=True,
        command=typed(),
    )
    show(comparison)
    if fit and comparison.fit_command:
        fit_advised(comparison, table, out_model)
    raise typer.Exit(comparison.exit_status)


def fit_advised(comparison: TableComparison, table: Path, out: Path) -> None:
    """Fit what a comparison advises as it was compared, with its scores for the card."""
    from eber.cli.fit import fit

    record = comparison.record
    said: dict[str, Any] = {"drop": record.drop, "features": record.features, **record.choices, **record.reading}
    fit(
        table,
        out,
        record.label,
        record.environment,
        method=comparison.recommended,
        **said,
        quick=not record.effort.searches,
        epochs=record.passes,
        results=comparison.folder,
    )


def show(comparison: TableComparison) -> None:
    """Print the table of a comparison, what to use, and what is suspicious."""
    from eber.report.comparison_tables import ranking_for_terminal

    console = terminal()
    console.print()
    if comparison.record.caution:
        console.print(comparison.record.caution, highlight=False, style="yellow")
        console.print()
    console.print(ranking_for_terminal(comparison.summary, console.width))
    console.print()
    console.print(comparison.record.effort.care, highlight=False, markup=False)
    console.print(printable(comparison.verdict), highlight=False, markup=False, style="bold")
    for sentence in comparison.suspicions:
        console.print(printable(f"- Suspicious: {sentence}"), highlight=False, markup=False)
    console.print()
    console.print(printable(comparison.next_step), highlight=False, markup=False, soft_wrap=True)
    console.print(f"Report: {comparison.page}", highlight=False, markup=False, soft_wrap=True)
