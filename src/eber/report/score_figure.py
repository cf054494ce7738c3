"""Every seed of every method on one axis, with the paper's figures beside them: the table at a glance."""

from __future__ import annotations

import math
import textwrap

import numpy as np
from matplotlib.figure import Figure

from eber.io.text import file_name
from eber.report.figures import INK, PALETTE, style
from eber.runs.cell import row_label
from eber.runs.figure import ReportFigure
from eber.runs.results import Results, Summary

_COLOURS = {"oracle": INK, "method": PALETTE[0], "floor": PALETTE[4], "tuned": PALETTE[2], "variant": PALETTE[3]}
_OFFSET = 0.22  # of the paper's mark from ours, in rows
_OF_A_NAME = 36
"""Characters of a row's name in a line: two lines fit a row, and leave the scores most of the width."""


def draw_scores(results: Results, summary: Summary) -> ReportFigure:
    """The primary metric of one setting: dots are seeds, bars are means, diamonds are the paper's mean ± sd."""
    primary = summary.primary
    rows = [row for row in summary.rows if primary.name in row.estimates]
    cells = results.cells[(results.cells["setting"] == summary.setting) & (results.cells["metric"] == primary.name)]
    labels = [row_label(method, variant) for method, variant in zip(cells["method"], cells["variant"], strict=True)]
    with style():
        figure = Figure(figsize=(6.4, 2.0 + 0.38 * len(rows)))
        axes = figure.subplots()
        for y, row in enumerate(rows):
            colour = _COLOURS[row.role]
            values = cells["value"].to_numpy()[np.array(labels) == row.label]
            (dots,) = axes.plot(values, np.full(len(values), y), "o", color=colour, alpha=0.45, markersize=5, mew=0)
            dots.set_label(f"seeds ({row.role})")
            (bar,) = axes.plot([row.estimates[primary.name].mean], [y], "|", color=colour, markersize=15, mew=2.5)
            bar.set_label(f"mean ({row.role})")
            if (paper := row.estimates[primary.name].paper) is not None:
                mark = axes.errorbar(paper[0], y + _OFFSET, xerr=paper[1], fmt="D", color=PALETTE[1], ms=4, lw=1)
                mark.set_label("the paper's mean ± sd")
        names = [textwrap.fill(row.label, _OF_A_NAME, break_on_hyphens=False) for row in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"{primary.in_words} {primary.direction}".strip())
        axes.grid(axis="x", alpha=0.25, linewidth=0.6)
        figure.suptitle(f"{results.experiment.title}, {summary.setting}", fontsize="medium")
        handles, words = axes.get_legend_handles_labels()
        once = dict(zip(words, handles, strict=True))
        figure.legend(
            once.values(),
            once.keys(),
            loc="outside lower center",
            # Filled downwards: in columns of two or four, seeds and mean of a role stand together.
            ncols=math.ceil(len(once) / (2 if len(once) <= 10 else 4)),
            fontsize="small",
            columnspacing=1.0,
            handlelength=1.0,
            handletextpad=0.5,
        )
    shown = "Dots are seeds, vertical bars their means"
    if any(row.estimates[primary.name].paper for row in rows):
        shown += f"; diamonds are the paper's mean ± standard deviation ({summary.source})"
    means = "; ".join(f"{row.label} {primary.format(row.estimates[primary.name].mean)}" for row in rows)
    return ReportFigure(
        file_name(f"scores-{summary.setting}"),
        figure,
        f"{primary.in_words[0].upper()}{primary.in_words[1:]} by method, {summary.setting}. {shown}.",
        f"{primary.in_words[0].upper()}{primary.in_words[1:]} by method, {summary.setting}. Means: {means}.",
    )
