"""Environment-robust classification: EBER and the baselines it is compared with."""

__version__ = "0.1.0"

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import (
    PAPER_FORM,
    EBERClassifier,
    ERMClassifier,
    FishrClassifier,
    IRMClassifier,
    VRExClassifier,
)

__all__ = [
    "PAPER_FORM",
    "EBERClassifier",
    "ERMClassifier",
    "FishrClassifier",
    "IRMClassifier",
    "MultiEnvironmentData",
    "VRExClassifier",
    "__version__",
]
