"""Which columns the advised method lives on, over held-out environments and in each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eber.compare.column_summary import ColumnSummary
from eber.evaluation.wording import format_interval, format_signed, listed
from eber.report.charts import Chart, heat_map, new_figure, plain, rows_on
from eber.report.figures import PALETTE

ROW_HEIGHT = 28
MAX_SHOWN = 20
"""Columns in the charts, the most important; the table has all."""
SHADES = ((0.0, "rgba(213,94,0,0.6)"), (0.5, "rgba(125,133,144,0.07)"), (1.0, "rgba(31,119,214,0.6)"))


def importance_chart(columns: Sequence[ColumnSummary], method: str) -> Chart:
    """Mean rise in NLL over held-out environments, with its interval."""
    shown = columns[:MAX_SHOWN]
    figure = new_figure(90 + ROW_HEIGHT * len(shown), showlegend=False)
    figure.add_scatter(
        x=[column.mean for column in shown],
        y=list(range(len(shown))),
        text=[plain(column.name) for column in shown],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [column.high - column.mean for column in shown],
            "arrayminus": [column.mean - column.low for column in shown],
            "thickness": 2.5,
            "width": 0,
            "color": PALETTE[0],
        },
        mode="markers",
        marker={"symbol": "diamond", "size": 10, "color": PALETTE[0]},
        hovertemplate="%{text}: %{x:.3f}<extra></extra>",
    )
    rows_on(figure, [column.name for column in shown])
    figure.update_xaxes(title_text="rise in NLL when the column is shuffled", zeroline=True)
    lines = [
        [
            column.name,
            format_signed(column.mean),
            format_interval(column.low, column.high),
            listed(column.stops_in) or "–",
        ]
        for column in columns
    ]
    heads = ("Column", "Rise in NLL", "95 % interval", "Stops working in")
    text = "; ".join(f"{column.name} {format_signed(column.mean)}" for column in shown)
    return Chart("importance", figure, f"Importance of columns for {method}: {text}.", heads, lines)


def importance_map(columns: Sequence[ColumnSummary], folds: Sequence[str]) -> Chart:
    """Importance of each column in each held-out environment; a cross where a column stops working."""
    shown = columns[:MAX_SHOWN]
    matrix = np.array([[column.by_fold.get(fold, np.nan) for fold in folds] for column in shown])
    largest = max(float(np.nanmax(np.abs(matrix))), 1e-9)
    marks = [[" ✖" if fold in column.stops_in else "" for fold in folds] for column in shown]
    return heat_map(
        "importance-map",
        matrix,
        rows=[column.name for column in shown],
        columns=folds,
        titles=("column", "held out"),
        value="rise in NLL",
        shades=SHADES,
        limits=(-largest, largest),
        marks=marks,
        digits=3,
        alternative="Importance of each column in each held-out environment.",
    )
