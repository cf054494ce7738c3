"""The pictures of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eber.compare.summary import ComparisonSummary
from eber.experiments.results import Results
from eber.metrics import reliability
from eber.report.figures import INK, PALETTE, ReportFigure, style

MAX_SHOWN = 40
"""Environments that a heat map can name."""
PANELS_IN_A_ROW = 4
EBER = "EBER"


def draw_ranking(summary: ComparisonSummary) -> ReportFigure:
    """The ranking metric: every held-out fold, the mean, and its interval."""
    metric = summary.metric
    with style():
        figure = Figure(figsize=(7.2, 1.0 + 0.42 * len(summary.rows)))
        axes = figure.subplots()
        for y, row in enumerate(summary.rows):
            values = [scores[metric.name] for scores in row.by_fold.values()]
            axes.plot(
                values, [y + 0.16] * len(values), "o", color=PALETTE[5], markersize=4, alpha=0.8, markeredgewidth=0
            )
            if not math.isnan(row.low):
                axes.plot([row.low, row.high], [y - 0.12, y - 0.12], "-", color=PALETTE[0], linewidth=2)
            axes.plot([row.means[metric.name]], [y - 0.12], "D", color=PALETTE[0], markersize=5)
        axes.set_yticks(range(len(summary.rows)), [row.method for row in summary.rows])
        axes.set_ylim(len(summary.rows) - 0.5, -0.5)
        axes.set_xlabel(f"{metric.label} ({'higher' if metric.higher_is_better else 'lower'} is better)")
        axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    means = "; ".join(f"{row.method} {metric.format(row.means[metric.name])}" for row in summary.rows)
    return ReportFigure(
        "ranking",
        figure,
        "Diamonds: mean over held-out environments, with its 95 % interval. Dots: each held-out environment.",
        f"Mean {metric.label} of each method: {means}.",
    )


def draw_calibration(results: Results, summary: ComparisonSummary, classes: Sequence[str]) -> ReportFigure:
    """A calibration curve for each method, over the held-out rows of all folds and seeds."""
    with style():
        columns = min(PANELS_IN_A_ROW, len(summary.rows))
        lines = math.ceil(len(summary.rows) / columns)
        figure = Figure(figsize=(1.0 + 2.1 * columns, 0.6 + 2.2 * lines))
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, row in zip(panels, summary.rows, strict=False):
            proba, labels = _held_out(results, row.method, summary)
            curve = reliability(labels, proba, np.arange(proba.shape[1]))
            axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
            known = curve.count > 0
            axes.plot(curve.promised[known], curve.observed[known], "-", color=PALETTE[0], linewidth=1.2)
            sizes = 6 + 60 * curve.count[known] / curve.count.max()
            axes.scatter(curve.promised[known], curve.observed[known], s=sizes, color=PALETTE[0])
            axes.set_title(f"{row.method}\nECE {row.means['ece']:.3f}", fontsize=9)
            axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        for axes in panels[len(summary.rows) :]:
            axes.set_visible(False)
        what = f"p({classes[1]})" if len(classes) == 2 else "confidence"
        figure.supxlabel(f"promised: {what}", fontsize=10)
        figure.supylabel("observed share", fontsize=10)
    errors = "; ".join(f"{row.method} {row.means['ece']:.3f}" for row in summary.rows)
    return ReportFigure(
        "calibration",
        figure,
        "What was promised against what came, on held-out rows of all folds together; points on the dotted line are "
        "honest, points below it too high. Larger points stand for more rows. ECE: mean over held-out environments.",
        f"Calibration curves; expected calibration errors: {errors}.",
    )


def draw_resemblance(results: Results, summary: ComparisonSummary) -> ReportFigure | None:
    """Mean p(e|x) of each held-out fold over the training environments; None where there are too many to name."""
    rows = {fold: _arrays(results, fold) for fold in summary.folds}
    rows = {fold: arrays for fold, arrays in rows.items() if arrays}
    names = sorted({str(name) for arrays in rows.values() for name in arrays["environments"]})
    if not rows or len(names) > MAX_SHOWN:
        return None
    matrix = np.full((len(rows), len(names)), np.nan)
    for i, arrays in enumerate(rows.values()):
        matrix[i, [names.index(str(name)) for name in arrays["environments"]]] = arrays["p_e"]
    with style():
        figure = Figure(figsize=(2.6 + 0.5 * len(names), 1.6 + 0.36 * len(rows)))
        axes = figure.subplots()
        image = axes.imshow(matrix, vmin=0, aspect="auto", cmap="cividis")
        axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
        axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
        axes.set(xlabel="training environment", ylabel="held out")
        if len(names) <= 12:
            _write_values(axes, matrix)
        figure.colorbar(image, ax=axes, label="mean p(e|x)")
    nearest = "; ".join(f"{fold} resembles {names[int(np.nanargmax(matrix[i]))]} most" for i, fold in enumerate(rows))
    return ReportFigure(
        "resemblance",
        figure,
        "Which training environments the rows of each held-out one resemble, as EBER sees it: the mean of p(e|x). "
        "Nearly equal values in a line say that x hardly tells environments apart, or that none is like it.",
        f"Mean p(e|x): {nearest}.",
    )


def draw_latent(results: Results, summary: ComparisonSummary, classes: Sequence[str]) -> ReportFigure | None:
    """Latent coordinates of held-out rows, by fold and class."""
    rows = {fold: _arrays(results, fold) for fold in summary.folds}
    rows = {fold: arrays for fold, arrays in rows.items() if arrays}
    if not rows:
        return None
    rng = np.random.default_rng(0)
    with style():
        figure = Figure(figsize=(7.2, 1.3 + 0.42 * len(rows)))
        axes = figure.subplots()
        for y, arrays in enumerate(rows.values()):
            z, labels = arrays["latent"][:, 0], arrays["label"][arrays["latent_rows"]]
            # Each fold has a fit of its own, whose z may point either way: turned so that higher classes lie right.
            if np.ptp(labels) and np.corrcoef(z, labels)[0, 1] < 0:
                z = np.negative(z)
            for k in range(len(classes)):
                mine = labels == k
                height = y + 0.36 * ((k + rng.random(mine.sum())) / len(classes) - 0.5) * 2
                colour = PALETTE[k % len(PALETTE)]
                axes.plot(
                    z[mine], height, ".", color=colour, markersize=3, alpha=0.5, markeredgewidth=0, rasterized=True
                )
        for k, label in enumerate(classes[: len(PALETTE)]):
            axes.plot([], [], "o", color=PALETTE[k], label=str(label))
        axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("E[z|x], first coordinate")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(classes), 6), fontsize=8)
    return ReportFigure(
        "latent",
        figure,
        "EBER's latent coordinate of held-out rows, by class. Each held-out environment has a fit of its own, so "
        "compare how far the classes lie apart and not the positions.",
        "Latent coordinate of held-out rows by environment and class.",
    )


def draw_uncertainty(results: Results, summary: ComparisonSummary) -> ReportFigure | None:
    """Mean entropy of the predictions for each fold, within and between environments."""
    rows = {fold: _arrays(results, fold) for fold in summary.folds}
    rows = {fold: arrays for fold, arrays in rows.items() if arrays}
    if not rows:
        return None
    within = np.array([arrays["within"].mean() for arrays in rows.values()])
    between = np.array([arrays["between"].mean() for arrays in rows.values()])
    with style():
        figure = Figure(figsize=(7.2, 1.2 + 0.36 * len(rows)))
        axes = figure.subplots()
        y = np.arange(len(rows))
        axes.barh(y, within, color=PALETTE[0], height=0.6, label="within environments: x does not tell y")
        axes.barh(y, between, left=within, color=PALETTE[1], height=0.6, label="between environments: they disagree")
        axes.set_yticks(y, list(rows), fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("mean entropy of p(y|x), nats")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8)
    share = between.sum() / max(within.sum() + between.sum(), 1e-300)
    return ReportFigure(
        "uncertainty",
        figure,
        f"Where EBER's uncertainty comes from in each held-out environment. Overall {share:.1%} of it is disagreement "
        "between environments, which knowing the environment would remove; better features may remove the rest.",
        f"Uncertainty within and between environments; {share:.1%} lies between.",
    )


def _held_out(
    results: Results, method: str, summary: ComparisonSummary
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    proba, labels = [], []
    for fold in summary.folds:
        for seed in results.seeds(method, fold):
            arrays = results.arrays(method, seed, fold)
            proba.append(arrays["proba"].astype(np.float64))
            labels.append(arrays["label"])
    return np.concatenate(proba), np.concatenate(labels)


def _arrays(results: Results, fold: str) -> dict[str, NDArray[Any]]:
    """What EBER's first finished seed kept of a fold; empty where there is none."""
    seeds = results.seeds(EBER, fold)
    return results.arrays(EBER, seeds[0], fold) if seeds else {}


def _write_values(axes: Axes, matrix: NDArray[np.float64]) -> None:
    middle = np.nanmax(matrix) / 2
    for i, j in np.argwhere(~np.isnan(matrix)):
        # Not the colour of the page's ink: the ground here is the heat map's, light or dark on any page.
        colour = "#101010" if matrix[i, j] > middle else "#fefefe"
        axes.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize=7, color=colour)
