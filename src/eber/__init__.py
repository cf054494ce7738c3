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
        Table,
        VRExClassifier,
        fit_many,
    )
    from eber.tuning.pool import EnvironmentPool
    from eber.tuning.recalibration import RecalibratedClassifier
    from eber.tuning.search import EnvironmentSearch

__all__ = [
    "PAPER_FORM",
    "EBERClassifier",
    "ERMClassifier",
    "EnvironmentPool",
    "EnvironmentSearch",
    "FishrClassifier",
    "IRMClassifier",
    "MultiEnvironmentData",
    "RecalibratedClassifier",
    "Table",
    "VRExClassifier",
    "__version__",
    "fit_many",
]


_HOMES = {
    "EnvironmentPool": "eber.tuning.pool",
    "EnvironmentSearch": "eber.tuning.search",
    "MultiEnvironmentData": "eber.datasets.base",
    "RecalibratedClassifier": "eber.tuning.recalibration",
}
"""Where a name lives, if not in `eber.estimators`."""


def __getattr__(name: str) -> Any:
    """Import torch and scikit-learn, which takes seconds, only when something that needs them is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'eber' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "eber.estimators")), name)


def __dir__() -> list[str]:
    return __all__
