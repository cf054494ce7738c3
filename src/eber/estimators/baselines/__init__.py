"""The baselines, one a file: a representation of x, a linear classifier on it, and an objective."""

from eber.estimators.baselines.andmask import ANDMaskClassifier
from eber.estimators.baselines.base import PenalisedClassifier
from eber.estimators.baselines.coral import CORALClassifier
from eber.estimators.baselines.eqrm import EQRMClassifier
from eber.estimators.baselines.erm import ERMClassifier
from eber.estimators.baselines.fishr import FishrClassifier
from eber.estimators.baselines.groupdro import GroupDROClassifier
from eber.estimators.baselines.ib_erm import IBERMClassifier
from eber.estimators.baselines.ib_irm import IBIRMClassifier
from eber.estimators.baselines.iga import IGAClassifier
from eber.estimators.baselines.irm import IRMClassifier
from eber.estimators.baselines.mmd import MMDClassifier
from eber.estimators.baselines.sd import SDClassifier
from eber.estimators.baselines.vrex import VRExClassifier

__all__ = [
    "ANDMaskClassifier",
    "CORALClassifier",
    "EQRMClassifier",
    "ERMClassifier",
    "FishrClassifier",
    "GroupDROClassifier",
    "IBERMClassifier",
    "IBIRMClassifier",
    "IGAClassifier",
    "IRMClassifier",
    "MMDClassifier",
    "PenalisedClassifier",
    "SDClassifier",
    "VRExClassifier",
]
