"""Interactive charts: plotly figures in one style, and how they get into a page.

A chart carries its numbers as a table as well, for those who cannot see it and for copying. Colours of text, axes and
grid are set by the page's style sheet, so that a chart follows the reader's light or dark setting.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from eber.report.figures import INK, PALETTE

QUIET = "#7d8590"
"""For what is not the point: at least 3 : 1 against a light and a dark page."""
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
