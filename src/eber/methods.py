"""The methods there are, each declared once: `compare`, `reproduce`, `fit`, model folders and help texts read it here.

A method of one's own is any scikit-learn classifier with `predict_proba`. It comes in by one of three ways, and is then
found by its name like the others::

    register_method(MyClassifier, name="Mine", purpose="what it is for")   # in Python
    eber compare table.csv ... --methods ERM,mymodule:MyClassifier         # on the command line
    [project.entry-points."eber.methods"]                                  # in another package's pyproject.toml
    Mine = "mypackage.mine:MyClassifier"

A declaration is plain data that names its class, so that help texts need not import it, worker processes and output
folders can be handed it, and a report is written without running anybody's code.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ENTRY_POINTS = "eber.methods"
"""Entry point group of other packages: a name, and a classifier's class or a `Method`."""
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
    simplicity: int = 4
    by_default: bool = False
    in_paper: bool = False
    code: str = ""

    @property
    def classifier(self) -> Callable[..., Any]:
        """The class, or the function that makes a classifier; imported when it is asked for."""
        return _find_object(self.source)

    @property
    def is_network(self) -> bool:
        """Whether it is one of the library's own kind: trained by its loop, and saved as plain data."""
        from eber.estimators.base import EnvironmentClassifier

        return isinstance(self.classifier, type) and issubclass(self.classifier, EnvironmentClassifier)

    @property
    def takes_environments(self) -> bool:
        """Whether its fit is told which environment each row came from."""
        from eber.estimators.many_fits import takes_environments

        return takes_environments(self.build())

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


BUILT_IN = (
    Method(
        "EBER",
        "eber.estimators:EBERClassifier",
        "environments change the distribution of a latent z; says which environments a row resembles",
        "Slavutsky, Shen, Wu & Blei 2026",
        simplicity=3,
        by_default=True,
        in_paper=True,
    ),
    Method(
        "ERM",
        "eber.estimators:ERMClassifier",
        "a network on all rows pooled, whatever their environment: what the others have to beat",
        simplicity=1,
        by_default=True,
        in_paper=True,
    ),
    Method(
        "IRM",
        "eber.estimators:IRMClassifier",
        "a representation on which one classifier is best in every environment",
        "Arjovsky et al. 2019",
        penalty_parameter="penalty_weight",
        by_default=True,
        in_paper=True,
    ),
    Method(
        "V-REx",
        "eber.estimators:VRExClassifier",
        "risks that differ little between environments",
        "Krueger et al. 2021",
        penalty_parameter="penalty_weight",
        by_default=True,
        in_paper=True,
    ),
    Method(
        "Fishr",
        "eber.estimators:FishrClassifier",
        "gradients that vary alike in every environment",
        "Rame et al. 2022",
        penalty_parameter="penalty_weight",
        by_default=True,
        in_paper=True,
    ),
    Method(
        "Logistic regression",
        "sklearn.linear_model:LogisticRegression",
        "the reference that everybody can read",
        simplicity=0,
        by_default=True,
    ),
    Method(
        "Gradient boosting",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "the reference that is hard to beat on tables",
        simplicity=2,
        by_default=True,
    ),
)
"""The methods that come with the library, in the order of the tables."""

_registered: dict[str, Method] = {}
"""Methods of one's own, by name in small letters."""


def register_method(
    classifier: Callable[..., Any],
    *,
    name: str = "",
    purpose: str = "",
    paper: str = "",
    penalty_parameter: str | None = None,
    penalty_grid: Iterable[float] = (),
    simplicity: int = 4,
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
    if "<" in source or _find_object(source) is not classifier:
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
        if known.name.casefold() == key and known.source != method.source:
            if known.classifier is method.classifier:
                return known
            raise _taken(method, known)
    known = _registered.get(key, method)
    if known.source != method.source:
        raise _taken(method, known)
    _registered[key] = method
    return method


def find_method(name: str) -> Method:
    """The method of that name.

    Parameters
    ----------
    name : str
        In any letter case; or "module:Class" for a class of one's own, which is registered then.
    """
    for method in (*BUILT_IN, *_registered.values()):
        if name.casefold() == method.name.casefold() or name == method.source:
            return method
    if ":" in name:
        return register_method(_find_object(name))
    _load_entry_points()
    if name.casefold() in _registered:
        return _registered[name.casefold()]
    raise ValueError(
        f"There is no method {name!r}; there are {', '.join(method.name for method in all_methods())}. One of your own "
        "is named by module:Class."
    )


def all_methods() -> tuple[Method, ...]:
    """Every method there is: those of the library, then those that were registered and those of other packages."""
    _load_entry_points()
    return (*BUILT_IN, *_registered.values())


def default_methods() -> tuple[str, ...]:
    """Names of the methods that a comparison runs unasked."""
    return tuple(method.name for method in BUILT_IN if method.by_default)


def paper_methods() -> tuple[str, ...]:
    """Names of the methods that the paper compares."""
    return tuple(method.name for method in BUILT_IN if method.in_paper)


def network_methods() -> tuple[str, ...]:
    """Names of the library's own classifiers, which a model folder can hold."""
    return tuple(method.name for method in BUILT_IN if method.source.startswith("eber."))


def saved_name(kind: type) -> str:
    """What a model folder calls a class: its name for the library's own, "module:Class" for any other."""
    return kind.__name__ if _is_ours(kind) else f"{kind.__module__}:{kind.__qualname__}"


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


@cache
def _load_entry_points() -> None:
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


def _taken(method: Method, known: Method) -> ValueError:
    return ValueError(
        f"The name {method.name!r} of {method.source} is taken by {known.source}; call it otherwise, by the argument "
        "name of register_method or the attribute method_name of its class."
    )


def _is_ours(kind: Any) -> bool:
    return str(kind.__module__).split(".")[0] == "eber"


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
        if not _is_ours(part):
            try:
                files[inspect.getfile(part)] = None
            except (TypeError, OSError):  # compiled, or typed into a notebook
                continue
    digest = hashlib.sha256(repr((method.penalty_parameter, method.penalty_grid)).encode())
    for file in files:
        if Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _find_object(source: str) -> Any:
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
