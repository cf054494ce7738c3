"""A linear pool of tuned methods, weighted by how well they predict in environments that were left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted, validate_data

from eber.estimators import EBERClassifier
from eber.tuning.left_out import SMALLEST
from eber.tuning.search import LENIENT, MAX_FOLDS, EnvironmentSearch, checked_table
from eber.tuning.tuned_classifier import TunedClassifierMixin

EQUAL_ENVIRONMENTS = 0.1
"""Weights are shrunk to equal ones as if so many further environments had been explained by all methods alike. Of 0.001
to 3, this was the best on average in training environments of four tables, each left out of the weights that it judged.
"""
MAX_ITERATIONS, TOLERANCE = 10_000, 1e-10


def pool_weights(
    p_of_label: NDArray[np.float64],
    environments: NDArray[Any],
    equal_environments: float = EQUAL_ENVIRONMENTS,
    row_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The weights w of a linear pool that maximise

        sum_e mean_{i in e} log sum_j w_j p_j(y_i|x_i) + equal_environments · mean_j log w_j,

    which is concave; found by EM, whose every step climbs.

    Parameters
    ----------
    p_of_label : (n, J)
        Probability that each method gave the label of a row when the row was left out.
    environments : (n,)
    row_weights : (n,), optional
        How much each row counts within its environment: the mean over i in e is then weighted.

    Returns
    -------
    (J,), positive, with sum one
    """
    J = p_of_label.shape[1]
    _, index, counts = np.unique(environments, return_inverse=True, return_counts=True)
    row_weight = 1 / counts[index]  # each environment counts once
    if row_weights is not None:
        row_weight = row_weights / np.bincount(index, row_weights)[index]
    p = np.clip(p_of_label, SMALLEST, None)
    weights = np.full(J, 1 / J)
    for _ in range(MAX_ITERATIONS):
        responsible = p * weights
        responsible *= (row_weight / responsible.sum(1))[:, None]
        updated = responsible.sum(0) + equal_environments / J
        updated /= updated.sum()
        if np.abs(updated - weights).max() < TOLERANCE:
            break
        weights = updated
    return weights


def left_out_weights(
    left_out: NDArray[np.float64],
    y_index: NDArray[np.int64],
    environments: NDArray[Any],
    row_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The weights of `pool_weights` from what J methods said about left-out rows, (J, n, K); NaN of rows that none."""
    known = ~np.isnan(left_out).any((0, 2))
    # A label that no counted row has is of no class: such rows are not known.
    p_of_label = np.take_along_axis(left_out, y_index[None, :, None].clip(max=left_out.shape[2] - 1), 2)[:, :, 0].T
    of_known = None if row_weights is None else row_weights[known]
    return pool_weights(p_of_label[known], environments[known], row_weights=of_known)  # from (n, J)


class EnvironmentPool(TunedClassifierMixin, _BaseComposition):
    """p(y|x) = sum_j w_j p_j(y|x) over tuned methods j.

    Each method is tuned by `EnvironmentSearch`; what its fits say about rows whose environment they have not seen gives
    the weights, shrunk to equal ones (see `pool_weights`). Features should be standardised.

    Parameters
    ----------
    estimators : list of (str, classifier) or None, default=None
        Methods by name. One that is no `EnvironmentSearch` yet is searched over its default settings. None: EBER,
        logistic regression, gradient boosting and a random forest.
    max_folds : int, default=4
        As for `EnvironmentSearch`.
    random_state : int, RandomState or None, default=None
        Of the methods that are there by default.

    Attributes
    ----------
    names_ : list of str
    weights_ : array of shape (J,)
    searches_ : list of fitted `EnvironmentSearch`
    classes_ : array
    left_out_proba_ : array of shape (n, K)
        The pool's probabilities of training rows while they were left out; NaN of rows that never were.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from eber.datasets.parametric import draw
    >>> from eber.tuning.pool import EnvironmentPool
    >>> from eber.tuning.search import EnvironmentSearch
    >>> data = draw(random_state=0).train
    >>> methods = [("logistic", LogisticRegression()), ("bayes", EnvironmentSearch(GaussianNB(), [{}]))]
    >>> pool = EnvironmentPool(methods).fit(data.X, data.y, environments=data.environments)
    >>> pool.names_, round(float(pool.weights_.sum()), 6)
    (['logistic', 'bayes'], 1.0)
    """

    __metadata_request__fit = {"environments": True, "sample_weight": True}
    _parameter_constraints: dict[str, list[Any]] = {
        "estimators": [list, tuple, None],
        "max_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimators: Sequence[tuple[str, Any]] | None = None,
        *,
        max_folds: int = MAX_FOLDS,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimators = estimators
        self.max_folds = max_folds
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Tune the methods and weigh them; parameters as for `EnvironmentSearch.fit`."""
        table, _ = checked_table(self, X, y, environments, sample_weight)
        methods = default_methods(self.random_state) if self.estimators is None else self.estimators
        self._validate_names([name for name, _ in methods])
        searches = {name: self._search(method) for name, method in methods}
        for search in searches.values():
            search.fit(table.X, table.y, environments=table.environments, sample_weight=table.weights)
        return self._weigh(searches, table.y, table.environments, table.weights)

    @classmethod
    def of_fitted(
        cls, searches: Mapping[str, EnvironmentSearch], y: Any, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """A pool of searches that have been fitted already, all on the rows whose labels are y."""
        pool = cls([(name, clone(search)) for name, search in searches.items()])
        first = next(iter(searches.values()))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(pool, name, getattr(first, name))
        names, weights = (None if column is None else np.asarray(column) for column in (environments, sample_weight))
        return pool._weigh(dict(searches), np.asarray(y), names, weights)

    def _search(self, method: Any) -> EnvironmentSearch:
        if isinstance(method, EnvironmentSearch):
            return clone(method)
        return EnvironmentSearch(clone(method), max_folds=self.max_folds)

    def _weigh(
        self,
        searches: dict[str, EnvironmentSearch],
        y: NDArray[Any],
        environments: NDArray[Any] | None,
        row_weights: NDArray[np.float64] | None,
    ) -> Self:
        left_out = np.stack([search.left_out_proba_ for search in searches.values()])  # (J, n, K)
        self.classes_ = next(iter(searches.values())).classes_
        names = np.zeros(len(y)) if environments is None else environments
        self.weights_ = left_out_weights(left_out, np.searchsorted(self.classes_, y), names, row_weights)
        self.names_, self.searches_ = list(searches), list(searches.values())
        self.left_out_proba_ = np.einsum("j,jnk->nk", self.weights_, left_out)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K) with columns as in `classes_`."""
        check_is_fitted(self)
        validate_data(self, X, reset=False, **LENIENT)
        weighted = [w * search.predict_proba(X) for w, search in zip(self.weights_, self.searches_, strict=True)]
        pooled: NDArray[np.float64] = np.sum(weighted, axis=0)
        return pooled

    def explain_weights(self) -> pd.DataFrame:
        """Who weighs what: weight, mean NLL in left-out environments and the settings that were kept, by method."""
        check_is_fitted(self)
        rows = []
        for weight, search in zip(self.weights_, self.searches_, strict=True):
            results = pd.DataFrame(search.results_)
            best = results.groupby("candidate")["nll"].mean().min() if len(results) else np.nan
            rows.append({"weight": weight, "best_left_out_nll": best, "settings": search.chosen_})
        return pd.DataFrame(rows, index=pd.Index(self.names_, name="method"))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep`, also those of the methods."""
        parameters: dict[str, Any] = self._get_params("estimators", deep=deep)
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, those of a method as ``name__parameter``."""
        self._set_params("estimators", **parameters)
        return self


def default_methods(random_state: int | np.random.RandomState | None) -> list[tuple[str, Any]]:
    """EBER and what a statistician would choose instead."""
    return [
        ("EBER", EBERClassifier(random_state=random_state)),
        ("Logistic regression", LogisticRegression(max_iter=1000, random_state=random_state)),
        ("Gradient boosting", HistGradientBoostingClassifier(random_state=random_state)),
        ("Random forest", RandomForestClassifier(random_state=random_state)),
    ]
