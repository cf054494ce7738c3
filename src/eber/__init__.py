"""Environment-robust classification: EBER and the baselines it is compared with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from eber.datasets.base import MultiEnvironmentData
    from eber.estimators import (
        PAPER_FORM,
        ANDMaskClassifier,
        CORALClassifier,
        EBERClassifier,
        EQRMClassifier,
        ERMClassifier,
        FishrClassifier,
        GroupDROClassifier,
        IBERMClassifier,
        IBIRMClassifier,
        IGAClassifier,
        IRMClassifier,
        MMDClassifier,
        SDClassifier,
        Table,
        VRExClassifier,
        fit_many,
    )

__all__ = [
    "PAPER_FORM",
    "ANDMaskClassifier",
    "CORALClassifier",
    "EBERClassifier",
    "EQRMClassifier",
    "ERMClassifier",
    "FishrClassifier",
    "GroupDROClassifier",
    "IBERMClassifier",
    "IBIRMClassifier",
    "IGAClassifier",
    "IRMClassifier",
    "MMDClassifier",
    "MultiEnvironmentData",
    "SDClassifier",
    "Table",
    "VRExClassifier",
    "__version__",
    "fit_many",
]


def __getattr__(name: str) -> Any:
    """Import torch and scikit-learn, which takes seconds, only when something that needs them is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'eber' has no attribute {name!r}")
    home = "eber.datasets.base" if name == "MultiEnvironmentData" else "eber.estimators"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
