"""Methods of a user's own, for the tests of the registry."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from eber import ERMClassifier


class CoinClassifier(ClassifierMixin, BaseEstimator):
    """Knows nothing: every class is as likely as any other, so that its NLL is log 2 wherever there are two."""

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class TiltedCoinClassifier(CoinClassifier):
    """The same for every row too, with a weight that says how sure it is of the last class."""

    method_name = "Tilted coin"

    def __init__(self, penalty_weight: float = 1.0) -> None:
        self.penalty_weight = penalty_weight

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        odds = np.append(np.ones(len(self.classes_) - 1), self.penalty_weight)
        return np.tile(odds / odds.sum(), (len(X), 1))


class RollCallClassifier(CoinClassifier):
    """Asks for the environments, and keeps their names."""

    method_name = "Roll call"

    def fit(self, X: Any, y: NDArray[Any], *, environments: NDArray[Any]) -> Self:  # type: ignore[override] # asks more
        self.environments_ = np.unique(environments)
        return super().fit(X, y)


class BrokenClassifier(CoinClassifier):
    """Cannot be fitted."""

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        raise RuntimeError("the coin is lost")


class RelabelledClassifier(ERMClassifier):
    """A network of one's own kind, which a model folder can hold."""


class Scaler(BaseEstimator):
    """No classifier."""


def loaded_coin(random_state: int = 0) -> TiltedCoinClassifier:
    """A function that makes a classifier."""
    return TiltedCoinClassifier(penalty_weight=1.0 + random_state)
