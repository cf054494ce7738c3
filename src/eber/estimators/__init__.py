"""scikit-learn classifiers."""

from eber.estimators.baselines import ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.estimators.eber import PAPER_FORM, EBERClassifier
from eber.estimators.many_fits import fit_many

__all__ = [
    "PAPER_FORM",
    "EBERClassifier",
    "ERMClassifier",
    "FishrClassifier",
    "IRMClassifier",
    "VRExClassifier",
    "fit_many",
]
