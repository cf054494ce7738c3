"""The preview counts the fits that are made, and scales a short one by what a whole one has to do."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eber.compare import preview
from eber.compare.folds import FoldPlan, plan_folds
from eber.compare.methods import Effort
from eber.compare.running import evaluate_fold
from eber.estimators import IRMClassifier
from eber.model_selection import SELECTION_RULES
from eber.runs.joint_fits import run_alone
from eber.tables.training import TrainingTable, read_training_table
from eber.workflow.comparing import duration

EFFORT = Effort(steps=4, penalty_weights=(1.0, 10.0, 100.0))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TrainingTable:
    """Four sites of forty rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=160), "y": np.arange(160) % 2, "site": np.repeat(list("abcd"), 40)})
    path = tmp_path_factory.mktemp("preview") / "t.parquet"
    frame.to_parquet(path)
    return read_training_table(path, label="y", environment="site")


@pytest.mark.parametrize("rule", SELECTION_RULES)
def test_as_many_fits_are_promised_as_are_made(
    table: TrainingTable, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    complete = IRMClassifier._complete

    def counted(*arguments: Any) -> None:
        made.append(1)
        complete(*arguments)

    monkeypatch.setattr(IRMClassifier, "_complete", counted)
    effort = replace(EFFORT, selection=rule)
    run_alone(evaluate_fold(table, table.environments == "a", "IRM", 0, effort))
    assert preview.fits_of("IRM", table, effort) == len(made)
    assert preview.fits_of("ERM", table, effort) == preview.fits_of("IRM", table, Effort(4, (1.0,))) == 1


def test_a_short_fit_is_scaled_by_steps_fits_folds_seeds_and_jobs(
    table: TrainingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "_time_short_fit", lambda *_: (0.5, 128))  # two steps in half a second
    monkeypatch.setattr(preview, "cores", lambda: 8.0)
    load = 0.0
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    plan = plan_folds(table.y, table.environments)
    expected = preview.expected_seconds(table, ["ERM", "IRM"], plan, n_seeds=3, effort=EFFORT, jobs=2)
    steps = EFFORT.epochs(120) * 2  # two batches of at most 64 rows in 120
    assert expected == pytest.approx(preview.WORKER_START + (1 + 4) * 0.25 * steps * 4 * 3 / 2)
    load = 14.0  # sixteen processes then want eight processors
    busy = preview.expected_seconds(table, ["ERM", "IRM"], plan, n_seeds=3, effort=EFFORT, jobs=2)
    assert busy - preview.WORKER_START == pytest.approx(2 * (expected - preview.WORKER_START))
    load = 0.0
    one = FoldPlan(dict(list(plan.folds.items())[:1]), ())
    alone = [preview.expected_seconds(table, ["ERM"], one, n_seeds=1, effort=EFFORT, jobs=jobs) for jobs in (1, 8)]
    assert alone[0] == alone[1], "one fit is not faster with eight jobs"


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
