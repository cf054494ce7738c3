"""Values from files that others made, as errors show them."""

from __future__ import annotations

MOST_CHARACTERS = 150


def brief(value: object) -> str:
    """The value as Python writes it, cut where it is long: a damaged file may hold a cell without end."""
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
