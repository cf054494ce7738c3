"""Whether memory holds what fits to a table take, beside the table itself."""

from __future__ import annotations

from eber.io.machine import memory_bytes
from eber.runs.progress import Progress
from eber.tables.preprocessing import Preprocessing
from eber.tables.readers.protocol import TooLargeError
from eber.tables.training import TrainingTable

COPIES = 7
"""Of a table's numbers in float64 that a process holds at its most: its columns, the rows of each fold of a search, and
what networks read of them. 6.4 were seen (docs/scale.md)."""
LIBRARIES = 300 << 20
MOST_COLUMNS = 32
"""That a feature becomes: its most frequent values, and whether it is missing."""


def processes_with_room(data: TrainingTable) -> int:
    """How many processes that fit methods to a table memory holds at once."""
    memory, n_columns = memory_bytes(), MOST_COLUMNS * len(data.schema.features)
    if _bytes(data, n_columns) > memory // 64:  # rather than always: it looks at all rows
        n_columns = len(Preprocessing.fit(data.columns, data.schema).names_out)
    return memory // _bytes(data, n_columns)


def require_room_to_fit(data: TrainingTable) -> None:
    """Refuse a table that can be read, and not fitted to, in this memory."""
    if processes_with_room(data) < 1:
        raise TooLargeError(f"Memory holds {data.name}, and not the fits to it.")


def jobs_with_room(data: TrainingTable, jobs: int, listener: Progress, *, can_be_sampled: bool) -> int:
    """As many of the jobs as memory holds beside this process, and one at least.

    Raises
    ------
    TooLargeError
        Where it does not hold one, and a sample can be compared in the table's place.
    """
    room = processes_with_room(data) - 1
    if room < 1 and can_be_sampled:
        raise TooLargeError(f"Memory holds {data.name}, and not the fits to it.")
    if room < jobs:
        needed = (
            "" if room else " Even one may take more than there is: draw a sample of the rows, or leave out columns."
        )
        listener.note(f"Memory holds the fits of {max(room, 1)} of {jobs} jobs at once: so many are run.{needed}")
    return max(min(room, jobs), 1)


def _bytes(data: TrainingTable, n_columns: int) -> int:
    return LIBRARIES + COPIES * 8 * len(data) * n_columns
