"""Environment-robust classification: EBER and the baselines it is compared with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from eber.datasets.base import MultiEnvironmentData
    from eber.estimators import (
        PAPER_FORM,
        EBERClassifier,
        ERMClassifier,
        FishrClassifier,
        IRMClassifier,
        VRExClassifier,
        fit_many,
    )
    from eber.methods import Method, find_method, register_method

__all__ = [
    "PAPER_FORM",
    "EBERClassifier",
    "ERMClassifier",
    "FishrClassifier",
    "IRMClassifier",
    "Method",
    "MultiEnvironmentData",
    "VRExClassifier",
    "__version__",
    "find_method",
    "fit_many",
    "register_method",
]

_HOMES = {
    "MultiEnvironmentData": "eber.datasets.base",
    **dict.fromkeys(("Method", "find_method", "register_method"), "eber.methods"),
}


def __getattr__(name: str) -> Any:
    """Import torch and scikit-learn, which takes seconds, only when something that needs them is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'eber' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "eber.estimators")), name)


def __dir__() -> list[str]:
    return __all__
