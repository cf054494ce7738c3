"""Several computations at once: their fits are collected and trained side by side."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from eber.exceptions import EnvironmentWarning, FitWarning
from eber.runs.cell import Cell, CellResult

if TYPE_CHECKING:  # a worker whose cells need no fits does without torch, which takes seconds to import
    from eber.runs.fitting import FitOutcome, FitRequest, Steps, T


def run_jointly(
    run_cell: Callable[[Cell], CellResult | Steps[CellResult]],
    cells: Sequence[Cell],
    within: Callable[[int], AbstractContextManager[Any]],
) -> list[CellResult | Exception]:
    """Compute cells; a cell that asks for fits waits until all others have asked for theirs or are done.

    Parameters
    ----------
    within : callable
        Position of a cell -> context in which all that is its own is done, such as one that catches warnings.

    Returns
    -------
    For each cell its result, or what it raised.
    """
    computations = {i: _steps(run_cell, cell) for i, cell in enumerate(cells)}
    answers: Mapping[int, Any] = dict.fromkeys(computations)
    results: dict[int, CellResult | Exception] = {}
    while computations:
        requests: dict[int, list[FitRequest]] = {}
        for i, computation in list(computations.items()):
            try:
                with within(i):
                    requests[i] = computation.send(answers[i])
                continue
            except StopIteration as end:
                results[i] = end.value
            except Exception as error:  # whatever a cell raises is that cell's failure; the others go on
                results[i] = error
            del computations[i]
        answers = _answer(requests, within)
    return [results[i] for i in range(len(cells))]


def _answer(
    requests: dict[int, list[FitRequest]], within: Callable[[int], AbstractContextManager[Any]]
) -> dict[int, list[FitOutcome]]:
    """The outcomes of all requests of all computations, trained side by side where they can be."""
    owners = [i for i, asked in requests.items() for _ in asked]
    outcomes = iter(_fit([r for asked in requests.values() for r in asked], lambda position: within(owners[position])))
    return {i: [next(outcomes) for _ in asked] for i, asked in requests.items()}


def run_alone(computation: Steps[T]) -> T:
    """Carry out a single computation."""
    answer: Any = None
    while True:
        try:
            requests = computation.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = _fit(requests, lambda position: nullcontext())


def _steps(run_cell: Callable[[Cell], CellResult | Steps[CellResult]], cell: Cell) -> Steps[CellResult]:
    """A cell as a computation, whether it asks for fits or not."""
    result = run_cell(cell)
    if isinstance(result, CellResult):
        return result
    return (yield from result)


def _fit(requests: Sequence[FitRequest], within: Callable[[int], AbstractContextManager[Any]]) -> list[FitOutcome]:
    if not requests:
        return []
    from eber.estimators import fit_many
    from eber.runs.fitting import FittedMethod

    @contextmanager
    def heard(position: int) -> Iterator[None]:
        with within(position), warnings.catch_warnings() if requests[position].quiet else nullcontext():
            for category in (EnvironmentWarning, FitWarning) if requests[position].quiet else ():
                warnings.simplefilter("ignore", category)
            yield

    _warm_up()
    start = time.perf_counter()
    errors = fit_many([r.classifier for r in requests], [r.train for r in requests], raise_errors=False, within=heard)
    seconds = (time.perf_counter() - start) / len(requests)
    return [error or FittedMethod(r.classifier, seconds) for error, r in zip(errors, requests, strict=True)]


@cache
def _warm_up() -> None:
    """Have torch import what it imports at the first fit of a process, so that no method's time includes it."""
    from eber.estimators import ERMClassifier

    ERMClassifier(epochs=1, random_state=0).fit(np.array([[0.0], [1.0]]), np.array([0, 1]))
