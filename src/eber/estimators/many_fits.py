"""Many fits at once: seeds, folds and penalty weights of one shape, trained side by side."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from eber.datasets.base import MultiEnvironmentData
from eber.estimators.base import STACK_ELEMENTS, EnvironmentClassifier, FitJob, train_jobs
from eber.estimators.members import members_to_fit
from eber.exceptions import NonFiniteLossError
from eber.objectives.base import Batch
from eber.training import isolated_torch


def fit_many(
    classifiers: Sequence[Any],
    data: MultiEnvironmentData | Sequence[MultiEnvironmentData],
    *,
    raise_errors: bool = True,
    within: Callable[[int], AbstractContextManager[Any]] = lambda position: nullcontext(),
) -> list[Exception | None]:
    """Fit classifiers, those of one shape side by side, with the numbers they would get alone.

    A step of a small network costs far more in overhead than in arithmetic; side by side, all share the overhead.
    Classifiers are of one shape when they differ in `random_state`, `weight_decay` and the weights of their objective
    only and their data have as many rows, columns, classes and environments; the others, those with a featurizer other
    than ``"linear"`` or ``"mlp"`` or an objective other than the default, and any other scikit-learn classifier are
    fitted one by one.

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
    singles: dict[int, list[Any]] = {}  # the fits of one member each that each classifier asks for
    jobs = _Jobs(errors, raise_errors, within)
    for i, (classifier, source) in enumerate(zip(classifiers, sources, strict=True)):
        with jobs.noting_errors(i):
            singles[i] = members_to_fit(classifier) if isinstance(classifier, EnvironmentClassifier) else [classifier]
            for single in singles[i]:
                jobs.begin(i, single, source.X, source.y, source.environments, source.weights)
    jobs.train()
    for i, own in singles.items():
        if len(own) > 1 and errors[i] is None:
            classifiers[i]._complete_average(own)
    failed = [error for error in errors if error is not None]
    if failed and raise_errors:
        raise failed[0]
    return errors


def fit_members(classifier: EnvironmentClassifier, X: Any, y: Any, environments: Any, sample_weight: Any) -> None:
    """Fit a classifier of several members, side by side where they can be."""
    own = members_to_fit(classifier)
    errors: list[Exception | None] = [None]
    jobs = _Jobs(errors, True, lambda position: nullcontext())
    with jobs.noting_errors(0):
        for single in own:
            jobs.begin(0, single, X, y, environments, sample_weight)
    jobs.train()
    if errors[0] is not None:
        raise errors[0]
    classifier._complete_average(own)


def fit_alone(classifier: Any, X: Any, y: Any, environments: Any, sample_weight: Any = None) -> None:
    """Fit a classifier of any kind, with `environments` where its fit takes them, and weights where there are some.

    Of a pipeline it is the last step that gets them.
    """
    given = {"environments": environments} if takes(classifier, "environments") else {}
    if sample_weight is not None:
        if not takes(classifier, "sample_weight"):
            raise ValueError(
                f"Rows have weights, and the fit of {_kind(classifier)} has no place for them (sample_weight): choose "
                "a classifier that has, or leave the weights out."
            )
        given["sample_weight"] = sample_weight
    if isinstance(classifier, Pipeline) and not sklearn.get_config()["enable_metadata_routing"]:
        given = {f"{classifier.steps[-1][0]}__{name}": values for name, values in given.items()}
    classifier.fit(X, y, **given)


def takes(classifier: Any, name: str) -> bool:
    """Whether a classifier's fit has a place for something of each row: by name, or in a step that asks for it."""
    parameters = inspect.signature(classifier.fit).parameters.values()
    if any(parameter.name == name for parameter in parameters):
        return True
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return False
    if isinstance(classifier, Pipeline) and name == "sample_weight":  # scikit-learn's own steps do not ask for it
        return takes(classifier.steps[-1][1], name)
    return bool(get_routing_for_object(classifier).consumes("fit", [name]))


def _kind(classifier: Any) -> str:
    return type(classifier.steps[-1][1] if isinstance(classifier, Pipeline) else classifier).__name__


class _Jobs:
    """Fits of one member each on their way: those that can wait are trained side by side, the others at once.

    Parameters
    ----------
    errors : list
        Where the error that ended a fit is noted, by the position of its classifier.
    raise_errors, within
        As for `fit_many`.
    """

    def __init__(
        self,
        errors: list[Exception | None],
        raise_errors: bool,
        within: Callable[[int], AbstractContextManager[Any]],
    ) -> None:
        self._errors, self._raise_errors, self._within = errors, raise_errors, within
        self._groups: dict[Any, list[tuple[int, FitJob]]] = defaultdict(list)  # position and job, by the job's shape
        self._rows: dict[tuple[Any, ...], Batch] = {}

    @contextmanager
    def noting_errors(self, *positions: int) -> Iterator[None]:
        """Note what ends the fits of these classifiers; raise it at once where that was asked for."""
        try:
            yield
        except Exception as error:
            if self._raise_errors and not isinstance(error, NonFiniteLossError):
                raise
            for i in positions:
                self._errors[i] = self._errors[i] or error

    def begin(self, i: int, single: Any, X: Any, y: Any, environments: Any, sample_weight: Any) -> None:
        """Prepare a fit for the classifier at position i, or carry it out where it is trained alone."""
        if not isinstance(single, EnvironmentClassifier) or not single._stackable:
            with self._within(i):
                fit_alone(single, X, y, environments, sample_weight)
            return
        single._validate_params()
        seed = single._draw_seed()
        with self._within(i), isolated_torch(seed, single.n_threads) as generator:
            job = single._begin(X, y, environments, seed, generator, sample_weight)
        # Fits of one shape on the same data share their rows, where nothing of their own was added to them.
        shared = self._rows.setdefault((job.shape, id(X), id(y), id(environments), id(sample_weight)), job.data)
        if job.data.log_p_e_given_x is None and shared.log_p_e_given_x is None:
            job = job._replace(data=shared)
        self._groups[job.shape].append((i, job))

    def train(self) -> None:
        """Train the jobs of each group side by side, as many at once as there is anything to gain."""
        for group in self._groups.values():
            first = group[0][1]
            size = max(1, STACK_ELEMENTS // first.estimator._elements(first))
            for start in range(0, len(group), size):
                part = group[start : start + size]
                # What fails here, such as an objective of one's own that does not work, fails for all of them.
                with self.noting_errors(*(i for i, _ in part)):
                    with isolated_torch(0, first.estimator.n_threads):
                        outcomes = train_jobs([job for _, job in part])
                    for (i, job), outcome in zip(part, outcomes, strict=True):
                        with self.noting_errors(i), self._within(i):
                            job.complete(outcome)
