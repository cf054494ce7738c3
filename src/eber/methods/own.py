"""Methods of one's own: registered in Python, named as module:Class, or offered by another package::

    register_method(MyClassifier, name="Mine", purpose="what it is for")   # in Python
    eber compare table.csv ... --methods ERM,mymodule:MyClassifier         # on the command line
    [project.entry-points."eber.methods"]                                  # in another package's pyproject.toml
    Mine = "mypackage.mine:MyClassifier"

All are found by their names then.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from eber.methods.built_in import BUILT_IN
from eber.methods.method import Method, find_object

ENTRY_POINTS = "eber.methods"
"""Entry point group of other packages: a name, and a classifier's class or a `Method`."""

registered: dict[str, Method] = {}
"""Methods of one's own, by name in small letters."""


def register_method(
    classifier: Callable[..., Any],
    *,
    name: str = "",
    purpose: str = "",
    paper: str = "",
    penalty_parameter: str | None = None,
    penalty_grid: Iterable[float] = (),
    simplicity: int = 5,
) -> Method:
    """Bring a method of one's own into `compare` and `reproduce`.

    Parameters
    ----------
    classifier : class or function
        A scikit-learn classifier with `predict_proba`, or a function that makes one; at the top level of a module, so
        that worker processes can import it. Its `fit` is told `environments` where it takes them.
    name : str
        By default the class's attribute `method_name`, or its name without "Classifier".
    purpose, paper, penalty_grid, simplicity
        As for `Method`.
    penalty_parameter : str, optional
        By default "penalty_weight" where the classifier takes it.

    Returns
    -------
    Method

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from eber import find_method, register_method
    >>> method = register_method(GaussianNB, name="Naive Bayes", purpose="columns that are independent given the label")
    >>> find_method("naive bayes").build(random_state=0, epochs=5)
    GaussianNB()
    """
    source = f"{classifier.__module__}:{classifier.__qualname__}"
    if "<" in source or find_object(source) is not classifier:
        raise ValueError(
            f"{source} cannot be found by this name: define it at the top level of a module, so that worker processes "
            "can import it."
        )
    if isinstance(classifier, type) and not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise ValueError(f"{source} has no fit and predict_proba, so that it is no classifier that can be compared.")
    weighed = "penalty_weight" in inspect.signature(classifier).parameters
    method = Method(
        name or _name_of(classifier),
        source,
        purpose or next(iter((inspect.getdoc(classifier) or "").splitlines()), ""),
        paper,
        ("penalty_weight" if weighed else "") if penalty_parameter is None else penalty_parameter,
        tuple(penalty_grid),
        simplicity,
    )
    return add_method(replace(method, code=_code_of(classifier, method)))


def add_method(method: Method) -> Method:
    """Have a declaration found by its name; one of the same name is refused unless it is of the same class."""
    key = method.name.casefold()
    for known in BUILT_IN:
        if known.name.casefold() == key:
            if known.source == method.source or known.classifier is method.classifier:
                return known
            raise _taken(method, known)
    known = registered.get(key, method)
    if known.source != method.source:
        raise _taken(method, known)
    registered[key] = method
    return method


@cache
def load_entry_points() -> None:
    """Register what other packages offer; one that is broken is named, and the others are there."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            found = point.load()
            if isinstance(found, Method):
                add_method(replace(found, by_default=False, in_paper=False, code=_code_of(found.classifier, found)))
            else:
                register_method(found, name=point.name)
        except Exception as error:  # whatever a stranger's package does, the other methods can be used
            warnings.warn(
                f"The method {point.name!r}, which another package offers as {point.value}, cannot be used: "
                f"{type(error).__name__}: {error}",
                stacklevel=3,
            )


def is_ours(kind: Any) -> bool:
    """Whether a class or function is the library's."""
    return str(kind.__module__).split(".")[0] == "eber"


def _taken(method: Method, known: Method) -> ValueError:
    return ValueError(
        f"The name {method.name!r} of {method.source} is taken by {known.source}; call it otherwise, by the argument "
        "name of register_method or the attribute method_name of its class."
    )


def _name_of(classifier: Callable[..., Any]) -> str:
    own: str = getattr(classifier, "method_name", "")
    return own or classifier.__name__.removesuffix("Classifier") or classifier.__name__


def _code_of(classifier: Callable[..., Any], method: Method) -> str:
    """Changes with the files in which a class and its bases are written, and with what is declared of its weight.

    What these files import is not looked at; the library itself is known by its version.
    """
    parts = classifier.__mro__ if isinstance(classifier, type) else (classifier,)
    files: dict[str, None] = {}
    for part in parts:
        if not is_ours(part):
            try:
                files[inspect.getfile(part)] = None
            except (TypeError, OSError):  # compiled, or typed into a notebook
                continue
    digest = hashlib.sha256(repr((method.penalty_parameter, method.penalty_grid)).encode())
    for file in files:
        if Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()
