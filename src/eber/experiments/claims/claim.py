"""What a claim of the paper is, and what can be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from eber.experiments.claims.evidence import Evidence


class Verdict(StrEnum):
    """What our runs say of a claim."""

    CONFIRMED = "confirmed"
    CONDITIONAL = "confirmed with a condition"
    NOT_CONFIRMED = "not confirmed"
    UNTESTABLE = "cannot be tested"
    MISSING = "not run"


@dataclass(frozen=True)
class Finding:
    """What came out.

    Parameters
    ----------
    verdict : Verdict
    ours : str
        Our figure, with its spread or interval.
    evidence : str
        Seeds, test and condition, or why it cannot be tested.
    no_model : str
        What no model at all has where that is better than EBER, and EBER's figure.
    level : bool
        Whether others are ahead of EBER by no more than chance may make.
    """

    verdict: Verdict
    ours: str
    evidence: str = ""
    no_model: str = ""
    level: bool = False


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be held against a run.

    Parameters
    ----------
    key : str
        A short name.
    text : str
        What the paper says.
    place : str
        Where it says so.
    paper : str
        The paper's figure.
    experiment : str
        Whose results it needs; empty where it needs none: its judge computes what it needs.
    command : str
        What to type for them; empty where it needs none.
    judge : callable
        Evidence of that experiment -> Finding.

    Raises
    ------
    MissingEvidence
        By the judge, where the results lack a row that it needs.
    """

    key: str
    text: str
    place: str
    paper: str
    experiment: str
    command: str
    judge: Callable[[Evidence], Finding]
