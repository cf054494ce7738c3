"""The paper's two diagrams, drawn anew: its graphical model (Figure 1) and its training computations (Figure 2).

``make figures`` writes them into docs/figures.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from eber.report.figures import INK, PALETTE, style

OBSERVED, BY_NETWORK = "#d9dce0", "#cfe3f2"
RADIUS = 0.35
Point = tuple[float, float]


def graphical_model() -> Figure:
    """Environments change the distribution of z; p(x|z) and p(y|z) stay."""
    with style():
        figure, axes = _canvas((-1.9, 5.7), (1.4, 6.2), 0.8)
        shared: Point = (1.95, 5.9)
        axes.add_patch(Circle(shared, 0.09, facecolor="white", edgecolor=INK))
        for left, names, seen in (
            (0.0, ("$e_j$", "$z_{ij}$", "$x_{ij}$", "$y_{ij}$"), (True, False, True, True)),
            (3.9, ("$e$", "$z$", "$x$", "$y$"), (False, False, True, False)),
        ):
            e, z, x, y = (left, 5.0), (left, 3.7), (left - 1.1, 2.9), (left + 1.1, 2.9)
            for place, name, observed in zip((e, z, x, y), names, seen, strict=True):
                _variable(axes, place, name, observed)
            axes.plot([shared[0], left], [shared[1]] * 2, color=INK, linewidth=1, zorder=0)
            _arrow(axes, (left, shared[1]), e, start=0.0)
            for end in (x, y):
                _arrow(axes, z, end)
            _arrow(axes, e, z)
        _plate(axes, (-1.6, 2.4), (3.2, 1.8), "$1:n_{e_j}$")
        _plate(axes, (-1.8, 2.2), (3.6, 3.3), "$1:m$")
        axes.text(0.0, 1.7, "observed data", ha="center")
        axes.text(3.9, 1.7, "prediction", ha="center")
    return figure


def training_computations() -> Figure:
    """What is observed (grey), estimated by a network (blue), and computed from other estimates (dashed)."""
    with style():
        figure, axes = _canvas((-2.9, 8.1), (-1.3, 3.9), 0.8)
        x, e, y, z = (1.0, 1.9), (1.0, 0.9), (1.0, -0.1), (5.1, 0.9)
        for place, name, observed in ((x, "$x$", True), (e, "$e$", True), (y, "$y$", True), (z, "$z$", False)):
            _variable(axes, place, name, observed)
        label_given_e, weights = (-1.6, 1.4), (3.1, 2.5)
        posterior, decoder = (3.1, 0.9), (6.9, 0.9)
        weights_given_y, prior = (6.9, 2.5), (3.1, -0.8)
        for place, name, network in (
            (label_given_e, r"$p(y\mid x,e)$: $f^{(0)}$", True),
            (weights, r"$p(e\mid x)$: $h$", True),
            (posterior, r"$q(z;x,y,e)$: $g$", True),
            (decoder, r"$p(y\mid z)$: $f^{(1)}$", True),
            (weights_given_y, r"$p(e\mid x,y)$", False),
            (prior, r"$q(z;x,e)$", False),
        ):
            _box(axes, place, name, network)
        for path in (
            [(0.65, 1.9), (0.2, 1.9), (0.2, 1.4), (-0.6, 1.4)],
            [(0.65, 0.9), (0.2, 0.9), (0.2, 1.4), (-0.6, 1.4)],
            [(1.35, 1.9), (1.7, 1.9), (1.7, 2.5), (2.1, 2.5)],
            [(1.35, 1.9), (1.7, 1.9), (1.7, 1.1), (2.1, 1.1)],
            [(1.35, 0.9), (2.1, 0.9)],
            [(1.35, -0.1), (1.7, -0.1), (1.7, 0.7), (2.1, 0.7)],
            [(4.1, 2.5), (5.9, 2.5)],
            [(-1.6, 1.65), (-1.6, 3.5), (6.9, 3.5), (6.9, 2.75)],
            [(4.1, 0.9), (4.75, 0.9)],
            [(5.45, 0.9), (5.9, 0.9)],
            [(3.1, 0.65), (3.1, -0.55)],
            [(-1.6, 1.15), (-1.6, -0.8), (2.1, -0.8)],
        ):
            _path(axes, path)
    return figure


def _canvas(x: tuple[float, float], y: tuple[float, float], inches: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(inches * (x[1] - x[0]), inches * (y[1] - y[0])))
    axes = figure.subplots()
    axes.set(xlim=x, ylim=y, aspect="equal")
    axes.axis("off")
    return figure, axes


def _variable(axes: Axes, place: Point, name: str, observed: bool) -> None:
    axes.add_patch(Circle(place, RADIUS, facecolor=OBSERVED if observed else "white", edgecolor=INK))
    axes.text(*place, name, ha="center", va="center", color=INK)


def _box(axes: Axes, place: Point, name: str, by_network: bool) -> None:
    corner = (place[0] - 1.0, place[1] - 0.25)
    look = {"facecolor": BY_NETWORK, "edgecolor": PALETTE[0]} if by_network else {"facecolor": "white"}
    axes.add_patch(Rectangle(corner, 2.0, 0.5, **{"edgecolor": INK, "linestyle": "-" if by_network else "--", **look}))
    axes.text(*place, name, ha="center", va="center", color=INK, fontsize="small")


def _plate(axes: Axes, corner: Point, size: Point, name: str) -> None:
    axes.add_patch(FancyBboxPatch(corner, *size, boxstyle="round,pad=0,rounding_size=0.12", fill=False, edgecolor=INK))
    axes.text(corner[0] + size[0] - 0.08, corner[1] + size[1] - 0.08, name, ha="right", va="top", fontsize="small")


def _arrow(axes: Axes, start_at: Point, end_at: Point, start: float = RADIUS) -> None:
    """From the rim of one variable to the rim of another."""
    dx, dy = end_at[0] - start_at[0], end_at[1] - start_at[1]
    length = (dx**2 + dy**2) ** 0.5
    tail = (start_at[0] + dx / length * start, start_at[1] + dy / length * start)
    head = (end_at[0] - dx / length * RADIUS, end_at[1] - dy / length * RADIUS)
    _path(axes, [tail, head])


def _path(axes: Axes, points: list[Point]) -> None:
    """Straight lines, with a head at the end of the last."""
    if len(points) > 2:
        axes.plot(*zip(*points[:-1], strict=True), color=INK, linewidth=1, zorder=0)
    look = {"arrowstyle": "-|>", "color": INK, "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", points[-1], points[-2], arrowprops=look, zorder=1)


DIAGRAMS = {"graphical-model": graphical_model, "training-computations": training_computations}


def main(folder: Path = Path(__file__).parent / "figures") -> None:
    """Write both diagrams."""
    for name, draw in DIAGRAMS.items():
        folder.mkdir(exist_ok=True)
        figure = draw()
        with style():  # on white, since a page of documentation may be light or dark
            figure.savefig(folder / f"{name}.svg", facecolor="white", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
