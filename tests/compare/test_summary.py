"""The verdict says no more than the tests allow, and suspicions are found where they were planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.compare.folds import plan_folds
from eber.compare.running import comparison
from eber.compare.summary import ComparisonSummary, summarise_comparison
from eber.compare.suspicions import Suspicion, find_suspicions
from eber.evaluation.metrics import METRICS
from eber.runs.results import Results
from eber.tables.training import read_training_table

FOLDS = {f"h{j}": (f"h{j}",) for j in range(8)}


def summary_of(scores: dict[str, list[float]], metric: str = "nll") -> ComparisonSummary:
    experiment = comparison(FOLDS, label="y", environment="e", metric=metric)
    rows, times = [], []
    for method, values in scores.items():
        for fold, value in zip(FOLDS, values, strict=False):
            common = {"experiment": "compare", "setting": fold, "method": method, "variant": "main", "seed": 0}
            rows += [{**common, "metric": name, "value": value} for name in METRICS]
            times.append({**common, "seconds": 1.0})
    return summarise_comparison(
        Results(experiment, Path(), pd.DataFrame(rows), pd.DataFrame(times), pd.DataFrame(), pd.DataFrame(), {})
    )


def test_a_clear_winner_is_called_one() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.3, 0.6, 8)
    summary = summary_of({"EBER": list(base), "ERM": list(base + 0.2 + 0.01 * rng.normal(size=8))})
    assert summary.leader.method == "EBER"
    assert summary.rivals == []
    assert summary.recommended.method == "EBER"
    assert summary.verdict.startswith("Use EBER: over 8 held-out environments it is significantly better (NLL 0.")
    assert "than ERM (p < 0.001)." in summary.verdict


def test_methods_that_cannot_be_told_apart_are_named_and_the_simplest_is_advised() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.3, 0.6, 8)
    swings = 0.05 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    summary = summary_of({"EBER": list(base), "Logistic regression": list(base + swings + 0.001)})
    assert len(summary.rivals) == 1
    assert summary.verdict.startswith(
        "It is a tie: over 8 held-out environments, EBER and Logistic regression cannot be"
    )
    assert summary.recommended.method == "Logistic regression"
    assert "Use Logistic regression, the simplest of these" in summary.verdict
    assert "significantly" not in summary.verdict


def test_where_nothing_beats_the_average_rate_the_verdict_says_so_first() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.3, 0.6, 8)
    noise = {name: base + 0.05 * rng.normal(size=8) for name in ("EBER", "Logistic regression", "Pool")}
    tied = summary_of({**{name: list(values) for name, values in noise.items()}, "No model": list(base)})
    assert not tied.beats_no_model
    assert tied.verdict.startswith("Nothing here predicts a new e better than its average rate, as far as 8 held-out")
    assert "Use " not in tied.verdict
    assert "significantly" not in tied.verdict
    ahead = summary_of({"EBER": list(base + 0.1), "No model": list(base)})
    assert ahead.recommended.method == "No model"
    assert ahead.verdict.startswith("Nothing here predicts a new e better")


def test_far_ahead_in_each_of_four_environments_is_not_called_nothing() -> None:
    """Four folds cannot pass a test that pays for fifteen pairs; that is said of the folds, and not of the methods."""
    rate = np.array([0.69, 0.66, 0.71, 0.64])
    gains = {
        "ERM": [0.20, 0.09, 0.24, 0.13],
        "Logistic regression": [0.18, 0.02, 0.21, 0.05],
        "Pool": [0.19, 0.08, 0.22, 0.10],
        "EBER": [0.17, 0.06, 0.26, 0.04],
        "Random forest": [0.12, 0.09, 0.21, 0.12],
    }
    scores = {name: list(rate - gain) for name, gain in gains.items()}
    summary = summary_of({**scores, "No model": list(rate)})
    assert not summary.beats_no_model
    assert summary.verdict.startswith(
        "Too few environments to be sure: ERM does better than No model in each of 4 held-out environments (NLL 0.510 "
        "against 0.675 on average)"
    )
    assert "Nothing here" not in summary.verdict
    assert summary.recommended.method == "Logistic regression"
    one_behind = summary_of({"ERM": list(rate - [0.30, 0.29, 0.34, -0.01]), "No model": list(rate)})
    assert one_behind.verdict.startswith("Nothing here predicts a new e better than its average rate")


def test_noise_is_not_taken_for_too_few_environments() -> None:
    """Of methods no better than the average rate, seldom does the luckiest look ahead everywhere."""
    rng = np.random.default_rng(0)
    names, found = ["EBER", "Logistic regression", "Pool"], 0
    for _ in range(20):
        rate, shared = rng.uniform(0.5, 0.7, 4), 0.02 * rng.normal(size=4)
        scores = {name: list(rate + shared + 0.02 * rng.normal(size=4)) for name in names}
        found += summary_of({**scores, "No model": list(rate)}).ahead_everywhere
    assert found < 3


def test_no_method_is_advised_that_is_worse_than_no_model() -> None:
    """Logistic regression is simpler and cannot be told from the leader, but a share of each class does better."""
    rng = np.random.default_rng(1)
    base = rng.uniform(0.3, 0.6, 8)
    swings = 0.6 * np.array([1, -1, 1, -1, 1, -1, 1, -0.6])
    scores = {"EBER": base, "No model": base + 0.02 + 0.001 * rng.normal(size=8), "Logistic regression": base + swings}
    summary = summary_of({name: list(values) for name, values in scores.items()})
    assert summary.beats_no_model
    assert summary.rivals == ["Logistic regression"]
    assert summary.recommended.method == "EBER"
    assert "Logistic regression, though simpler, did worse than No model" in summary.verdict


def test_a_pool_is_the_least_simple() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.3, 0.6, 8)
    swings = 0.05 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    summary = summary_of({"Pool": list(base), "EBER": list(base + swings + 0.001), "No model": list(base + 0.5)})
    assert summary.leader.method == "Pool"
    assert summary.recommended.method == "EBER"


def test_higher_is_better_turns_the_ranking() -> None:
    values = {"EBER": [0.9] * 8, "Gradient boosting": [0.8] * 8}
    assert summary_of(values, "auroc").leader.method == "EBER"
    assert summary_of(values, "nll").leader.method == "Gradient boosting"


def test_all_pairs_are_corrected_together() -> None:
    """The leader is chosen by the scores, so its p-values must pay for every pair it might have been part of."""
    rng = np.random.default_rng(1)
    base = rng.uniform(0.3, 0.6, 8)
    two = {"EBER": list(base), "ERM": list(base + 0.02 + 0.02 * rng.normal(size=8))}
    others = {name: list(base + 0.3 + 0.2 * rng.normal(size=8)) for name in ("Pool", "Random forest", "No model")}
    alone, crowd = summary_of(two), summary_of({**two, **others})
    test, crowded = alone.rows[1].test, next(row.test for row in crowd.rows if row.method == "ERM")
    assert test is not None
    assert crowded is not None
    assert test.p_corrected < crowded.p_corrected


def test_one_fold_shows_no_certainty() -> None:
    summary = summary_of({"EBER": [0.3], "ERM": [0.4]})
    assert np.isnan(summary.leader.low)
    assert "cannot show how sure" in summary.verdict


@pytest.fixture
def frame() -> pd.DataFrame:
    """Three sites with nothing suspicious in them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(240, 4)), columns=list("abcd"))
    return X.assign(site=np.repeat(["s1", "s2", "s3"], 80), y=rng.integers(0, 2, 240))


def suspicions(tmp_path: Path, frame: pd.DataFrame) -> list[Suspicion]:
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    table = read_training_table(path, label="y", environment="site")
    return find_suspicions(table, plan_folds(table.y, table.environments))


def test_an_innocent_table_raises_no_suspicion(tmp_path: Path, frame: pd.DataFrame) -> None:
    assert suspicions(tmp_path, frame) == []


def test_planted_leaks_are_found(tmp_path: Path, frame: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    frame["outcome_score"] = frame["y"] + 0.01 * rng.normal(size=240)
    frame["scanner_offset"] = frame["site"].map({"s1": 0.0, "s2": 5.0, "s3": 9.0}) + rng.normal(size=240)
    frame.loc[200:219, list("abcd")] = frame.loc[0:19, list("abcd")].to_numpy()
    frame["subject_id"] = [*range(200), *range(20), *range(300, 320)]
    found = suspicions(tmp_path, frame)
    label, *shared, environment = found
    assert (label.kind, label.columns) == ("label_leak", ["outcome_score"])
    assert "'outcome_score' alone tells" in label.sentence
    assert (environment.kind, environment.columns) == ("environment_leak", ["scanner_offset"])
    assert "'scanner_offset'" in environment.sentence
    assert {(found.kind, *found.folds, *found.columns) for found in shared} == {
        ("shared_rows", "s1", "subject_id"),
        ("shared_rows", "s3", "subject_id"),
    }
    (s3,) = [found for found in shared if found.environments == ("s3",)]
    assert s3.sentence.startswith("s3: 20 of 80 held-out rows carry an identifier")
    assert "Identifiers are those of column 'subject_id'" in s3.sentence


@pytest.mark.parametrize("name", ["bed_id", "complaint", "blood pressure"])
def test_beds_and_free_text_that_repeat_are_no_shared_subjects(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    frame[name] = [f"{i % 150}/80" for i in range(240)]
    assert suspicions(tmp_path, frame) == []


def test_copies_are_found_although_every_site_has_double_entries(tmp_path: Path, frame: pd.DataFrame) -> None:
    values = frame[list("abcd")].to_numpy(copy=True)
    values[[0, 80, 160]] = values[[1, 81, 161]]
    values[150:156], values[230:236] = values[10:16], values[90:96]
    frame[list("abcd")] = values
    found = suspicions(tmp_path, frame)
    assert [suspicion.sentence[:12] for suspicion in found] == ["s1: 6 of 80 ", "s2: 12 of 80", "s3: 6 of 80 "]


def test_identical_rows_are_mentioned_even_where_they_are_usual(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame[list("abcd")] = (frame[list("abcd")] > 0).astype(int)
    (found,) = suspicions(tmp_path, frame)
    assert (found.kind, found.folds) == ("usual_copies", ["s1", "s2", "s3"])
    assert "s1 80 of 80, s2 80 of 80, s3 80 of 80" in found.sentence
    assert "too usual in these data, to be counted as a leak" in found.sentence


def test_one_pair_of_identical_rows_in_a_large_table_is_mentioned(
    tmp_path: Path, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit looks at a sample, which does not have both."""
    monkeypatch.setattr("eber.compare.suspicions.MAX_AUDIT_ROWS", 60)
    frame.loc[239, list("abcd")] = frame.loc[0, list("abcd")]
    (found,) = suspicions(tmp_path, frame)
    assert "s1 1 of 80, s3 1 of 80" in found.sentence
