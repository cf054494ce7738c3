"""Classes of a label: which of two is the positive one, and which may stand for a missing label."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.tables.guesses import is_code

POSITIVE = (
    *("1", "true", "yes", "y", "ja", "oui", "si", "sí", "+", "++", "pos", "positive", "positiv", "present", "abnormal"),
    *("case", "cases", "patient", "diseased", "disease", "sick", "ill", "infected", "malignant", "cancer", "event"),
    *("dead", "died", "death", "deceased", "failure", "failed", "relapse"),
)
NEGATIVE = (
    *("0", "-1", "false", "no", "n", "nein", "non", "-", "neg", "negative", "negativ", "absent", "none", "normal"),
    *("control", "controls", "healthy", "well", "uninfected", "benign", "alive", "survived", "survivor", "censored"),
)
"""What clinicians write, in small letters."""
UNKNOWN = (
    *("unknown", "unbekannt", "missing", "undetermined", "unclear", "indeterminate", "n.a.", "k.a.", "nd", "n.d."),
    *("not known", "not available", "not done", "don't know"),
)
"""Names of a class that say that nobody knows the class."""
_WHOLE_NUMBER = re.compile(r"([+-]?(?:0|[1-9][0-9]{0,14}))(?:\.0{0,2})?")
"""Not 01, 1_0 or 1.000, which are names."""


def as_whole_number(text: str) -> str:
    """1, 1.0 and +1 as 1: files write one number in several ways. Any other text as it is."""
    found = _WHOLE_NUMBER.fullmatch(text)
    return str(int(found[1])) if found else text


def numbers_or_names(texts: NDArray[Any]) -> NDArray[Any]:
    """Different texts as whole numbers where all of them are such, else as they are."""
    if not all(map(_WHOLE_NUMBER.fullmatch, texts.tolist())):
        return texts
    return np.array([int(as_whole_number(text)) for text in texts.tolist()])


def index_of_class(classes: NDArray[Any]) -> Callable[[str], int | None]:
    """From a text to the class that it names, counted as in `classes` (K,); to None where it names none."""
    known = {str(label): index for index, label in enumerate(classes)}
    return lambda text: known.get(text, known.get(as_whole_number(text)))


def choose_positive(classes: NDArray[Any], counts: NDArray[np.int64], given: str | None, where: str) -> tuple[str, str]:
    """The positive one of two classes as text, and why it was chosen in a few words; empty for more classes.

    The one that the user names; else the one that a clinician would (case, yes, 1, +, against control, no, 0, -); else
    the rarer one, or the last by order where both are as frequent.

    Parameters
    ----------
    classes : array of shape (K,)
        In their order.
    counts : array of shape (K,)
        Rows of each.
    given : str, optional
        What the user named.
    where : str
        The label's column and table, for the refusal.
    """
    texts = [str(label) for label in classes]
    if given is not None and (len(texts) != 2 or given not in texts):
        listed = ", ".join(texts[:12]) + (", ..." if len(texts) > 12 else "")
        raise ValueError(f"{where} has the classes {listed}; the positive class is one of two: {given!r} is not.")
    if len(texts) != 2:
        return "", ""
    if given is not None:
        return given, ""
    words = [text.strip().lower() for text in texts]
    says_yes = [word in POSITIVE for word in words]
    says_no = [word in NEGATIVE for word in words]
    if set(words) == {"1", "2"}:  # either may be the cases
        says_yes = [False, False]
    if sum(says_yes) == 1:
        return texts[says_yes.index(True)], ""
    if sum(says_no) == 1:
        return texts[says_no.index(False)], ""
    rarer = 1 if counts[1] <= counts[0] else 0
    reason = "the rarer of the two" if counts[0] != counts[1] else "the last of two as frequent"
    return texts[rarer], reason


def ordered_classes(labels: NDArray[Any], positive: str) -> NDArray[Any]:
    """All classes in their order, (K,); of two, the positive one last."""
    classes = np.unique(labels)
    return classes[::-1] if positive and len(classes) == 2 and str(classes[0]) == positive else classes


def say_unknown(classes: NDArray[Any], counts: NDArray[np.int64], name: str) -> list[str]:
    """A remark for each class whose name says that nobody knows the class, as "unknown" and -999 do."""
    return [
        f"Check label {name!r}: {str(label)!r} ({count} {'row' if count == 1 else 'rows'}) is a class of its own here; "
        f"where it means that the label is missing, give --missing {shlex.quote(str(label))}."
        for label, count in zip(classes, counts, strict=True)
        if str(label).strip().lower() in UNKNOWN or is_code(str(label))
    ]
