"""What a run says while it runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress

from eber.io.text import printable
from eber.runs.cell import Cell


class Progress:
    """Says nothing; the others say more."""

    def begin(self, total: int, finished: int) -> None:
        """A run of so many cells starts, some of which are finished already."""

    def finished(self, cell: Cell, seconds_left: float | None) -> None:
        """A cell is finished, and this is how long the rest should take."""

    def note(self, message: str) -> None:
        """Something that the user should know."""

    def end(self) -> None:
        """The run is over."""


class LineProgress(Progress):
    """At most one line a second, for logs.

    Parameters
    ----------
    stream : text file
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._done = self._total = 0
        self._last = 0.0

    def begin(self, total: int, finished: int) -> None:
        """Say how much there is to do."""
        self._done, self._total = finished, total
        self.note(f"{total} cells, {finished} of them finished before")

    def finished(self, cell: Cell, seconds_left: float | None) -> None:
        """Say where the run is."""
        self._done += 1
        now = time.monotonic()
        if now - self._last >= 1 or self._done == self._total:
            self._last = now
            self.note(f"[{self._done}/{self._total}] {cell}; {describe_time_left(seconds_left)}")

    def note(self, message: str) -> None:
        """Print the message."""
        print(printable(message), file=self._stream, flush=True)


class BarProgress(Progress):
    """A bar that stays in place, with notes above it.

    Parameters
    ----------
    stream : text file
        A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(file=stream),
        )

    def begin(self, total: int, finished: int) -> None:
        """Draw the bar."""
        self._task = self._bar.add_task("cells", total=total, completed=finished, left="")
        self._bar.start()

    def finished(self, cell: Cell, seconds_left: float | None) -> None:
        """Move the bar."""
        self._bar.update(
            self._task,
            advance=1,
            description=escape(printable(str(cell))),
            left=escape(describe_time_left(seconds_left)),
        )

    def note(self, message: str) -> None:
        """Print the message above the bar."""
        self._bar.console.print(printable(message), markup=False, emoji=False, highlight=False, soft_wrap=True)

    def end(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()


def progress_on(stream: TextIO = sys.stderr) -> Progress:
    """The kind of progress that suits the stream."""
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)


def describe_time_left(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None:
        return "time left not known yet"
    if seconds == 0:
        return "done"
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s left"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
