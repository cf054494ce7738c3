"""What searches, pools and recalibrated classifiers have alike."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from eber.estimators.log_probabilities import LogProbabilitiesMixin


class TunedClassifierMixin(LogProbabilitiesMixin, ClassifierMixin):
    """Labels from probabilities, and a form as plain data, for a classifier with `predict_proba` and `classes_`."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        proba: NDArray[np.float64] = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[proba.argmax(1)]
        return predicted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a folder: arrays as safetensors, the rest as JSON. Nothing is pickled.

        Kinds that have no such form (pipelines, other people's classifiers) are refused.
        """
        from eber.tuning.persistence import save_tuned  # which imports the classes that are derived from this one

        check_is_fitted(self)
        save_tuned(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. No code from the folder is run.

        What it answers is what it answered; scikit-learn's models in it have become arrays.
        """
        from eber.tuning.persistence import load_tuned  # which imports the classes that are derived from this one

        loaded: Self = load_tuned(cls, path)
        return loaded
