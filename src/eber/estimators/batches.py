"""How many rows a step takes where nobody says, and the step size that goes with them."""

from __future__ import annotations

import math

USUAL_BATCH, LARGEST_BATCH = 64, 1024
"""The default, which ``"auto"`` begins with, and where nothing is gained beyond."""
ROWS_FOR_DOUBLE = 100_000
"""From so many rows on a batch has twice as many, from twice the rows on four times, and so on (docs/scale.md)."""


def batch_rows(batch_size: int | str, n_rows: int) -> int:
    """Rows of a step: as many as were asked for, or what ``"auto"`` stands for with so many rows in all.

    A pass then has about as many steps, 780 to 1,560 of them, up to 800,000 rows.
    """
    if batch_size != "auto":
        return int(batch_size)
    doublings = math.floor(math.log2(max(1.0, 2 * n_rows / ROWS_FOR_DOUBLE)))
    return min(USUAL_BATCH << doublings, LARGEST_BATCH)


def scaled_learning_rate(learning_rate: float, batch_size: int | str, n_rows: int) -> float:
    """The step size for that batch: under ``"auto"``, in proportion to the square root of its rows.

    The noise of a mean of B gradients falls as 1/√B, and Adam's step does not grow with the gradient: steps that are
    longer by √B wander as far (Malladi et al. 2022).
    """
    if batch_size != "auto":
        return learning_rate
    return learning_rate * math.sqrt(batch_rows(batch_size, n_rows) / USUAL_BATCH)
