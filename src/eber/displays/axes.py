"""Axes of a display: the caller's own, or new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eber.displays.colours import INK, MARKERS, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_HEIGHT = 0.32
"""Inches for each line of a picture that has one for each environment."""
MAX_NAME = 26
"""Longer names would leave no room for the picture."""


def axes_for(ax: Axes | None, height: float = 4.0, width: float = 6.4) -> tuple[Axes, Figure]:
    """The given axes, or those of a new figure of pyplot's, without two spines that say nothing; and their figure."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax, ax.figure  # type: ignore[return-value] # a part of a figure does as well


def height_of(n_rows: int) -> float:
    """Inches for a picture with so many lines."""
    return 1.5 + ROW_HEIGHT * n_rows


def rows_on(ax: Axes, names: Sequence[str]) -> None:
    """One named line for each row of a picture, the first on top."""
    ax.set_yticks(range(len(names)), [shortened(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def shortened(name: str) -> str:
    """A name on an axis, without what matplotlib would take for mathematics."""
    text = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    return text.replace("$", r"\$")


def series_style(k: int) -> dict[str, str]:
    """Colour and mark of the k-th series; after six the colours begin again with other marks."""
    return {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[k % len(MARKERS)]}


def legend_above(ax: Axes, columns: int, enlarged: float = 1.0) -> None:
    """A legend between the title and the axes, where it hides nothing; its marks may be enlarged."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        borderaxespad=0.3,
        handletextpad=0.5,
        labelcolor=INK,
        markerscale=enlarged,
    )
