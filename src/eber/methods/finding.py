"""Methods by name, and the sets of them that commands begin with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eber.methods import own
from eber.methods.built_in import BUILT_IN
from eber.methods.method import Method, find_object

ALL = "all"
"""In place of a name: every method that is installed."""


def find_method(name: str) -> Method:
    """The method of that name.

    Parameters
    ----------
    name : str
        In any letter case; or "module:Class" for a class of one's own, which is registered then.
    """
    for method in (*BUILT_IN, *own.registered.values()):
        if name.casefold() == method.name.casefold() or name == method.source:
            return method
    if ":" in name:
        return own.register_method(find_object(name))
    own.load_entry_points()
    if name.casefold() in own.registered:
        return own.registered[name.casefold()]
    raise ValueError(
        f"There is no method {name!r}; there are {', '.join(method.name for method in all_methods())}. One of your own "
        "is named by module:Class."
    )


def all_methods() -> tuple[Method, ...]:
    """Every method there is: those of the library, then those that were registered and those of other packages."""
    own.load_entry_points()
    return (*BUILT_IN, *own.registered.values())


def methods_named(names: Iterable[str]) -> list[Method]:
    """The methods of these names, each once; "all" stands for every method that is installed.

    Raises
    ------
    ValueError
        For a name that there is no method of, and for a method whose package is not installed.
    """
    found: dict[str, Method] = {}
    for name in names:
        several = name.casefold() == ALL
        for method in [m for m in all_methods() if m.is_installed] if several else [find_method(name)]:
            found[method.name] = method
    for method in found.values():
        if not method.is_installed:
            raise ValueError(
                f"{method.name} is not installed; it is an extra: pip install 'eber[boosting]', or leave this method "
                "out."
            )
    return list(found.values())


def default_methods() -> tuple[str, ...]:
    """Names of the methods that a comparison runs unasked."""
    return tuple(method.name for method in BUILT_IN if method.by_default)


def paper_methods() -> tuple[str, ...]:
    """Names of the methods that the paper compares."""
    return tuple(method.name for method in BUILT_IN if method.in_paper)


def saved_name(kind: type) -> str:
    """What a model folder calls a class: its name for the library's own, "module:Class" for any other."""
    return kind.__name__ if own.is_ours(kind) else f"{kind.__module__}:{kind.__qualname__}"


def find_saved_class(name: str) -> Any:
    """The class that `saved_name` names. Only methods that are known here are looked at: a folder imports nothing."""
    for method in BUILT_IN:
        if method.source == f"eber.estimators:{name}":
            return method.classifier
    for method in all_methods():
        if method.source == name:
            return method.classifier
    raise ValueError(
        f"its classifier {name} is of no method that is known here; one of your own has to be registered before its "
        "models are loaded, by register_method or as an entry point"
    )
