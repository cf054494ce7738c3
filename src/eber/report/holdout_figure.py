"""Every method in every held-out environment on one axis."""

from __future__ import annotations

import math
from itertools import cycle

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from eber.io.text import file_name
from eber.report.figures import INK, PALETTE, style
from eber.runs.figure import ReportFigure
from eber.runs.holdout_summary import HoldoutSummary
from eber.runs.holdout_wording import holdout_title

_MARKERS = ("o", "s", "^", "D", "v", "P")
_WIDE = 10.0  # beyond this ratio of the largest score to the smallest one environment would squeeze the others


def draw_holdouts(summary: HoldoutSummary) -> ReportFigure:
    """The primary metric: a mark for each environment, joined from method to method, and the means over them."""
    metric, rows = summary.primary, summary.rows
    places = range(len(rows))
    known = [score for row in rows for score in row.by_environment.values() if not math.isnan(score)]
    logarithmic = 0 < min(known) * _WIDE < max(known)
    with style():
        figure = Figure(figsize=(7.4, 1.3 + 0.46 * len(rows)))
        axes = figure.subplots()
        for name, colour, marker in zip(summary.environments, cycle(PALETTE), cycle(_MARKERS), strict=False):
            scores = [row.by_environment[name] for row in rows]
            axes.plot(scores, places, color=colour, linewidth=0.8, alpha=0.45)
            axes.plot(scores, places, marker, color=colour, markersize=6, markeredgewidth=0, label=name)
        means = [row.mean for row in rows]
        axes.plot(means, places, "|", color=INK, markersize=17, markeredgewidth=2.2, label="mean")
        axes.set_yticks(places, [row.label for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"{metric.label} {metric.direction}".strip())
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="x", alpha=0.25, linewidth=0.6)
        axes.set_title(holdout_title(summary))
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="held out")
    words = "; ".join(f"{row.label} {metric.format(row.mean)}" for row in rows)
    return ReportFigure(
        file_name(f"holdouts-{summary.family}"),
        figure,
        f"{holdout_title(summary)}. {metric.label} of each method with each environment held out, the mean over its "
        f"seeds; lines join what belongs to one environment. Vertical bars are means over environments."
        f"{' The axis is logarithmic.' if logarithmic else ''}",
        f"{metric.label} by method and held-out environment. Means over environments: {words}.",
    )
