"""What a method is, declared as plain data that names its class."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

PENALTY_WEIGHTS = (1.0, 10.0, 100.0)
"""Weights that are tried where neither an experiment nor the method has a grid of its own."""


@dataclass(frozen=True)
class Method:
    """A method, declared.

    Parameters
    ----------
    name : str
        What it is called in tables and on the command line.
    source : str
        Where its classifier is: "module:Class", or "module:function" for a function that makes one.
    purpose : str
        What it is for, in a line.
    paper : str
        Where it comes from.
    penalty_parameter : str
        The classifier's parameter for the weight that is chosen on validation rows; empty where it has none.
    penalty_grid : tuple of float
        Weights to try in place of the experiment's grid; empty for that.
    simplicity : int
        The order in which methods that cannot be told apart are recommended, the simplest first.
    by_default : bool
        Whether `compare` runs it unasked.
    in_paper : bool
        Whether the paper compares it, so that its experiments run it unasked.
    package : str
        The package of an extra that it needs; empty where it needs none.
    code : str
        Hash of the files in which a method of one's own is written; empty for those that come with the library, whose
        version says as much.
    """

    name: str
    source: str
    purpose: str = ""
    paper: str = ""
    penalty_parameter: str = ""
    penalty_grid: tuple[float, ...] = ()
    simplicity: int = 5
    by_default: bool = False
    in_paper: bool = False
    package: str = ""
    code: str = ""

    @property
    def classifier(self) -> Callable[..., Any]:
        """The class, or the function that makes a classifier; imported when it is asked for."""
        return find_object(self.source)

    @property
    def is_installed(self) -> bool:
        """Whether the package that it needs, if any, is there."""
        return not self.package or importlib.util.find_spec(self.package) is not None

    @property
    def is_network(self) -> bool:
        """Whether it is one of the library's own kind: trained by its loop, and saved as plain data."""
        from eber.estimators.base import EnvironmentClassifier

        return isinstance(self.classifier, type) and issubclass(self.classifier, EnvironmentClassifier)

    @property
    def takes_environments(self) -> bool:
        """Whether its fit is told which environment each row came from."""
        from eber.estimators.many_fits import takes

        return takes(self.build(), "environments")

    def build(self, **settings: Any) -> Any:
        """An unfitted classifier, with those of the settings that are meant for it.

        The library's own kind, and a function that makes a classifier, get all that they take. Any other class gets
        `random_state` and its penalty weight: what else has the same name may mean another thing there (a
        `learning_rate` for networks is none for trees).
        """
        classifier = self.classifier
        taken = set(inspect.signature(classifier).parameters)
        if isinstance(classifier, type) and not self.is_network:
            taken &= {"random_state", self.penalty_parameter}
        return classifier(**{name: value for name, value in settings.items() if name in taken})

    def grid(self, shared: Sequence[float]) -> tuple[float, ...]:
        """The weights to try: its own where it has some, else the shared ones; of its own the middle one for one."""
        if not self.penalty_grid:
            return tuple(shared)
        return self.penalty_grid if len(shared) > 1 else (middle_weight(self.penalty_grid),)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Method:
        """From what `to_json` gave; nothing is imported."""
        return cls(**{**content, "penalty_grid": tuple(content["penalty_grid"])})


def middle_weight(grid: Sequence[float]) -> float:
    """The weight that is used where none can be chosen."""
    return grid[len(grid) // 2]


def find_object(source: str) -> Any:
    """What stands at "module:attribute"."""
    module, _, attributes = source.partition(":")
    try:
        found: Any = _import(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except Exception as error:  # whatever a user's module does when it is imported
        raise ValueError(f"Method {source} cannot be imported: {type(error).__name__}: {error}") from error
    return found


def _import(module: str) -> ModuleType:
    """A module; one that is not installed may lie in the working folder, which a command does not see."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        folder = os.getcwd()
        if error.name != module.split(".")[0] or folder in sys.path:
            raise
    importlib.invalidate_caches()
    sys.path.append(folder)  # last, so that it hides nothing; worker processes inherit it
    try:
        return importlib.import_module(module)
    except BaseException:
        sys.path.remove(folder)
        raise
