"""The preview counts the fits that are made, and scales a short one by what a whole one has to do."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eber.compare import preview, timing
from eber.compare.all_folds import results_by_fold
from eber.compare.evaluating import evaluate_fold
from eber.compare.folds import FoldPlan, plan_folds
from eber.compare.methods import POOL_MEMBERS, Effort, candidates_of
from eber.compare.preview import Left
from eber.compare.timing import Cost
from eber.datasets.base import MultiEnvironmentData
from eber.estimators import IRMClassifier
from eber.runs.cell import Cell, CellResult
from eber.runs.joint_fits import run_alone
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, read_training_table
from eber.tuning.search import LEAST_NETWORKS
from eber.workflow.announcing import duration

EFFORT = Effort(steps=4, search_folds=2)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TrainingTable:
    """Four sites of forty rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=160), "y": np.arange(160) % 2, "site": np.repeat(list("abcd"), 40)})
    path = tmp_path_factory.mktemp("preview") / "t.parquet"
    frame.to_parquet(path)
    return read_training_table(path, label="y", environment="site")


def test_as_many_fits_are_promised_as_are_made(table: TrainingTable, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    complete = IRMClassifier._complete

    def counted(*arguments: Any) -> None:
        made.append(1)
        complete(*arguments)

    monkeypatch.setattr(IRMClassifier, "_complete", counted)
    plan = plan_folds(table.y, table.environments)
    results = dict(results_by_fold(table, plan, "IRM", 0, EFFORT, {}))
    candidates, folds = preview.search_of("IRM", table, plan, EFFORT)
    assert (candidates, folds, len(plan.blocks)) == (len(candidates_of("IRM")), 3, 6), (
        "each pair of four sites, of which three serve each"
    )

    def networks(result: CellResult) -> int:
        kept = len(result.arrays["settings"])
        return kept * -(-LEAST_NETWORKS // kept)  # with the seeds that few are averaged over

    assert len(made) == candidates * len(plan.blocks) + sum(map(networks, results.values()))
    alone = replace(plan, blocks=())
    made.clear()
    result = run_alone(evaluate_fold(table, table.environments == "a", "IRM", 0, EFFORT))
    candidates, folds = preview.search_of("IRM", table, alone, EFFORT)
    assert len(made) == candidates * folds + networks(result)
    assert (candidates, folds) == (len(candidates_of("IRM")), 2)
    assert preview.search_of("IRM", table, plan, Effort(4, 0)) == (1, 0)
    assert preview.search_of("No model", table, plan, EFFORT) == (1, 0)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Eight processors, whose load can be set; all settings of any method take 0.01 s a row."""
    load = [0.0]
    monkeypatch.setattr(preview, "time_method", lambda *_: Cost(lambda rows: 0.01 * rows, 0.1, lambda rows: 1.0))
    monkeypatch.setattr(preview, "cores", lambda: 8.0)
    monkeypatch.setattr(preview, "asked_rows", lambda *_: (3, 10))
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0), raising=False)
    return load


def test_time_is_that_of_blocks_and_results_by_jobs(table: TrainingTable, idle: list[float]) -> None:
    plan = plan_folds(table.y, table.environments)

    def expected(left: dict[str, Left], effort: Effort = EFFORT, jobs: int = 2, plan: FoldPlan = plan) -> float:
        return preview.expect(table, left, plan, effort, jobs).seconds - preview.WORKER_START

    block = 0.01 * 80 + 80 * 0.1  # two of four sites are fitted on, and the others judged
    result = preview.KEPT * (0.01 * 120 + 4 * 1.0)
    both = {"ERM": Left(12, 18), "IRM": Left(12, 18)}
    assert expected(both) == pytest.approx((36 * block + 24 * result) / 2)
    assert expected({"ERM": Left(0), "IRM": Left(6)}) == pytest.approx(6 * result / 2), "what is finished takes no time"
    idle[0] = 14.0  # sixteen processes then want eight processors
    assert expected(both) == pytest.approx(36 * block + 24 * result)
    idle[0] = 0.0
    assert expected({"ERM": Left(1)}, jobs=1) == expected({"ERM": Left(1)}, jobs=8), (
        "one fit is not faster with eight jobs"
    )
    members = dict.fromkeys(POOL_MEMBERS, Left(4, 6))
    assert expected({**members, "Pool": Left(4)}) == expected(members), (
        "a pool of what is computed anyhow takes no time"
    )
    quick = Effort(4, 0)
    one = 0.01 * 120 + 4 * 1.0
    assert expected({"ERM": Left(4)}, quick) == pytest.approx(4 * one / 2)
    assert expected({"Pool": Left(4)}, quick) == pytest.approx(4 * 4 * (one + 2 * 0.01 * 60) / 2)
    alone = expected({"ERM": Left(4)}, plan=replace(plan, blocks=()))
    assert alone == pytest.approx(4 * (result + 2 * 0.01 * 60 + 120 * 0.1) / 2), "two folds in each result's own search"


def test_guesses_of_cells_are_those_of_results_and_of_blocks(table: TrainingTable, idle: list[float]) -> None:
    plan = plan_folds(table.y, table.environments)
    expectation = preview.expect(table, {"ERM": Left(4, 6)}, plan, EFFORT, 1)
    of_result, of_block, other = (Cell("c", setting, method, 0, {}) for setting, method in (
        ("a", "ERM"), ("below", "ERM"), ("a", "IRM")
    ))  # fmt: skip
    assert expectation.of_cell(("below",), of_result) == pytest.approx(preview.KEPT * (0.01 * 120 + 4))
    assert expectation.of_cell(("below",), of_block) == pytest.approx(0.01 * 80 + 80 * 0.1)
    assert expectation.of_cell(("below",), other) is None


class Clock:
    """A processor on which a fit takes two seconds, and so much more for each pass or tree and row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, a_pass: float = 0.0, a_tree: float = 0.0) -> None:
        self.now, self._a_pass, self._a_tree = 0.0, a_pass, a_tree
        monkeypatch.setattr(timing, "time", SimpleNamespace(process_time=lambda: self.now))
        monkeypatch.setattr(timing, "fit_many", self.fit)
        monkeypatch.setattr(timing, "said_about", lambda *_: self.spend(1.0))
        monkeypatch.setattr(timing, "_ask", lambda fits, rows: self.spend(0.5 + 0.002 * len(rows)))

    def spend(self, seconds: float) -> None:
        self.now += seconds

    def fit(self, fits: list[Any], data: MultiEnvironmentData, **_: Any) -> None:
        for classifier in fits:
            trees = getattr(classifier, "max_iter", getattr(classifier, "n_estimators", 0))
            passes = getattr(classifier, "epochs", 0)
            self.spend(2.0 + self._a_pass * passes * math.ceil(len(data) / 64) + self._a_tree * trees * len(data))


def test_a_short_fit_is_scaled_by_what_a_whole_one_has_to_do(
    table: TrainingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    Clock(monkeypatch, a_pass=0.25)
    cost = timing.time_method(table, preprocessing, "ERM", 120, EFFORT)
    steps = EFFORT.epochs(120) * 2  # two batches of at most 64 rows in 120
    n = len(candidates_of("ERM"))
    assert cost.fit(120) == pytest.approx(n * (2.0 + 0.25 * steps)), "what is there once is not multiplied"
    assert cost.judge == pytest.approx(1.0 / 160)
    assert cost.answer(1000) == pytest.approx(0.5 + 0.002 * 1000)
    Clock(monkeypatch, a_tree=0.001)
    cost = timing.time_method(table, preprocessing, "Gradient boosting", 120, EFFORT)
    trees = [candidate["max_iter"] for candidate in candidates_of("Gradient boosting")]
    assert cost.fit(160) == pytest.approx(sum(2.0 + 0.001 * number * 160 for number in trees))
    assert cost.fit(80) < cost.fit(160) < cost.fit(320)


def test_a_method_that_cannot_be_fitted_costs_nothing_here(table: TrainingTable) -> None:
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    cost = timing.time_method(table, preprocessing, "tests.own_methods:BrokenClassifier", 120, EFFORT)
    assert (cost.fit(100), cost.judge, cost.answer(100)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "about 5 seconds"),
        (31, "about 30 seconds"),
        (58, "about 1 minute"),
        (170, "about 3 minutes"),
        (3600, "about 1 hour"),
        (9100, "about 2.5 hours"),
    ],
)
def test_times_are_said_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
