"""Every classifier of the library, for tests that hold of all."""

import eber
from eber import ERMClassifier, SDClassifier
from eber.estimators.base import EnvironmentClassifier

_NAMED = [getattr(eber, name) for name in eber.__all__ if name.endswith("Classifier")]
CLASSIFIERS = [kind for kind in _NAMED if issubclass(kind, EnvironmentClassifier)]
NEED_ENVIRONMENTS = [classifier for classifier in CLASSIFIERS if classifier not in (ERMClassifier, SDClassifier)]
