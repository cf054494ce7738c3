"""Tuning by leaving environments out, for any classifier."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from eber.datasets.base import MultiEnvironmentData
from eber.estimators import EBERClassifier
from eber.estimators.base import EnvironmentClassifier
from eber.estimators.rows import checked_weights
from eber.tuning.choosing import Choice, choose
from eber.tuning.grids import Candidate, default_candidates
from eber.tuning.left_out import LEAVE_ENVIRONMENTS_OUT, choose_folds, fit_left_out, fit_sound
from eber.tuning.tuned_classifier import TunedClassifierMixin

MAX_FOLDS = 4
"""Folds of whole environments that a search takes by default: more cost more, and four tell settings apart."""
LEAST_NETWORKS = 4
"""Of few settings that are kept, networks with several seeds are averaged: the loss of an average is at most the
average of the losses, and what one seed happens to give is not what was judged."""


LENIENT: dict[str, Any] = {"dtype": None, "ensure_all_finite": False, "accept_sparse": True, "allow_nd": True}
"""How rows are looked at: what the columns hold is for the fits to judge."""


class EnvironmentSearch(TunedClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Settings chosen by how well they predict in training environments that the fit has not seen.

    Every candidate is fitted without some environments and judged by its NLL in them, each environment counting once.
    As many of the best as make no clearly worse average are then fitted on all rows and their probabilities averaged,
    or the best alone. Where fewer than four networks are averaged, each is with seeds besides its own.

    With fewer than three training environments, or where each has a class of its own, none can be left out: settings
    are then judged on left-out rows of known environments, and where these are too few, the candidate in the middle of
    the list is taken. `rule_` and a warning say so.

    Parameters
    ----------
    estimator : classifier or pipeline with `predict_proba`
        Not fitted. It is handed environments if its `fit` takes them.
    candidates : list of dict or None, default=None
        Settings to try, by parameter name; None for those of `eber.tuning.grids`.
    select : {"one_standard_error", "best"}, default="one_standard_error"
        Average as many of the best candidates as leave the average within one standard error of the best such average
        (`eber.tuning.left_out.widest_average`), or take the best alone.
    max_folds : int, default=4
        More environments than these are left out several at a time.

    Attributes
    ----------
    classes_ : array
    chosen_ : list of dict
        The candidates that were kept.
    estimators_ : list
        Their fits on all rows, whose probabilities are averaged. Those of our own classes are one classifier, an
        average, so that all its answers are at hand: ``search.estimators_[0].explain_uncertainty(X)``.
    results_ : dict of lists
        Columns ``candidate`` (its number), ``left_out`` (the environment, or the fold of rows) and ``nll``;
        ``pandas.DataFrame(search.results_)`` is a table.
    rule_ : str
        What was left out: "leave environments out", "leave rows out" or "none".
    left_out_proba_ : array of shape (n, K)
        What the kept candidates said about each training row when it was left out; NaN of rows that never were.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from eber.datasets.parametric import draw
    >>> from eber.tuning.search import EnvironmentSearch
    >>> data = draw(random_state=0).train
    >>> search = EnvironmentSearch(LogisticRegression()).fit(data.X, data.y, environments=data.environments)
    >>> search.rule_, search.predict_proba(data.X).shape
    ('leave environments out', (3000, 2))
    """

    left_out_proba_: NDArray[np.float64]
    __metadata_request__fit = {"environments": True, "sample_weight": True}
    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "candidates": ["array-like", None],
        "select": [StrOptions({"one_standard_error", "best"})],
        "max_folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        candidates: Sequence[Candidate] | None = None,
        *,
        select: str = "one_standard_error",
        max_folds: int = MAX_FOLDS,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.select = select
        self.max_folds = max_folds

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Choose among the candidates and fit those that are kept on all rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
        y, environments : arrays of shape (n,)
        sample_weight : array of shape (n,), optional
            How much each row counts, in the fits and in the losses that settings are judged by. Rows of weight zero are
            left out.
        """
        whole, classes = checked_table(self, X, y, environments, sample_weight)
        counted = np.ones(len(whole), dtype=bool) if whole.weights is None else whole.weights > 0
        table = whole if counted.all() else whole.select(counted)
        rule, folds = choose_folds(table.y, table.environments, self.max_folds)
        adapting = rule == LEAVE_ENVIRONMENTS_OUT and self.adapts
        candidates = self.candidates_to_try
        left_out = fit_left_out(self.estimator, candidates, table, folds, len(classes), adapting=adapting)
        choice = choose(left_out, table, rule, only_best=self.select == "best")
        fits = self.to_fit_on_all_rows(choice.kept)
        self.complete(choice, rule, fits, fit_sound(fits, [table] * len(fits)))
        of_all = np.full((len(whole), len(classes)), np.nan)
        of_all[counted] = self.left_out_proba_
        self.left_out_proba_ = of_all
        return self

    @property
    def candidates_to_try(self) -> list[Candidate]:
        """The settings among which is chosen: those that were given, or the default list."""
        candidates = default_candidates(self.estimator) if self.candidates is None else list(self.candidates)
        if not candidates:
            raise ValueError("candidates is empty: there is nothing to choose from; [{}] is the estimator as it is.")
        return candidates

    @property
    def adapts(self) -> bool:
        """Whether its fits can adapt to unlabelled rows, so that left-out rows can show what that does."""
        return isinstance(self.estimator, EBERClassifier) and self.estimator.prediction_weights == "learned"

    def to_fit(self, positions: Iterable[int]) -> list[Any]:
        """The candidates at these positions, not fitted."""
        candidates = self.candidates_to_try
        return [clone(self.estimator).set_params(**candidates[c]) for c in positions]

    def to_fit_on_all_rows(self, kept: Sequence[int] | NDArray[np.int64]) -> list[Any]:
        """The candidates that are kept, not fitted; of networks, where there was a choice, with seeds enough."""
        fits = self.to_fit(kept)
        return with_enough_seeds(fits) if self.select != "best" and len(self.candidates_to_try) > 1 else fits

    def complete(self, choice: Choice, rule: str, fits: Sequence[Any], errors: Sequence[Exception | None]) -> Self:
        """Take over what was chosen and its fits on all rows, with what ended those that diverged.

        `fit` ends with it; so can whoever has done the same fits for several searches at once.
        """
        candidates = self.candidates_to_try
        unit_losses = choice.losses
        choice = choice.without_diverged(errors)
        self.classes_, self.rule_ = np.unique(choice.table.y), rule
        self.chosen_ = [candidates[c] for c in choice.kept]
        self.estimators_ = choice.answering([f for f, error in zip(fits, errors, strict=True) if error is None])
        self.left_out_proba_ = choice.left_out_proba
        self.results_ = {
            "candidate": np.repeat(np.arange(len(candidates)), len(choice.names)).tolist(),
            "left_out": choice.names * len(candidates),
            "nll": unit_losses.ravel().tolist(),
        }
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), the mean over the kept candidates; (n, K) with columns as in `classes_`."""
        check_is_fitted(self)
        validate_data(self, X, reset=False, **LENIENT)
        mean: NDArray[np.float64] = np.mean([fitted.predict_proba(X) for fitted in self.estimators_], 0)
        return mean


def with_enough_seeds(fits: Sequence[Any]) -> list[Any]:
    """Unfitted classifiers of the settings that are kept: networks, where they are few, with several seeds each."""
    for fit in fits:
        network = fit.steps[-1][1] if isinstance(fit, Pipeline) else fit
        if isinstance(network, EnvironmentClassifier):
            network.set_params(n_members=max(network.n_members, math.ceil(LEAST_NETWORKS / len(fits))))
    return list(fits)


def checked_table(
    estimator: BaseEstimator, X: Any, y: Any, environments: Any, sample_weight: Any = None
) -> tuple[MultiEnvironmentData, NDArray[Any]]:
    """Rows of equal number and classes, two at least; the estimator notes the columns. X itself is for the fits.

    The classes are those of rows that count.
    """
    _, y = validate_data(estimator, X, y, **LENIENT)
    X, y, environments = indexable(X, y, environments)
    check_classification_targets(y)
    weights = checked_weights(sample_weight, len(y))
    classes = np.unique(y if weights is None else np.asarray(y)[weights > 0])
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes[0]!r}; a classifier needs rows of at least two classes.")
    if environments is None:  # one of which nothing can be left out but rows
        environments = np.full(len(y), "all")
    X = X if hasattr(X, "shape") else np.asarray(X)
    return MultiEnvironmentData(X, y, np.asarray(environments), weights=weights), classes
