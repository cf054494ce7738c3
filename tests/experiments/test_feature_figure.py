"""Where the held-out rows go, feature by feature."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from eber.datasets.base import MultiEnvironmentData
from eber.experiments.figures.feature_figure import draw_assigned_features


def area(axes: Axes, drawn: int) -> float:
    """Of one of the outlines of a panel: 0 all held-out rows, 1 those assigned to its environment."""
    outlines = [patch for patch in axes.patches if hasattr(patch, "get_xy") and np.ndim(patch.get_xy()) == 2]
    x, y = np.asarray(outlines[drawn].get_xy()).T
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2


def test_assigned_rows_add_up_to_the_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(400, 2)), np.tile([0, 1], 200)
    train = MultiEnvironmentData(X, y, np.repeat(["a", "b"], 200))
    test = MultiEnvironmentData(rng.uniform(0.1, 0.9, (100, 2)), y[:100], np.full(100, "c"))
    assigned = np.where(np.arange(100) < 3, "a", "b")
    figure = draw_assigned_features("split", ["first", "second"], train, test, assigned)
    panels = figure.figure.axes
    assert [panel.get_title() or panel.get_title("left") for panel in panels[:2]] == ["a (3%)", "b (97%)"]
    for panel_a, panel_b in (panels[:2], panels[2:]):
        np.testing.assert_allclose([area(panel_a, 0), area(panel_b, 0)], 1, atol=1e-6)
        np.testing.assert_allclose([area(panel_a, 1), area(panel_b, 1)], [0.03, 0.97], atol=1e-6)
