"""Interactive charts: plotly figures in one style, and how they get into a page.

A chart carries its numbers as a table as well, for those who cannot see it and for copying. Colours of text, axes and
grid are set by the page's style sheet, so that a chart follows the reader's light or dark setting.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup
from numpy.typing import NDArray
from plotly.offline import get_plotlyjs

from eber.displays.colours import INK, PALETTE

SYMBOLS = {
    "diamond": "◆",
    "circle": "●",
    "square": "■",
    "triangle-up": "▲",
    "cross": "✚",
    "x": "✖",
    "star": "★",
    "triangle-down": "▼",
}
"""Marks, as plotly calls them and as text has them: colour is never the only thing that tells two series apart."""
MAX_NAME = 26
"""Longer names would leave no room for the chart; hovering shows them whole."""

MAX_WRITTEN = 12
"""Columns for which a heat map has room to write its values, and a table to stand side by side."""
HEAT_ROW = 30


@dataclass(frozen=True)
class Chart:
    """A chart of a page, with its numbers.

    Parameters
    ----------
    name : str
        Letters, digits and "-"; once in a page.
    figure : plotly Figure
    alternative : str
        What it shows, for those who cannot see it.
    heads : sequence of str
    lines : sequence of sequences of str
        The numbers behind it.
    """

    name: str
    figure: go.Figure
    alternative: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]

    @property
    def height(self) -> int:
        """Pixels, so that a page keeps its place for a chart that is still to be drawn."""
        return int(self.figure.layout.height)

    @property
    def json(self) -> Markup:
        """The figure for a `<script type="application/json">`; no text in it can end that element."""
        text: str = self.figure.to_json()
        return Markup(text.replace("<", r"\u003c"))


def library() -> Markup:
    """The source of plotly.js, for a `<script>`."""
    source: str = get_plotlyjs()
    assert "</script" not in source.lower()
    return Markup(source)


def new_figure(height: int, **layout: Any) -> go.Figure:
    """An empty figure in the style of the report."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 10, "r": 12, "t": 10, "b": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 13, "color": INK, "family": "system-ui, sans-serif"},
        hoverlabel={"align": "left"},
        hovermode="closest",
        dragmode=False,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        colorway=PALETTE,
    )
    figure.update_xaxes(automargin=True, zeroline=False, title_standoff=8, title_font_size=13)
    figure.update_yaxes(automargin=True, zeroline=False, title_standoff=8, title_font_size=13)
    figure.update_layout(**layout)
    return figure


def heat_map(
    name: str,
    matrix: NDArray[np.float64],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    titles: tuple[str, str],
    value: str,
    shades: Sequence[tuple[float, str]],
    limits: tuple[float, float],
    alternative: str,
    marks: Sequence[Sequence[str]] | None = None,
    digits: int = 2,
) -> Chart:
    """A matrix as shades of the page's own ground, so that it suits a light page as well as a dark one.

    Parameters
    ----------
    name : str
    matrix : array of shape (rows, columns)
        NaN where there is nothing to show.
    rows, columns : sequence of str
    titles : tuple of str
        What rows and columns are.
    value : str
        What the numbers are.
    shades : sequence of (share, colour)
        Half transparent, so that the page's text can be read on all of them.
    limits : tuple of float
        Values of the first shade and the last.
    alternative : str
        What it shows, for those who cannot see it.
    marks : optional
        A text behind each value that is written.
    digits : int
        After the point of each value that is written.
    """
    few = len(columns) <= MAX_WRITTEN
    figure = new_figure(150 + HEAT_ROW * len(rows))
    figure.add_heatmap(
        z=matrix,
        x=list(range(len(columns))),
        y=list(range(len(rows))),
        customdata=[[f"{plain(row)}, {plain(column)}" for column in columns] for row in rows],
        text=[[""] * len(columns) for _ in rows] if marks is None else marks,
        zmin=limits[0],
        zmax=limits[1],
        colorscale=list(shades),
        colorbar={"title": {"text": value, "side": "right", "font": {"size": 13}}, "thickness": 12},
        texttemplate=f"%{{z:.{digits}f}}%{{text}}" if few else "%{text}",
        hovertemplate="%{customdata}: %{z:.3f}<extra></extra>",
        hoverongaps=False,
        xgap=2,
        ygap=2,
    )
    rows_on(figure, rows)
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(columns))),
        ticktext=[label(column) for column in columns],
        tickangle=-40 if few else -90,
        tickfont_size=13 if few else 10,
        showgrid=False,
        title_text=titles[1],
    )
    figure.update_yaxes(title_text=titles[0])
    heads, lines = _matrix_lines(matrix, rows, columns, titles, value)
    return Chart(name, figure, alternative, heads, lines)


def _matrix_lines(
    matrix: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], titles: tuple[str, str], value: str
) -> tuple[tuple[str, ...], list[list[str]]]:
    """The matrix as a table; one with many columns goes down the page, where there is room, and not across."""
    if len(columns) <= MAX_WRITTEN:
        lines = [
            [row, *("–" if np.isnan(entry) else f"{entry:z.3f}" for entry in entries)]
            for row, entries in zip(rows, matrix, strict=True)
        ]
        return (titles[0].capitalize(), *columns), lines
    lines = [
        [row, column, f"{entry:z.3f}"]
        for row, entries in zip(rows, matrix, strict=True)
        for column, entry in zip(columns, entries, strict=True)
        if not np.isnan(entry)
    ]
    return (titles[0].capitalize(), titles[1].capitalize(), value), lines


def rows_on(figure: go.Figure, names: Sequence[str]) -> None:
    """One named line for each row of a chart, the first on top."""
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=[label(name) for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )


def label(name: str, longest: int = MAX_NAME) -> str:
    """A name on an axis: shortened, and with nothing in it that plotly would take for markup."""
    return plain(name if len(name) <= longest else f"{name[: longest - 1]}…")


def plain(text: str) -> str:
    """A text in which plotly finds no markup."""
    return html.escape(text, quote=False)
