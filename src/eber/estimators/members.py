"""An average of several fits as one classifier: seeds of one setting, or settings that are about as good."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

COMMON_ATTRIBUTES = (
    "classes_", "input_shape_", "n_features_in_", "feature_names_in_", "environments_", "latent_dim_", "seed_",
    "n_steps_",
)  # fmt: skip
"""What all members learn alike, or, of the seed, what the first has."""

Classifier = TypeVar("Classifier", bound="EnvironmentClassifier")
Method = TypeVar("Method", bound=Callable[..., Any])


def members_to_fit(classifier: Classifier) -> list[Classifier]:
    """The single fits that a classifier asks for: itself, or `n_members` of its kind.

    Members draw their seeds one after the other from one generator, so that the first is the fit of a single member.
    """
    if classifier.n_members == 1:
        return [classifier]
    shared = check_random_state(classifier.random_state)
    earlier = getattr(classifier, "members_", []) if classifier.warm_start else []
    if len(earlier) == classifier.n_members:
        settings = {**classifier.get_params(deep=False), "n_members": 1, "random_state": shared}
        return [copy.copy(member).set_params(**settings) for member in earlier]
    if earlier or (classifier.warm_start and hasattr(classifier, "module_")):
        raise ValueError(
            f"warm_start goes on from a fit of {max(len(earlier), 1)}, but n_members is {classifier.n_members}: leave "
            "it as it was, or set warm_start=False."
        )
    return [clone(classifier).set_params(n_members=1, random_state=shared) for _ in range(classifier.n_members)]


def attributes_of_average(members: Sequence[EnvironmentClassifier]) -> dict[str, Any]:
    """What an average has learned, from its fitted members."""
    first = members[0]
    histories = [member.history_ for member in members]
    passes = min(len(history["loss"]) for history in histories)  # of those that stopped early, as far as all went
    return {
        **{name: getattr(first, name) for name in COMMON_ATTRIBUTES if hasattr(first, name)},
        "history_": {name: np.mean([h[name][:passes] for h in histories], 0).tolist() for name in histories[0]},
        "members_": list(members),
    }


def fitted_members(classifier: Classifier) -> list[Classifier]:
    """The members, asked in the way that the average is asked now; none of a classifier that is a single fit."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "members_"):
        return []
    asked = {name: getattr(classifier, name) for name in classifier._answer_parameters}
    return [copy.copy(member).set_params(**asked) for member in classifier.members_]


def average_of(classifiers: Sequence[Classifier]) -> Classifier:
    """Fitted classifiers of one class, which may differ in their settings, as one; one alone is itself.

    All must know the same classes and environments. Where one is an average already, its members count one by one.
    """
    members = [member for c in classifiers for member in getattr(c, "members_", [c])]
    if len(members) == 1:
        return members[0]
    average = clone(classifiers[0]).set_params(n_members=len(members))
    average._complete_average(members)
    return average


def _over_members(combine: Callable[[Sequence[Any]], Any]) -> Callable[[Method], Method]:
    def decorate(method: Method) -> Method:
        @wraps(method)
        def answer(self: EnvironmentClassifier, X: Any) -> Any:
            members = fitted_members(self)
            return combine([getattr(member, method.__name__)(X) for member in members]) if members else method(self, X)

        return answer  # type: ignore[return-value]

    return decorate


averaged = _over_members(lambda answers: np.mean(answers, axis=0))
"""Decorates a method of X: an average answers by the mean of its members' answers."""
side_by_side = _over_members(lambda answers: np.concatenate(answers, axis=1))
"""Decorates a method of X: columns of all members, where each has coordinates of its own and a mean says nothing."""
