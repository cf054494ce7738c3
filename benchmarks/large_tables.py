"""A million rows: EBER's fit beside boosting's, with batches of 64 and with those that ``"auto"`` stands for."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw

COLUMNS, ENVIRONMENTS, PASSES, TEST_ENVIRONMENTS = 30, 12, 3, 24
TEST_ROWS = 2_000
"""Of each environment that no fit has seen."""


def against_boosting(n_rows: int = 1_000_000) -> dict[str, dict[str, float]]:
    """Processor seconds of a fit, in units of boosting's, and NLL in new environments; one run, one thread."""
    own = ParametricParameters(m_train=ENVIRONMENTS, n=n_rows // ENVIRONMENTS, d=COLUMNS, m_validation=1, m_test=1)
    train = draw(own, random_state=0).train
    # Validation environments, and not the simulation's test environments: by such the rule for batches was looked at.
    new = draw(ParametricParameters(m_validation=TEST_ENVIRONMENTS, n=TEST_ROWS, d=COLUMNS), random_state=1).validation
    X, told = train.X.astype(np.float32), {"environments": train.environments}
    contestants: dict[str, tuple[Any, dict[str, Any]]] = {
        "boosting": (HistGradientBoostingClassifier(random_state=0), {}),
        "EBER, batches of 64": (EBERClassifier(epochs=PASSES, random_state=0), told),
        'EBER, batch_size="auto"': (EBERClassifier(epochs=PASSES, batch_size="auto", random_state=0), told),
    }
    figures: dict[str, dict[str, float]] = {"processor time / boosting's": {}, "NLL in new environments": {}}
    for name, (classifier, environments) in contestants.items():
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            start = time.process_time()
            classifier.fit(X, train.y, **environments)
            seconds = time.process_time() - start
            p = classifier.predict_proba(new.X)[np.arange(len(new.y)), new.y]
        figures["processor time / boosting's"][name] = seconds
        figures["NLL in new environments"][name] = float(-np.log(np.clip(p, 1e-12, None)).mean())
    ratios = figures["processor time / boosting's"]
    figures["processor time / boosting's"] = {name: value / ratios["boosting"] for name, value in ratios.items()}
    return figures
