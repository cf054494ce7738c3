"""Text as it may stand in errors and in names of files, also where others made it."""

from __future__ import annotations

import re

MAX_CHARACTERS = 150
"""Of a value that an error shows."""


def shortened(value: object) -> str:
    """The value as Python writes it, cut where it is long: a damaged file may hold a cell without end."""
    return cut(repr(value))


def cut(text: str) -> str:
    """The text without what is beyond the length that a name has."""
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def printable(text: str) -> str:
    """A sentence with what would begin a line, move a cursor, change colours or turn the direction of writing shown."""
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)


def file_name(text: str, between: str = "-") -> str:
    """A name that every file system takes: what is no letter, digit, ".", "_" or "=" becomes `between`."""
    return re.sub(rf"[^A-Za-z0-9._={between}]+", between, text)


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A key for sorting names as people do: s 2 before s 10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def count(number: int, noun: str) -> str:
    """1 seed, 2 seeds."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
