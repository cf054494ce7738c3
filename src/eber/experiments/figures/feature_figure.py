"""Feature distributions by training environment, with the held-out rows that are taken for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.io.text import file_name
from eber.report.figures import INK, PALETTE, style
from eber.runs.figure import ReportFigure

_BINS = 40
_SHOWN_QUANTILES = (0.005, 0.995)  # quantiles of the training rows between which an axis runs


def draw_assigned_features(
    setting: str,
    feature_names: Sequence[str],
    train: MultiEnvironmentData,
    test: MultiEnvironmentData,
    assigned: NDArray[Any],
    shown: Sequence[str] = (),
) -> ReportFigure:
    """A panel for each feature and training environment.

    Parameters
    ----------
    setting : str
    feature_names : sequence of str, one for each column
    train, test : MultiEnvironmentData
        Standardised.
    assigned : array of shape (len(test),)
        The training environment with the largest p(e|x) of each held-out row.
    shown : sequence of str
        Features to draw; all of them when empty.
    """
    columns = {name: list(feature_names).index(name) for name in shown or feature_names}
    names = train.environment_names
    shares = {name: float(np.mean(assigned == name)) for name in names}
    with style():
        figure = Figure(figsize=(2.3 * len(names), 1.5 * len(columns) + (1.4 if len(columns) == 1 else 0.8)))
        panels = figure.subplots(len(columns), len(names), sharex="row", sharey="row", squeeze=False)
        figure.suptitle(
            f"Standardised features, {setting}; by training environment, with the share of held-out rows taken for it",
            fontsize="medium",
        )
        for row, (feature, place) in enumerate(columns.items()):
            low, high = np.quantile(train.X[:, place], _SHOWN_QUANTILES)
            edges = np.linspace(low, high, _BINS + 1)
            for column, name in enumerate(names):
                axes = panels[row, column]
                of_environment = train.X[train.environments == name, place]
                axes.hist(of_environment, edges, density=True, color="#9aa0a6", label="training environment")
                # Both of the held-out rows in the same unit: a handful of assigned rows must not tower over the rest.
                unit = np.full(len(test), 1 / (len(test) * (edges[1] - edges[0])))
                for rows, look in (
                    (np.full(len(test), True), {"color": INK, "linewidth": 0.9, "linestyle": ":", "label": "held out"}),
                    (assigned == name, {"color": PALETTE[1], "linewidth": 1.4, "label": "held out, taken for it"}),
                ):
                    axes.hist(test.X[rows, place], edges, weights=unit[rows], histtype="step", **look)
                axes.set_yticks([])
                if row == 0:
                    axes.set_title(f"{name} ({shares[name]:.0%})", fontsize="small")
            panels[row, 0].set_ylabel(feature)
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    features = "one feature" if len(columns) == 1 else f"{len(columns)} features"
    words = ", ".join(f"{share:.0%} for {name}" for name, share in shares.items())
    held_out = ", ".join(str(name) for name in test.environment_names)
    return ReportFigure(
        file_name("-".join(["features", *shown, setting])),
        figure,
        f"Standardised features by training environment (grey), {setting}, first seed. Dotted: all held-out rows "
        f"({held_out}). Coloured: those of them whose largest p(e|x) is that environment's; their share stands in the "
        "title, and the coloured areas of a feature add up to the dotted one.",
        f"Histograms of {features} in {len(names)} training environments. Held-out rows are taken as follows: {words}.",
        setting,
    )
