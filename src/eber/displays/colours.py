"""Colours and marks of every picture, in the report and from Python."""

from __future__ import annotations

# Okabe and Ito's palette, told apart in every common kind of colour blindness, without its yellow, which vanishes on
# white, and its black, which vanishes on a dark page.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#24292f"
"""Text, axes and reference lines; the HTML page shows it in the page's own text colour."""
QUIET = "#7d8590"
"""For what is not the point: at least 3 : 1 against a light and a dark page."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Marks as matplotlib calls them: colour is never the only thing that tells two series apart."""
DASHES = ("-", "--", "-.", ":")
"""Lines as matplotlib calls them, for the same reason."""
