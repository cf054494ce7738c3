"""scikit-learn classifiers."""

from eber.estimators.baselines import ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.estimators.eber import PAPER_FORM, EBERClassifier

__all__ = ["PAPER_FORM", "EBERClassifier", "ERMClassifier", "FishrClassifier", "IRMClassifier", "VRExClassifier"]
