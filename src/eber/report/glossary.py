"""The words of a page, spelled out once for readers who do not use them every day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eber.evaluation.metrics import METRICS, Quantity

_OF_COMPARISONS = (
    (
        "Held-out environment",
        "An environment whose rows a method did not see while it learned: how it does there is how it may do in a new "
        "one.",
    ),
    (
        "95 % interval",
        "The range in which the true value lies in 19 of 20 such intervals. Few environments make wide intervals.",
    ),
    (
        "p",
        "How probable a difference at least this large would be if there were none. Below 0.05 it is called "
        "significant; above, the methods are called tied, which does not prove that they are equal.",
    ),
    ("Behind", "By how much a method's mean is worse than that of the one on top."),
    (
        "Threshold",
        "The probability from which on one acts: treats, tests, or calls somebody.",
    ),
    ("Sensitivity", "Of those who have the event, the share that is called positive."),
    ("Specificity", "Of those who do not have it, the share that is called negative."),
    (
        "Positive predictive value (PPV)",
        "Of those who are called positive, the share that has the event. It falls where the event is rare.",
    ),
    ("Negative predictive value (NPV)", "Of those who are called negative, the share that does not have the event."),
    (
        "Net benefit",
        "True positives for each row, less false positives weighed by the odds of the threshold: acting from 20 % on "
        "says that one missed event is as bad as four needless actions. To be compared with treating everybody and "
        "nobody.",
    ),
    (
        "Importance of a column",
        "By how much the NLL rises in a held-out environment when the values of this column are shuffled among its "
        "rows. About zero: the method does without it. Below zero: the column misleads it there. Columns that say the "
        "same share their importance.",
    ),
    (
        "p(e|x)",
        "For one row x, how much it resembles each training environment e, in shares that sum to one.",
    ),
    (
        "Entropy",
        "How unsure a prediction is, in nats: 0 is certainty, 0.69 is half and half between two classes.",
    ),
    (
        "Latent, E[z|x]",
        "The few numbers into which EBER sums up a row before it predicts.",
    ),
    (
        "Recalibrated",
        "Probabilities made steeper or flatter, higher or lower, so that they fit the labels of a new environment.",
    ),
    (
        "Adapted",
        "EBER's mixture of training environments, re-estimated from rows of the new environment without their labels.",
    ),
)


@dataclass(frozen=True)
class Term:
    """A word and what it means."""

    name: str
    meaning: str


def measures(quantities: Iterable[Quantity]) -> list[Term]:
    """The measures among these, spelled out, each with its better end."""
    terms = []
    for quantity in quantities:
        if quantity.meaning:
            better = quantity.direction.strip("()")
            terms.append(Term(quantity.label, f"{quantity.full_name}; {better}. {quantity.meaning}"))
    return terms


def comparison_terms() -> list[Term]:
    """All words of the page of a comparison."""
    return [*measures(METRICS.values()), *(Term(*entry) for entry in _OF_COMPARISONS)]
