"""Many fits at once: seeds, folds and penalty weights of one shape, trained side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from eber.estimators.base import STACK_ELEMENTS, EnvironmentClassifier, FitJob, train_jobs
from eber.estimators.members import members_to_fit
from eber.exceptions import NonFiniteLossError
from eber.objectives.base import Batch
from eber.training import isolated_torch


class Table(NamedTuple):
    """What a classifier is fitted on."""

    X: Any
    y: Any
    environments: Any = None


def fit_many(
    classifiers: Sequence[EnvironmentClassifier],
    tables: Sequence[Table],
    *,
    raise_errors: bool = True,
    within: Callable[[int], AbstractContextManager[Any]] = lambda position: nullcontext(),
) -> list[NonFiniteLossError | None]:
    """Fit classifiers, those of one shape side by side, with the numbers they would get alone.

    A step of a small network costs far more in overhead than in arithmetic; side by side, all share the overhead.
    Classifiers are of one shape when they differ in `random_state`, `penalty_weight` and `weight_decay` only and their
    tables have as many rows, columns, classes and environments; the others, and those with a featurizer other than
    ``"linear"`` or ``"mlp"`` or an objective other than the default, are fitted one by one.

    Parameters
    ----------
    classifiers : sequence of classifiers
        Fitted in place.
    tables : sequence of Table
        One for each classifier, or a single one for all.
    raise_errors : bool, default=True
        Whether a fit that diverges raises its error once all others are fitted. Otherwise it is left unfitted.
    within : callable, optional
        Position of a classifier -> context in which what is its own is done and warned of.

    Returns
    -------
    For each classifier the error that ended its fit, or None.

    Examples
    --------
    >>> from eber import EBERClassifier, Table, fit_many
    >>> from eber.datasets.parametric import draw
    >>> data = draw(random_state=0).train
    >>> seeds = [EBERClassifier(epochs=10, random_state=seed) for seed in range(3)]
    >>> fit_many(seeds, [Table(data.X, data.y, data.environments)])
    [None, None, None]
    """
    if len(tables) == 1:
        tables = list(tables) * len(classifiers)
    for classifier in classifiers:
        classifier._validate_params()
    members = [members_to_fit(classifier) for classifier in classifiers]
    owners = [i for i, own in enumerate(members) for _ in own]
    outcomes = iter(_fit_singles([m for own in members for m in own], [tables[i] for i in owners], owners, within))
    errors: list[NonFiniteLossError | None] = []
    for classifier, own in zip(classifiers, members, strict=True):
        errors.append(next(filter(None, [next(outcomes) for _ in own]), None))
        if classifier.n_members > 1 and errors[-1] is None:
            classifier._complete_average(own)
    failed = [error for error in errors if error is not None]
    if failed and raise_errors:
        raise failed[0]
    return errors


def _fit_singles(
    classifiers: Sequence[EnvironmentClassifier],
    tables: Sequence[Table],
    owners: Sequence[int],
    within: Callable[[int], AbstractContextManager[Any]],
) -> list[NonFiniteLossError | None]:
    """Fit classifiers of one member each; what is done for one happens within the context of its owner."""
    errors: list[NonFiniteLossError | None] = [None] * len(classifiers)
    groups: dict[Any, list[tuple[int, FitJob]]] = defaultdict(list)
    rows: dict[tuple[Any, ...], Batch] = {}
    for i, (classifier, table) in enumerate(zip(classifiers, tables, strict=True)):
        if not classifier._stackable:
            try:
                with within(owners[i]):
                    classifier.fit(table.X, table.y, environments=table.environments)
            except NonFiniteLossError as error:
                errors[i] = error
            continue
        seed = classifier._draw_seed()
        with within(owners[i]), isolated_torch(seed, classifier.n_threads) as generator:
            job = classifier._begin(*table, seed, generator)
        # Fits of one shape on one table share its rows, where nothing of their own was added to them.
        shared = rows.setdefault((job.shape, *map(id, table)), job.data)
        if job.data.log_p_e_given_x is None and shared.log_p_e_given_x is None:
            job = job._replace(data=shared)
        groups[job.shape].append((i, job))
    for group in groups.values():
        first = group[0][1]
        size = max(1, STACK_ELEMENTS // first.estimator._elements(first))
        for start in range(0, len(group), size):
            members = group[start : start + size]
            with isolated_torch(0, first.estimator.n_threads):
                outcomes = train_jobs([job for _, job in members])
            for (i, job), outcome in zip(members, outcomes, strict=True):
                if isinstance(outcome, NonFiniteLossError):
                    errors[i] = outcome
                else:
                    with within(owners[i]):
                        job.complete(outcome)
    return errors
