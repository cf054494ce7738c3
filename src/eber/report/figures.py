"""Plots: one style for all of them, saved so that the same figure is the same file."""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
from cycler import cycler
from matplotlib.figure import Figure

from eber.displays.colours import INK, PALETTE
from eber.io.files import write_atomically

STYLE: dict[str, Any] = {
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "figure.figsize": (6.4, 3.8),
    "font.size": 10.0,
    "image.cmap": "cividis",
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.8,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "eber",  # without it every SVG would have other identifiers
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def style() -> AbstractContextManager[None]:
    """Draw in the project's style within a `with` block, whatever style the user has."""
    return mpl.style.context(STYLE, after_reset=True)


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write a figure as PNG (on white) and SVG (without background), whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure
        The same figure always gives the same bytes: no date is written.
    stem : Path
        Path without suffix; its folder is made when missing.

    Returns
    -------
    tuple of Path
        The PNG and the SVG file.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    write_atomically(png, _render(figure, format="png", facecolor="white", metadata={"Software": None}))
    write_atomically(svg, _render(figure, format="svg", transparent=True, metadata={"Date": None, "Creator": None}))
    return png, svg


def _render(figure: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, **options)
    return buffer.getvalue()


def inline_svg(svg: str, name: str, alternative: str) -> str:
    """An SVG file's content as an element of an HTML page.

    Ink and black become the page's text colour, so that the figure can be read in light and dark. Identifiers get the
    figure's name in front, since several figures on a page would otherwise answer to the same ones.
    """
    start = svg.index("<svg")
    body = svg[start:].replace(INK, "currentColor").replace("#000000", "currentColor")
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    return body.replace("<svg ", f'<svg role="img" aria-label="{_attribute(alternative)}" ', 1)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
