"""Parts of a folder that its manifest names: when another takes the place of one, the old one goes, and nothing else.

A folder may hold files of others, also such as are named like ours. Only what the manifest has named, or what a writer
noted in a journal before writing it and never came to name, is known to be ours.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from eber.io.files import write_atomically

JOURNAL = ".saving"
"""Names of the parts that were begun, one a line; it is there only while somebody writes, or after one was killed."""


@contextlib.contextmanager
def new_part(
    folder: Path,
    name: str,
    pattern: re.Pattern[str],
    named: Callable[[], str | None],
    remove: Callable[[Path], None],
) -> Iterator[None]:
    """Around the writing of a part and of the manifest that names it; the caller alone writes to the folder.

    When the block ends, well or not, parts that it or an earlier one began and the one that was named before it are
    removed, unless the manifest names them now.

    Parameters
    ----------
    name : str
        Of the new part.
    pattern : Pattern
        What parts are called. A manifest or a journal that names anything else is not believed.
    named : callable
        What the manifest names at present, None where there is no manifest.
    remove : callable
        Removes a part.
    """
    before, begun = named(), begun_parts(folder)
    write_atomically(folder / JOURNAL, "".join(f"{part}\n" for part in {name, *begun}))
    try:
        yield
    finally:
        present = named()
        for part in {before, name, *begun} - {present, None}:
            assert part is not None
            if pattern.fullmatch(part):
                remove(folder / part)
        (folder / JOURNAL).unlink(missing_ok=True)


def begun_parts(folder: Path) -> list[str]:
    """What the journal of a folder names."""
    try:
        return (folder / JOURNAL).read_text().splitlines()
    except (OSError, ValueError):  # there is none, or it is none
        return []
