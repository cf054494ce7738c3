"""Held-out rows whose subjects were trained on, and what the nearest training rows say."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from eber.io.text import file_name
from eber.report.figures import INK, PALETTE, style
from eber.runs.figure import ReportFigure
from eber.runs.results import NO_LEAK, Results


def draw_leak(results: Results, setting: str) -> ReportFigure:
    """Accuracy of each method on leaked and on clean held-out rows, the mean over its seeds.

    Parameters
    ----------
    results : Results
        With arrays ``correct`` of every method and ``leaked`` of the reference method, and what its audit found.
    setting : str
    """
    found = [finding.sentence for answer in results.leak_findings(setting) for finding in answer] or [NO_LEAK]
    reference = results.experiment.reference_method
    leaked = results.arrays(reference, results.seeds(reference, setting)[0], setting)["leaked"].astype(bool)
    groups = {group: rows for group, rows in {"clean": ~leaked, "leaked": leaked}.items() if rows.any()}
    methods = [method for method in results.experiment.methods if results.seeds(method, setting)]
    with style():
        figure = Figure(figsize=(6.4, 3.2))
        axes = figure.subplots()
        words = []
        for shift, colour, (group, rows) in zip((-0.2, 0.2), PALETTE, groups.items(), strict=False):
            right = [
                np.mean(
                    [results.arrays(method, seed, setting)["correct"][rows] for seed in results.seeds(method, setting)]
                )
                for method in methods
            ]
            places = np.arange(len(methods)) + (shift if len(groups) > 1 else 0)
            bars = axes.bar(places, right, 0.38, color=colour, label=f"{rows.sum()} {group} rows")
            axes.bar_label(bars, fmt="%.2f", padding=2, fontsize="small")
            words.append(f"{group}: " + ", ".join(f"{m} {value:.2f}" for m, value in zip(methods, right, strict=True)))
        axes.axhline(0.5, color=INK, linestyle="--", linewidth=1, label="0.5")
        axes.set_xticks(range(len(methods)), methods)
        axes.set(ylabel="accuracy", ylim=(0, 1.1), yticks=np.linspace(0, 1, 6))
        axes.set_title(f"Accuracy on leaked and on clean rows, {setting}")
        axes.legend(loc="upper right", ncols=3)
    return ReportFigure(
        file_name(f"leak-{setting}"),
        figure,
        f"Leak audit, {setting}. {' '.join(found)} Bars: accuracy on held-out rows with and without such a "
        "counterpart in training.",
        f"Accuracy by method. {'; '.join(words)}.",
        setting,
    )


def draw_neighbours(results: Results, setting: str) -> ReportFigure:
    """Share of held-out rows whose nearest training row has their label, within one environment.

    Parameters
    ----------
    results : Results
        With arrays ``neighbour_same_label`` (rows, environments), ``assigned`` and ``environments`` of the reference
        method.
    setting : str
    """
    reference = results.experiment.reference_method
    seeds = results.seeds(reference, setting)
    arrays = [results.arrays(reference, seed, setting) for seed in seeds]
    names = [str(name) for name in arrays[0]["environments"]]
    same = arrays[0]["neighbour_same_label"].astype(bool)  # the same under each seed
    rows = np.arange(len(same))
    assigned = [float(same[rows, seed["assigned"]].mean()) for seed in arrays]
    taken = np.mean([np.bincount(seed["assigned"], minlength=len(names)) for seed in arrays], axis=0) / len(rows)
    shares = {
        **dict(zip(names, same.mean(axis=0), strict=True)),
        "at random": same.mean(),
        "assigned": np.mean(assigned),
    }
    with style():
        figure = Figure(figsize=(6.4, 3.0))
        axes = figure.subplots()
        colours = ["#9aa0a6"] * len(names) + [PALETTE[0], PALETTE[1]]
        bars = axes.bar(range(len(shares)), list(shares.values()), 0.6, color=colours)
        axes.bar_label(bars, fmt="%.2f", padding=4, fontsize="small")
        axes.plot(np.full(len(assigned), len(shares) - 1), assigned, "o", color=INK, markersize=4, label="seeds")
        axes.axhline(0.5, color=INK, linestyle="--", linewidth=1, label="0.5")
        axes.set_xticks(range(len(shares)), list(shares))
        axes.set(ylabel="share with the same label", ylim=(0, 1))
        axes.set_title(f"Nearest training sample, {setting}")
        axes.legend(loc="upper right", ncols=2)
    assignment = ", ".join(f"{name} {share:.0%}" for name, share in zip(names, taken, strict=True))
    return ReportFigure(
        file_name(f"neighbours-{setting}"),
        figure,
        f"Nearest training sample, {setting}: share of held-out rows with whose label it agrees, when looked for "
        "within one cohort (grey), within a cohort drawn at random, and within the cohort that p(e|x) assigns the row "
        f"to (dots are seeds). Rows are assigned to: {assignment}.",
        "Bars. " + ", ".join(f"{name} {share:.2f}" for name, share in shares.items()) + ".",
        setting,
    )
