"""Points of several classes on one line, so that none hides another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STRIP = 0.72
"""Of a line's height that its points take."""


def strip_heights(n: int, k: int, n_classes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Heights of n points of class k about their line at 0, at random in the class's part of the strip."""
    heights: NDArray[np.float64] = STRIP * ((k + rng.random(n)) / n_classes - 0.5)
    return heights
