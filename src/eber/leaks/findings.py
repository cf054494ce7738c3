"""What a leak audit has to say, as values that can be kept beside scores and read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LeakKind = Literal["shared_identifiers", "near_rows", "usual_copies"]

ADVICE = (
    "Scores on these rows do not measure performance in a new environment: leave them out (`leaked_rows`), or the "
    "training environment they came from, and compare."
)


@dataclass(frozen=True)
class LeakFinding:
    """One finding.

    Parameters
    ----------
    kind : str
        "shared_identifiers": held-out rows carry an identifier that is also in the training data. "near_rows": they are
        nearer to a training row than chance allows. "usual_copies": they equal a training row, but not clearly more
        often than rows of the training data equal each other, so that they do not count as a leak.
    n_rows, n_held_out : int
        Held-out rows that it is about, and all that were compared.
    sentence : str
        The finding in plain words.
    """

    kind: LeakKind
    n_rows: int
    n_held_out: int
    sentence: str

    @property
    def is_leak(self) -> bool:
        """Whether it counts against the scores."""
        return self.kind != "usual_copies"
