"""Charts of how well methods do: the ranking, the scores by held-out environment, and calibration."""

from __future__ import annotations

import math

import numpy as np

from eber.compare.summary import ComparisonSummary
from eber.displays.colours import PALETTE, QUIET
from eber.evaluation.intervals import half_width, within_range
from eber.evaluation.metrics import Metric, reliability
from eber.report.charts import SYMBOLS, Chart, label, new_figure, plain, rows_on
from eber.report.held_out import HeldOut

MISSING = "–"
ROW_HEIGHT = 34
FOLD_HEIGHT = 44


def ranking_chart(summary: ComparisonSummary) -> Chart:
    """The ranking metric: every held-out fold, the mean, and its interval."""
    metric = summary.metric
    figure = new_figure(110 + ROW_HEIGHT * len(summary.rows))
    each_x, each_y, each_name = [], [], []
    for y, row in enumerate(summary.rows):
        for fold, scores in row.by_fold.items():
            if not math.isnan(scores[metric.name]):
                each_x.append(scores[metric.name])
                each_y.append(y - 0.18)
                each_name.append(f"{row.method}, {plain(fold)} held out")
    figure.add_scatter(
        x=each_x,
        y=each_y,
        text=each_name,
        mode="markers",
        name="a held-out environment" if summary.alone else "a held-out fold",
        marker={"symbol": "circle-open", "size": 8, "color": QUIET, "line": {"width": 1.5}},
        hovertemplate="%{text}: %{x:.3f}<extra></extra>",
    )
    means = [row.means[metric.name] for row in summary.rows]
    half = [row.high - mean for row, mean in zip(summary.rows, means, strict=True)]
    figure.add_scatter(
        x=means,
        y=[y + 0.18 for y in range(len(means))],
        text=[row.method for row in summary.rows],
        error_x={"type": "data", "array": half, "thickness": 2.5, "width": 0, "color": PALETTE[0]},
        mode="markers",
        name="mean, with its 95 % interval",
        marker={"symbol": "diamond", "size": 11, "color": PALETTE[0]},
        hovertemplate="%{text}: mean %{x:.3f}<extra></extra>",
    )
    rows_on(figure, [row.method for row in summary.rows])
    figure.update_xaxes(title_text=_axis(summary))
    text = "; ".join(f"{row.method} {metric.format(row.means[metric.name])}" for row in summary.rows)
    # The ranking itself stands beside it as a table.
    return Chart("ranking", figure, f"Mean {metric.label} of each method: {text}.", (), ())


def fold_chart(held: HeldOut) -> Chart:
    """Every method on every held-out fold; the recommended one with the interval that its rows allow."""
    summary = held.summary
    metric, advised = summary.metric, summary.recommended.method
    figure = new_figure(150 + FOLD_HEIGHT * len(summary.folds))
    lines = []
    others = max(len(summary.rows) - 1, 1)
    first_mark, *marks = SYMBOLS
    for j, row in enumerate(sorted(summary.rows, key=lambda row: row.method == advised)):
        first = row.method == advised
        x = [row.by_fold.get(fold, {}).get(metric.name, math.nan) for fold in summary.folds]
        bounds = [_bounds(held, advised, fold, value) for fold, value in zip(summary.folds, x, strict=True) if first]
        figure.add_scatter(
            x=x,
            # The advised method in the middle of a fold's line, the others spread around it so that none hides another.
            y=[y + (0 if first else 0.5 * ((j + 0.5) / others - 0.5)) for y in range(len(summary.folds))],
            customdata=[plain(fold) for fold in summary.folds],
            mode="markers",
            name=row.method,
            marker={
                "symbol": first_mark if first else f"{marks[j % len(marks)]}-open",
                "size": 12 if first else 9,
                "color": PALETTE[0] if first else (*PALETTE[1:4], QUIET)[j % 4],
                "line": {"width": 0 if first else 1.5},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - value for (_, high), value in zip(bounds, x, strict=False)],
                "arrayminus": [value - low for (low, _), value in zip(bounds, x, strict=False)],
                "thickness": 2.5,
                "width": 0,
            },
            hovertemplate="%{customdata}: " + row.method + " %{x:.3f}<extra></extra>",
        )
        if first:
            lines = [
                [fold, metric.format(value), _interval(low, high, metric)]
                for fold, value, (low, high) in zip(summary.folds, x, bounds, strict=True)
            ]
    rows_on(figure, summary.folds)
    figure.update_xaxes(title_text=_axis(summary))
    figure.update_layout(legend_traceorder="reversed")
    scores = "; ".join(f"{fold} {value}" for fold, value, _ in lines)
    heads = ("Held out", f"{advised}, {metric.label}", "95 % interval over rows")
    return Chart("folds", figure, f"{metric.label} of {advised} by held-out environment: {scores}.", heads, lines)


def calibration_charts(held: HeldOut, classes: list[str]) -> list[Chart]:
    """A calibration curve for each method, the advised one first, over the held-out rows of all folds and seeds."""
    charts = []
    advised = held.summary.recommended
    what = f"p({plain(classes[1])})" if len(classes) == 2 else "confidence"
    for j, row in enumerate(sorted(held.summary.rows, key=lambda row: row is not advised)):
        labels, proba = held.pooled(row.method)
        curve = reliability(labels, proba, np.arange(proba.shape[1]))
        known = curve.count > 0
        count, promised, observed = curve.count[known], curve.promised[known], curve.observed[known]
        low, high = (bound[known] for bound in curve.interval())
        figure = new_figure(
            250, title={"text": label(row.method), "font": {"size": 14}, "x": 0, "xref": "paper", "y": 0.98}
        )
        figure.update_layout(showlegend=False, margin_t=32)
        figure.add_scatter(
            x=[0, 1], y=[0, 1], mode="lines", hoverinfo="skip", line={"dash": "dot", "width": 1, "color": QUIET}
        )
        figure.add_scatter(
            x=promised,
            y=observed,
            customdata=count,
            mode="lines+markers",
            line={"color": PALETTE[0], "width": 2},
            marker={
                "size": 4 + 12 * np.sqrt(count / count.max()),
                "color": PALETTE[0],
                "opacity": 1,
                "line": {"width": 0},
            },
            error_y={
                "type": "data",
                "symmetric": False,
                "array": (high - observed).tolist(),
                "arrayminus": (observed - low).tolist(),
                "thickness": 1.5,
                "width": 0,
            },
            hovertemplate="promised %{x:.2f}<br>observed %{y:.2f}<br>%{customdata} rows<extra></extra>",
        )
        ticks = {"range": [-0.04, 1.04], "tickvals": [0, 0.5, 1]}
        figure.update_xaxes(title_text=f"promised {what}", **ticks)
        figure.update_yaxes(title_text="observed share", **ticks)
        lines = [
            [f"{p:.3f}", f"{o:.3f}", f"{a:.3f} to {b:.3f}", str(n)]
            for p, o, a, b, n in zip(promised, observed, low, high, count, strict=True)
        ]
        charts.append(
            Chart(
                f"calibration-{j}",
                figure,
                f"Calibration curve of {row.method}; expected calibration error {row.means['ece']:.3f}.",
                ("Promised", "Observed", "95 % interval", "Rows"),
                lines,
            )
        )
    return charts


def _bounds(held: HeldOut, method: str, fold: str, value: float) -> tuple[float, float]:
    """95 % interval of a score over the rows of its fold, the mean width over seeds."""
    name = held.summary.metric.name
    widths = [half_width(name, *part) for part in held.predictions(method, fold)]
    half = float(np.mean(widths)) if widths else math.nan
    if math.isnan(half) or math.isnan(value):
        return math.nan, math.nan
    return within_range(name, value - half), within_range(name, value + half)


def _interval(low: float, high: float, metric: Metric) -> str:
    return MISSING if math.isnan(low) else f"{metric.format(low)} to {metric.format(high)}"


def _axis(summary: ComparisonSummary) -> str:
    return f"{summary.metric.label} ({'higher' if summary.metric.higher_is_better else 'lower'} is better)"
