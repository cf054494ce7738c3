"""Which training environments the held-out rows are taken for, row by row and as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from eber.io.text import file_name
from eber.report.figures import INK, PALETTE, style
from eber.runs.figure import ReportFigure
from eber.runs.results import Results


def assignment_figures(results: Results) -> Sequence[ReportFigure]:
    """One figure for each setting in which the reference method has finished a seed."""
    reference = results.experiment.reference_method
    return [
        draw_assignment(results, setting)
        for setting in results.experiment.settings
        if results.seeds(reference, setting)
    ]


def draw_assignment(results: Results, setting: str) -> ReportFigure:
    """Share of held-out rows by the environment with the largest p(e|x), beside the mixture that adaptation finds.

    Parameters
    ----------
    results : Results
        With arrays ``assigned``, ``environments`` and ``adapted_mixture`` of the reference method.
    setting : str
    """
    reference = results.experiment.reference_method
    arrays = [results.arrays(reference, seed, setting) for seed in results.seeds(reference, setting)]
    names = [str(name) for name in arrays[0]["environments"]]
    assigned = np.stack(
        [np.bincount(seed["assigned"], minlength=len(names)) / len(seed["assigned"]) for seed in arrays]
    )
    adapted = np.stack([seed["adapted_mixture"] for seed in arrays])
    bars = {"assigned by the largest p(e|x)": assigned, "mixture after adaptation": adapted}
    with style():
        figure = Figure(figsize=(6.4, 3.0))
        axes = figure.subplots()
        for shift, colour, (label, shares) in zip((-0.2, 0.2), PALETTE, bars.items(), strict=False):
            places = np.arange(len(names)) + shift
            axes.bar(places, shares.mean(axis=0), 0.38, color=colour, label=label)
            for x, mean, highest in zip(places, shares.mean(axis=0), shares.max(axis=0), strict=True):
                axes.annotate(  # above the dots
                    f"{mean:.2f}", (x, highest), (0, 4), textcoords="offset points", ha="center", fontsize="small"
                )
            if len(arrays) > 1:
                (dots,) = axes.plot(
                    np.tile(places, (len(arrays), 1)).ravel(), shares.ravel(), ".", color=INK, markersize=4
                )
                dots.set_label("seeds" if shift > 0 else "")
        axes.set_xticks(range(len(names)), names)
        axes.set(ylabel="share", ylim=(0, 1.25), yticks=np.linspace(0, 1, 6))
        axes.set_title(f"Environments that held-out rows are taken for, {setting}")
        axes.legend(loc="upper center", ncols=3, fontsize="small")
    words = "; ".join(
        f"{name} {first:.2f} and {second:.2f}"
        for name, first, second in zip(names, assigned.mean(axis=0), adapted.mean(axis=0), strict=True)
    )
    seeds = "one seed" if len(arrays) == 1 else f"mean of {len(arrays)} seeds, which are the dots"
    return ReportFigure(
        file_name(f"assignment-{setting}"),
        figure,
        f"Training environments that the held-out rows are taken for, {setting}; {seeds}. Each row alone goes to the "
        "environment with its largest p(e|x); adaptation asks which mixture of environments explains all of them "
        "together.",
        f"Bars, assigned share and adapted weight: {words}.",
        setting,
    )
