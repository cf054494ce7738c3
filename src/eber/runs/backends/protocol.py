"""What a run and the place where it is computed say to each other.

The run decides what is computed and keeps what comes back; a backend only carries tasks out. So no file system has to
be shared, and no lock has to hold across machines.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What BLAS and OpenMP read when they are loaded: small fits stall when every process wants every core."""


@dataclass(frozen=True)
class Failure:
    """What became of a task that has no answer.

    Parameters
    ----------
    cause : str
        One sentence.
    details : str
        The traceback where there is one.
    """

    cause: str
    details: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """That of an exception."""
        return cls(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


class Work(Protocol):
    """What is to be done with tasks; it can be pickled, and so can the tasks and the answers."""

    def check_local(self) -> None:
        """Refuse what other processes of this machine could not do."""

    def travelling(self, *, with_files: bool) -> Work:
        """The same for other machines, which check what they were sent and what they have.

        Parameters
        ----------
        with_files : bool
            Whether the data files are sent along, where they are meant to travel; otherwise they must lie under the
            same path everywhere.
        """

    def begin(self) -> None:
        """Called once in each process, before any task."""

    def compute(self, tasks: list[Any]) -> list[Any]:
        """Answers to tasks that are done together, in their order."""


class Backend(Protocol):
    """A place where work is computed; a context manager, whose end is the end of all that runs there."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def size(self) -> int:
        """How many blocks of tasks can run at once, just now."""

    @property
    def has_idle(self) -> bool:
        """Whether tasks can be handed out now."""

    @property
    def running(self) -> Sequence[Any]:
        """The tasks that were handed out and not answered yet."""

    def submit(self, tasks: list[Any]) -> None:
        """Hand out tasks that are done together."""

    def wait(self, timeout: float) -> list[tuple[Any, Any]]:
        """Tasks with their answers, or a `Failure`, that came within so many seconds; returns as soon as any did."""
