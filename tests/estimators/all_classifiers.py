"""Every classifier of the library, for tests that hold of all."""

import eber
from eber import ERMClassifier, SDClassifier

CLASSIFIERS = [getattr(eber, name) for name in eber.__all__ if name.endswith("Classifier")]
NEED_ENVIRONMENTS = [classifier for classifier in CLASSIFIERS if classifier not in (ERMClassifier, SDClassifier)]
