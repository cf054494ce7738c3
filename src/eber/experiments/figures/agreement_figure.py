"""Where methods agree: rows on which all are right or all wrong, and who is right where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eber.experiments.agreement import Agreement, agreements
from eber.io.text import file_name
from eber.report.figures import INK, PALETTE, style
from eber.runs.figure import ReportFigure
from eber.runs.results import Results


def agreement_figures(results: Results) -> Sequence[ReportFigure]:
    """One figure for each setting in which the reference method and two others have finished a common seed.

    Beside a single other method there is nothing to see: where the two differ, one of them is right.
    """
    drawn = []
    for setting in results.experiment.settings:
        found = list(agreements(results, setting).values())
        if found and len(found[0].right_with_reference) > 1:
            drawn.append(draw_agreement(setting, results.experiment.reference_method, found))
    return drawn


def draw_agreement(setting: str, reference: str, found: Sequence[Agreement]) -> ReportFigure:
    """Means over seeds, and each seed as a dot."""
    agree = {
        "all right": [seed.all_right for seed in found],
        "all wrong": [seed.all_wrong for seed in found],
    }
    with_reference = {
        method: [seed.right_with_reference[method] for seed in found] for method in found[0].right_with_reference
    }
    without_reference = {
        method: [seed.right_without_reference[method] for seed in found] for method in found[0].right_without_reference
    }
    with style():
        figure = Figure(figsize=(9.6, 3.8))
        left, middle, right = figure.subplots(1, 3, sharey=True)
        _bars(left, agree, PALETTE[0])
        _bars(middle, with_reference, PALETTE[2])
        _bars(right, without_reference, PALETTE[1])
        left.set(ylabel="share of rows", ylim=(0, 1), title="All test rows")
        middle.set(ylabel="of these, share right", title=f"Methods differ, {reference} right")
        right.set(ylabel="of these, share right", title=f"Methods differ, {reference} wrong")
        figure.suptitle(f"Agreement between methods, {setting}", fontsize="medium")
        for axes in (middle, right):
            axes.axhline(0.5, color=INK, linestyle="--", linewidth=1, label="0.5")
        handles, names = right.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize="small")  # bars may fill a panel
    words = "; ".join(
        f"{method} {_mean(shares)} where {reference} is right, {_mean(without_reference[method])} where it is wrong"
        for method, shares in with_reference.items()
    )
    seeds = "one seed" if len(found) == 1 else f"mean of {len(found)} seeds, which are the dots"
    return ReportFigure(
        file_name(f"agreement-{setting}"),
        figure,
        f"Agreement between methods, {setting}; {seeds}. Left: rows on which all methods are right, or all wrong. "
        f"Middle and right: among rows on which methods differ, how often each other method is right where {reference} "
        f"is right, and where it is wrong. The dashed line marks 0.5.",
        f"Bars. All right: {np.mean(agree['all right']):.2f}; all wrong: {np.mean(agree['all wrong']):.2f} of the "
        f"rows. Where methods differ: {words}.",
        setting,
    )


def _bars(axes: Axes, shares: Mapping[str, Sequence[float]], colour: str) -> None:
    """One bar for each name, its height under the name; seeds in which a share is of no rows (NaN) are passed over."""
    found = [_known(values) for values in shares.values()]
    for x, values in enumerate(found):
        if len(values):
            axes.bar(x, values.mean(), width=0.62, color=colour)
            if len(values) > 1:
                axes.plot(np.full(len(values), x), values, ".", color=INK, markersize=4, label="" if x else "seeds")
    axes.set_xticks(range(len(found)), [f"{name}\n{_mean(values)}" for name, values in shares.items()])
    axes.set_xlim(-0.6, len(found) - 0.4)
    if not any(map(len, found)):
        axes.text(0.5, 0.25, "no such rows", transform=axes.transAxes, ha="center")


def _known(values: Sequence[float]) -> NDArray[np.float64]:
    return np.array([value for value in values if np.isfinite(value)])


def _mean(values: Sequence[float]) -> str:
    """The mean over the seeds in which there is a share; a dash where there is none."""
    known = _known(values)
    return f"{known.mean():.2f}" if len(known) else "–"
