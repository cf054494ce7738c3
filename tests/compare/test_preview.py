"""The preview counts the fits that are made, and scales a short one by what a whole one has to do."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eber.compare import preview
from eber.compare.evaluating import evaluate_fold
from eber.compare.folds import plan_folds
from eber.compare.methods import POOL_MEMBERS, Effort
from eber.estimators import IRMClassifier
from eber.runs.joint_fits import run_alone
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, read_training_table
from eber.workflow.comparing import duration

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
    result = run_alone(evaluate_fold(table, table.environments == "a", "IRM", 0, EFFORT))
    candidates, folds = preview.search_of("IRM", table, plan, EFFORT)
    assert candidates * folds + len(result.arrays["settings"]) == len(made)
    assert (candidates, folds) == (9, 2)
    assert preview.search_of("IRM", table, plan, Effort(4, 0)) == (1, 0)
    assert preview.search_of("No model", table, plan, EFFORT) == (1, 0)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Eight processors, whose load can be set; every method's settings take half a second together."""
    load = [0.0]
    monkeypatch.setattr(preview, "_seconds_of_all_settings", lambda *_: 0.5)
    monkeypatch.setattr(preview, "cores", lambda: 8.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0), raising=False)
    return load


def test_time_is_that_of_all_settings_by_folds_cells_and_jobs(table: TrainingTable, idle: list[float]) -> None:
    plan = plan_folds(table.y, table.environments)

    def expected(cells: dict[str, int], effort: Effort = EFFORT, jobs: int = 2) -> float:
        return preview.expected_seconds(table, cells, plan, effort, jobs) - preview.WORKER_START

    passes = 1 + preview.KEPT  # two folds, half of the rows each
    assert expected({"ERM": 12, "IRM": 12}) == pytest.approx(24 * 0.5 * passes / 2)
    assert expected({"ERM": 0, "IRM": 6}) == pytest.approx(6 * 0.5 * passes / 2), "what is finished takes no time"
    idle[0] = 14.0  # sixteen processes then want eight processors
    assert expected({"ERM": 12, "IRM": 12}) == pytest.approx(2 * 24 * 0.5 * passes / 2)
    idle[0] = 0.0
    assert expected({"ERM": 1}, jobs=1) == expected({"ERM": 1}, jobs=8), "one fit is not faster with eight jobs"
    members = dict.fromkeys(POOL_MEMBERS, 4)
    assert expected({**members, "Pool": 4}) == expected(members), "a pool of what is computed anyhow takes no time"
    assert expected({"Pool": 4}) == expected(members)
    quick = Effort(4, 0)
    assert expected({**members, "Pool": 4}, quick) == pytest.approx(3 * expected(members, quick))


def test_a_short_fit_is_scaled_by_steps_and_trees(table: TrainingTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "_time_fits", lambda fits, data: (0.5, 128))
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    steps = EFFORT.epochs(120) * 2  # two batches of at most 64 rows in 120
    assert preview._seconds_of_all_settings(table, preprocessing, "ERM", 120, EFFORT) == pytest.approx(0.25 * steps)
    trees = preview._seconds_of_all_settings(table, preprocessing, "Gradient boosting", 120, EFFORT)
    assert trees == pytest.approx(0.5 * (80 + 200 + 100 + 400) / preview.TIMED_TREES)


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
