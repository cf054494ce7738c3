"""Any classifier with a few labels from the new environment, and with a word on how far off it may be there."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from eber.estimators import EBERClassifier
from eber.estimators.validation import index_of
from eber.tuning.calibration import estimate_calibration
from eber.tuning.few_labels import Array, EnvironmentGain, learn_labels, said
from eber.tuning.pool import EnvironmentPool
from eber.tuning.search import EnvironmentSearch, checked_table
from eber.tuning.tuned_classifier import TunedClassifierMixin


class RecalibratedClassifier(TunedClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose slope and intercepts may differ from environment to environment.

    p'(y|x) = softmax(s log p(y|x) + b); the distribution of s and b over environments is estimated by leaving training
    environments out (`eber.tuning.calibration`). `adapt` takes labelled rows of a new environment and returns a copy
    with the posterior, and `predict_interval` says where a probability may lie in a new environment, before any label
    and after some. For EBER, `adapt` also tries weights on p(y|x,e) (`eber.tuning.few_labels`).

    Parameters
    ----------
    estimator : EnvironmentSearch, EnvironmentPool, or any classifier
        Not fitted. A classifier that is none of the two is fitted as it is, without a search.

    Attributes
    ----------
    estimator_ : the fitted search or pool
    calibration_ : `eber.tuning.calibration.Calibration`
    environment_gain_ : `eber.tuning.few_labels.EnvironmentGain` or None
        On the copies that `adapt` returns: what weights on p(y|x,e) gained on labelled rows that were left out. They
        are used where it is clear. None for a classifier that has none, and where earlier labels decided.
    classes_ : array

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from eber.datasets.parametric import draw
    >>> from eber.tuning.recalibration import RecalibratedClassifier
    >>> data = draw(random_state=0)
    >>> model = RecalibratedClassifier(LogisticRegression())
    >>> model = model.fit(data.train.X, data.train.y, environments=data.train.environments)
    >>> new = data.test.select(data.test.environments == data.test.environments[0])
    >>> adapted = model.adapt(new.X[:30], new.y[:30])
    >>> wide, narrow = (m.predict_interval(new.X[30:]) for m in (model, adapted))
    >>> bool((narrow[1] - narrow[0]).mean() < (wide[1] - wide[0]).mean())
    True
    """

    environment_gain_: EnvironmentGain | None
    __metadata_request__fit = {"environments": True}
    _parameter_constraints: dict[str, list[Any]] = {"estimator": [HasMethods(["fit", "predict_proba"])]}

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Fit the classifier and learn how environments differ."""
        table, _ = checked_table(self, X, y, environments)
        tuned = isinstance(self.estimator, (EnvironmentSearch, EnvironmentPool))
        fitted = clone(self.estimator) if tuned else EnvironmentSearch(clone(self.estimator), [{}])
        fitted.fit(table.X, table.y, environments=table.environments)
        return self._take(fitted, table.y, table.environments)

    @classmethod
    def of_fitted(cls, fitted: EnvironmentSearch | EnvironmentPool, y: Any, *, environments: Any = None) -> Self:
        """The same of a search or pool that has been fitted already, on the rows whose labels are y."""
        model = cls(clone(fitted))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(model, name, getattr(fitted, name))
        return model._take(fitted, np.asarray(y), None if environments is None else np.asarray(environments))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _take(self, fitted: Any, y: NDArray[Any], environments: NDArray[Any] | None) -> Self:
        self.estimator_, self.classes_ = fitted, fitted.classes_
        names = np.zeros(len(y)) if environments is None else environments
        self.calibration_ = estimate_calibration(fitted.left_out_proba_, np.searchsorted(self.classes_, y), names)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p'(y|x), (n, K) with columns as in `classes_`."""
        proba, deviations = self._said(X)
        return self.calibration_.apply(proba, deviations)

    def _said(self, X: Any) -> tuple[Array, Array | None]:
        """p(y|x) before recalibration, and of EBER what the environments' own predictions add; one pass."""
        check_is_fitted(self)
        inner = self.estimator_.estimators_[0] if isinstance(self.estimator_, EnvironmentSearch) else None
        return said(inner if isinstance(inner, EBERClassifier) else self.estimator_, X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the probabilities of a new environment lie, with probability `level`: two arrays (n, K), low and high.

        It narrows as labels arrive (`adapt`). With few training environments it is wide.
        """
        proba, deviations = self._said(X)
        return self.calibration_.interval(proba, checked_level(level), deviations)

    def predict_rate_interval(self, X: Any, level: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the share of each class among all these rows of one new environment lies: two arrays (K,)."""
        proba, deviations = self._said(X)
        return self.calibration_.rate_interval(proba, checked_level(level), deviations)

    def adapt(self, X: Any, y: Any) -> Self:
        """A copy that has seen labelled rows of a new environment; given again, further labels add to the earlier."""
        proba, deviations = self._said(X)
        adapted = copy.copy(self)
        index = np.asarray(index_of(y, self.classes_, len(proba), "y", "class"))
        adapted.calibration_, adapted.environment_gain_ = learn_labels(self.calibration_, proba, index, deviations)
        return adapted


def checked_level(level: float) -> float:
    """A probability, or an error that says so."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give a probability between 0 and 1, such as 0.9.")
    return level
