"""Logarithms of predicted probabilities, for every classifier alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class LogProbabilitiesMixin:
    """Adds `predict_log_proba` to a classifier with `predict_proba`."""

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """log p(y|x), (n, K) with columns as in `classes_`; minus infinity where a probability is zero."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))  # type: ignore[attr-defined]
        return logarithms
