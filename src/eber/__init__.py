"""Environment-robust classification: EBER and the baselines it is compared with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from eber.datasets.base import MultiEnvironmentData
    from eber.displays.adaptation import AdaptationDisplay
    from eber.displays.calibration import EnvironmentCalibrationDisplay
    from eber.displays.environment_weights import EnvironmentWeightsDisplay
    from eber.displays.latent_space import LatentSpaceDisplay
    from eber.displays.training_history import TrainingHistoryDisplay
    from eber.displays.uncertainty import UncertaintySplitDisplay
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
        VRExClassifier,
        fit_many,
    )
    from eber.methods import Method, find_method, register_method
    from eber.runs.backends import RayCluster
    from eber.tables.model_folder import TableModel
    from eber.tables.predictions import TablePredictions
    from eber.tables.prepared.folder import PreparedTable
    from eber.tables.transformer import TablePreprocessor
    from eber.tuning.pool import EnvironmentPool
    from eber.tuning.recalibration import RecalibratedClassifier
    from eber.tuning.search import EnvironmentSearch
    from eber.workflow.claiming import Claims, claims
    from eber.workflow.comparing import compare_table
    from eber.workflow.fitting import fit_table, load_model
    from eber.workflow.predicting import predict_folder
    from eber.workflow.preparing import prepare_table
    from eber.workflow.reporting import read_results
    from eber.workflow.reproducing import reproduce, reproduce_all
    from eber.workflow.reproduction import Reproduction
    from eber.workflow.table_comparison import TableComparison

_HOMES = {
    "AdaptationDisplay": "eber.displays.adaptation",
    "EnvironmentCalibrationDisplay": "eber.displays.calibration",
    "EnvironmentWeightsDisplay": "eber.displays.environment_weights",
    "LatentSpaceDisplay": "eber.displays.latent_space",
    "TrainingHistoryDisplay": "eber.displays.training_history",
    "UncertaintySplitDisplay": "eber.displays.uncertainty",
    "EnvironmentPool": "eber.tuning.pool",
    "EnvironmentSearch": "eber.tuning.search",
    "Claims": "eber.workflow.claiming",
    "Method": "eber.methods",
    "MultiEnvironmentData": "eber.datasets.base",
    "PreparedTable": "eber.tables.prepared.folder",
    "RecalibratedClassifier": "eber.tuning.recalibration",
    "RayCluster": "eber.runs.backends",
    "Reproduction": "eber.workflow.reproduction",
    "TableComparison": "eber.workflow.table_comparison",
    "TableModel": "eber.tables.model_folder",
    "TablePredictions": "eber.tables.predictions",
    "TablePreprocessor": "eber.tables.transformer",
    "claims": "eber.workflow.claiming",
    "compare_table": "eber.workflow.comparing",
    "find_method": "eber.methods",
    "fit_table": "eber.workflow.fitting",
    "load_model": "eber.workflow.fitting",
    "predict_folder": "eber.workflow.predicting",
    "prepare_table": "eber.workflow.preparing",
    "read_results": "eber.workflow.reporting",
    "register_method": "eber.methods",
    "reproduce": "eber.workflow.reproducing",
    "reproduce_all": "eber.workflow.reproducing",
}
"""Where names are that are not of `eber.estimators`."""

__all__ = [
    "PAPER_FORM",
    "ANDMaskClassifier",
    "AdaptationDisplay",
    "CORALClassifier",
    "Claims",
    "EBERClassifier",
    "EQRMClassifier",
    "ERMClassifier",
    "EnvironmentCalibrationDisplay",
    "EnvironmentPool",
    "EnvironmentSearch",
    "EnvironmentWeightsDisplay",
    "FishrClassifier",
    "GroupDROClassifier",
    "IBERMClassifier",
    "IBIRMClassifier",
    "IGAClassifier",
    "IRMClassifier",
    "LatentSpaceDisplay",
    "MMDClassifier",
    "Method",
    "MultiEnvironmentData",
    "PreparedTable",
    "RayCluster",
    "RecalibratedClassifier",
    "Reproduction",
    "SDClassifier",
    "TableComparison",
    "TableModel",
    "TablePredictions",
    "TablePreprocessor",
    "TrainingHistoryDisplay",
    "UncertaintySplitDisplay",
    "VRExClassifier",
    "__version__",
    "claims",
    "compare_table",
    "find_method",
    "fit_many",
    "fit_table",
    "load_model",
    "predict_folder",
    "prepare_table",
    "read_results",
    "register_method",
    "reproduce",
    "reproduce_all",
]


def __getattr__(name: str) -> Any:
    """Import torch and scikit-learn, which takes seconds, only when something that needs them is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'eber' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "eber.estimators")), name)


def __dir__() -> list[str]:
    return __all__
