"""A progress bar over epochs, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def epoch_progress(title: str, epochs: int) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """A bar with the current loss and the time left; yields what to call after each epoch."""
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=epochs, loss="")

        def on_epoch(done: int, terms: Mapping[str, float]) -> None:
            progress.update(task, completed=done, loss=f"loss {terms['loss']:.4f}")

        yield on_epoch
