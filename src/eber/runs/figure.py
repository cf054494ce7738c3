"""What an experiment draws for its report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ReportFigure:
    """A plot for the report.

    Parameters
    ----------
    name : str
        Name of its files: letters, digits, "-", "_", "." and "=".
    figure : matplotlib Figure
        Made inside :func:`eber.report.figures.style`. Artists with very many points should be rasterized.
    caption : str
        What is shown and what to see in it.
    alternative : str
        The same for those who cannot see it.
    setting : str
        The setting that it belongs to, with whose scores it is shown; empty where it belongs to none.
    """

    name: str
    figure: Figure
    caption: str
    alternative: str
    setting: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._=-]*", self.name):
            raise ValueError(f"A figure cannot be named {self.name!r}: use letters, digits, '-', '_', '.' and '='.")
