"""Many fits at once: seeds, folds and penalty weights of one shape, trained side by side."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sklearn.utils.metadata_routing import get_routing_for_object

from eber.datasets.base import MultiEnvironmentData
from eber.estimators.base import STACK_ELEMENTS, EnvironmentClassifier, FitJob, train_jobs
from eber.exceptions import NonFiniteLossError
from eber.objectives.base import Batch
from eber.training import isolated_torch

Groups = dict[Any, list[tuple[int, FitJob]]]
"""Positions and jobs of those that are trained side by side, by their shape."""


def fit_many(
    classifiers: Sequence[Any],
    data: MultiEnvironmentData | Sequence[MultiEnvironmentData],
    *,
    raise_errors: bool = True,
    within: Callable[[int], AbstractContextManager[Any]] = lambda position: nullcontext(),
) -> list[Exception | None]:
    """Fit classifiers, those of one shape side by side, with the numbers they would get alone.

    A step of a small network costs far more in overhead than in arithmetic; side by side, all share the overhead.
    Classifiers are of one shape when they differ in `random_state` and `penalty_weight` only and their data have as
    many rows, columns, classes and environments; the others, those with a featurizer other than ``"linear"`` or
    ``"mlp"`` or an objective other than the default, and any other scikit-learn classifier are fitted one by one.

    Parameters
    ----------
    classifiers : sequence of classifiers
        Fitted in place. `environments` are given to those whose fit takes them.
    data : MultiEnvironmentData, or a sequence of them
        One for all classifiers, or one for each.
    raise_errors : bool, default=True
        Whether a fit that diverges raises its error once all others are fitted, and one that fails in another way at
        once. Otherwise it is left unfitted.
    within : callable, optional
        Position of a classifier -> context in which what is its own is done and warned of.

    Returns
    -------
    For each classifier the error that ended its fit, or None.

    Examples
    --------
    >>> from eber import EBERClassifier, fit_many
    >>> from eber.datasets.parametric import draw
    >>> data = draw(random_state=0).train
    >>> seeds = [EBERClassifier(epochs=10, random_state=seed) for seed in range(3)]
    >>> fit_many(seeds, data)
    [None, None, None]
    """
    sources = [data] * len(classifiers) if isinstance(data, MultiEnvironmentData) else data
    errors: list[Exception | None] = [None] * len(classifiers)
    groups: Groups = defaultdict(list)
    rows: dict[tuple[Any, ...], Batch] = {}
    for i, (classifier, source) in enumerate(zip(classifiers, sources, strict=True)):
        try:
            if not isinstance(classifier, EnvironmentClassifier) or not classifier._stackable:
                with within(i):
                    fit_alone(classifier, source)
                continue
            classifier._validate_params()
            seed = classifier._draw_seed()
            with within(i), isolated_torch(seed, classifier.n_threads) as generator:
                job = classifier._begin(source.X, source.y, source.environments, seed, generator)
        except Exception as error:
            if raise_errors and not isinstance(error, NonFiniteLossError):
                raise
            errors[i] = error
            continue
        # Fits of one shape on the same data share their rows, where nothing of their own was added to them.
        shared = rows.setdefault((job.shape, id(source)), job.data)
        if job.data.log_p_e_given_x is None and shared.log_p_e_given_x is None:
            job = job._replace(data=shared)
        groups[job.shape].append((i, job))
    _train_groups(groups, errors, raise_errors, within)
    failed = [error for error in errors if error is not None]
    if failed and raise_errors:
        raise failed[0]
    return errors


def fit_alone(classifier: Any, data: MultiEnvironmentData) -> None:
    """Fit a classifier of any kind, with `environments` where its fit takes them."""
    if takes_environments(classifier):
        classifier.fit(data.X, data.y, environments=data.environments)
    else:
        classifier.fit(data.X, data.y)


def takes_environments(classifier: Any) -> bool:
    """Whether a classifier's fit has a place for `environments`: by name, or in a step of its own that asks for it."""
    parameters = inspect.signature(classifier.fit).parameters.values()
    if any(parameter.name == "environments" for parameter in parameters):
        return True
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return False
    return bool(get_routing_for_object(classifier).consumes("fit", ["environments"]))


def _train_groups(
    groups: Groups,
    errors: list[Exception | None],
    raise_errors: bool,
    within: Callable[[int], AbstractContextManager[Any]],
) -> None:
    """Train the jobs of each group side by side, as many at once as there is anything to gain; note what failed."""
    for group in groups.values():
        first = group[0][1]
        size = max(1, STACK_ELEMENTS // first.estimator._elements(first))
        for start in range(0, len(group), size):
            members = group[start : start + size]
            try:
                with isolated_torch(0, first.estimator.n_threads):
                    outcomes = train_jobs([job for _, job in members])
            except Exception as error:  # such as an objective of one's own that does not work
                if raise_errors:
                    raise
                for i, _ in members:
                    errors[i] = error
                continue
            for (i, job), outcome in zip(members, outcomes, strict=True):
                try:
                    with within(i):
                        job.complete(outcome)
                except Exception as error:
                    if raise_errors and not isinstance(error, NonFiniteLossError):
                        raise
                    errors[i] = error
