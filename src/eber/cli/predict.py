"""`eber predict`: use a saved model on a file of any size."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eber.cli.options import Table, columns_named, count
from eber.io.text import printable

if TYPE_CHECKING:
    from eber.tables.prediction import PredictionReport


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `eber fit` wrote.", show_default=False)],
    table: Table,
    out: Annotated[Path, typer.Option("--out", help="File to write, .csv or .parquet.", show_default=False)],
    adapt: Annotated[
        bool, typer.Option("--adapt", help="First re-estimate, from these rows, which environments they resemble.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Column to be copied into the output; may be repeated.", show_default=False),
    ] = None,
) -> None:
    """Predict every row of a table; neither labels nor environments are needed in it."""
    import torch

    from eber.exceptions import AdaptationWarning
    from eber.tables.files import open_table
    from eber.tables.model_folder import Bundle
    from eber.tables.prediction import predict_file

    torch.set_num_threads(1)
    bundle = Bundle.load(model)
    names = open_table(table).names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)  # the report below says it
        report = predict_file(bundle, table, out, keep=tuple(columns_named(keep, names)), adapt=adapt)
    for line in _sentences(report):
        typer.echo(printable(line))
    typer.echo(f"{out}: predictions for {count(report.rows, 'row')}.")


def _sentences(report: PredictionReport) -> list[str]:
    from eber.tables.columns import say_limits

    lines = []
    if report.ignored:
        lines.append(f"Columns that the model does not know are ignored: {', '.join(report.ignored)}.")
    rows = count(report.rows, "row")
    for name, (strange, first) in report.unseen.items():
        lines.append(
            f"Column {name!r}: {strange} of {rows} {'has' if strange == 1 else 'have'} a value that the fit has not "
            f"seen, such as {first!r}; it counts as none of the known ones."
        )
    lines += [say_limits(name, limits, report.rows, first) for name, (limits, first) in report.limits.items()]
    lines += report.departures
    if report.formulas:
        lines.append(
            f"{count(report.formulas, 'cell')} {'begins' if report.formulas == 1 else 'begin'} as a formula does and "
            "got an apostrophe in front, so that a spreadsheet shows text. Parquet keeps such text as it is."
        )
    if (a := report.adaptation) is not None:
        order = sorted(report.mixture, key=lambda name: -report.mixture[name])
        shown = ", ".join(f"{name} {report.mixture[name]:.0%}" for name in order if report.mixture[name] >= 0.005)
        lines.append(f"Adapted to {count(a.n_rows, 'row')}. Estimated mixture of training environments: {shown}.")
        lines.append(
            f"Likelihood gain {a.log_likelihood_gain:.3f} nats a row (p = {a.p_value:.2g}); sharpness of p(e|x) "
            f"{a.sharpness:.2f}; effective sample size {count(round(a.effective_rows), 'row')} of known environment."
        )
        verdict = (
            "Nothing speaks against trusting it." if a.trusted else "Do not trust it: " + "; ".join(a.reasons) + "."
        )
        lines.append(verdict)
    return lines
