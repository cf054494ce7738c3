"""scikit-learn classifiers."""

from eber.estimators.baselines import (
    ANDMaskClassifier,
    CORALClassifier,
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
    VRExClassifier,
)
from eber.estimators.eber import PAPER_FORM, EBERClassifier
from eber.estimators.many_fits import fit_many

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
    "SDClassifier",
    "VRExClassifier",
    "fit_many",
]
