"""Computations that ask for fits: together or alone, they get the same answers, warnings and failures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eber import ERMClassifier
from eber.datasets.base import MultiEnvironmentData
from eber.runs import MAIN, Cell, CellResult
from eber.runs.fitting import FitRequest, Steps, fit
from eber.runs.joint_fits import run_alone, run_jointly
from eber.runs.runner import run
from tests.toy_experiment import TOY


def rows(seed: int) -> MultiEnvironmentData:
    rng = np.random.default_rng(seed)
    return MultiEnvironmentData(rng.normal(size=(40, 3)), np.arange(40) % 2, np.repeat(["a", "b"], 20))


def two_fits(cell: Cell) -> Steps[CellResult]:
    """A second fit that depends on the first; seed 2 breaks between them, seed 3 diverges."""
    data = rows(cell.seed)
    first = yield from fit(ERMClassifier(epochs=1, random_state=cell.seed), data)
    warnings.warn(f"seed {cell.seed} is halfway", RuntimeWarning, stacklevel=1)
    if cell.seed == 2:
        raise KeyError("lost")
    rate = 1e30 if cell.seed == 3 else 1e-3
    (second,) = yield [FitRequest(ERMClassifier(epochs=2, learning_rate=rate, random_state=cell.seed), data)]
    if isinstance(second, Exception):
        raise second
    value = second.classifier.predict_proba(data.X)[0, 0] + first.classifier.predict_proba(data.X)[0, 0]
    return CellResult({MAIN: {"nll": float(value), "accuracy": 0.5}}, {MAIN: second.seconds})


def no_fit(cell: Cell) -> CellResult:
    return CellResult({MAIN: {"nll": float(cell.seed), "accuracy": 0.5}})


def cells(n: int) -> list[Cell]:
    return [Cell("toy", "baseline", "ERM", seed, {}) for seed in range(n)]


def test_each_cell_gets_its_own_result_warnings_and_failure() -> None:
    caught: list[list[str]] = [[] for _ in range(5)]

    @contextmanager
    def within(i: int) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                caught[i] += [str(warning.message) for warning in found]

    together = run_jointly(two_fits, cells(5), within)
    assert [type(result).__name__ for result in together] == [
        "CellResult",
        "CellResult",
        "KeyError",
        "NonFiniteLossError",
        "CellResult",
    ]
    for seed in (0, 1, 4):
        with pytest.warns(RuntimeWarning, match=f"seed {seed} is halfway"):
            alone = run_alone(two_fits(cells(5)[seed]))
        result = together[seed]
        assert isinstance(result, CellResult)
        assert result.scores == alone.scores
    assert caught == [[f"seed {seed} is halfway"] for seed in range(5)]


def test_cells_that_ask_for_nothing_are_computed_as_they_are() -> None:
    @contextmanager
    def within(i: int) -> Iterator[None]:
        yield

    assert [result.scores[MAIN]["nll"] for result in run_jointly(no_fit, cells(3), within)] == [0.0, 1.0, 2.0]  # type: ignore[union-attr]


def test_blocks_of_seeds_give_the_cells_that_single_seeds_give(tmp_path: Path) -> None:
    """Also when one of a block is finished beforehand."""
    block = replace(TOY, seeds_together=3)
    run(TOY, out=tmp_path / "single", seeds=4, jobs=1)
    run(block, out=tmp_path / "block", seeds=[1], jobs=1)
    run(block, out=tmp_path / "block", seeds=4, jobs=2)
    assert (tmp_path / "block" / "cells.csv").read_bytes() == (tmp_path / "single" / "cells.csv").read_bytes()
