"""What is called significant, an interval or a leak is so about as rarely, or as often, as is stated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from eber.compare.running import comparison
from eber.compare.summary import ComparisonSummary, summarise_comparison
from eber.datasets.base import MultiEnvironmentData
from eber.evaluation.metrics import METRICS
from eber.evaluation.significance import compare_with_reference
from eber.leaks.audit import LeakAudit, leak_audit
from eber.methods import default_methods
from eber.runs.results import Results
from tests.trust.effort import times

Tally = Callable[[str, int], None]
Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]

METHODS = default_methods()
UNLIKELY = 1e-3
"""A test fails when what was counted had so small a probability under what is stated."""

NORMAL: Draw = lambda rng, size: rng.normal(size=size)  # noqa: E731
SKEWED: Draw = lambda rng, size: np.exp(0.5 * rng.normal(size=size)) - np.exp(0.125)  # noqa: E731
VERY_SKEWED: Draw = lambda rng, size: np.exp(rng.normal(size=size)) - np.exp(0.5)  # noqa: E731


def rarer_than(count: int, total: int, stated: float) -> bool:
    """Whether so high a count can be chance when the stated rate, or a lower one, is true."""
    return bool(stats.binomtest(count, total, stated, alternative="greater").pvalue > UNLIKELY)


@pytest.mark.parametrize("noise", [NORMAL, SKEWED], ids=["normal", "skewed"])
@pytest.mark.parametrize("n_seeds", [3, 10])
def test_seeds_where_no_method_is_better_are_called_significant_in_one_table_of_twenty_at_most(
    noise: Draw, n_seeds: int, tally: Tally
) -> None:
    """Seen to fail without the correction: one table in eight then."""
    tables, alarms = times(120, 5000), 0
    rng = np.random.default_rng(n_seeds)
    for _ in range(tables):
        luck = rng.normal(size=n_seeds)  # of each seed's data, which all methods share
        scores = {m: dict(enumerate((luck + noise(rng, (n_seeds,))).tolist())) for m in METHODS}
        alarms += any(
            c.p_corrected < 0.05 for c in compare_with_reference(scores, METHODS[0], higher_is_better=True).values()
        )
    assert rarer_than(alarms, tables, 0.05)
    tally("tables where no method is better: simulated", tables)
    tally("tables where no method is better: called significant (at most 5 % is stated)", alarms)


def summary_of(scores: NDArray[np.float64]) -> ComparisonSummary:
    """The comparison of all methods; scores are (method, fold)."""
    folds = {f"h{j}": (f"h{j}",) for j in range(scores.shape[1])}
    rows = [
        {"setting": fold, "method": method, "variant": "main", "seed": 0, "metric": metric, "value": scores[i, j]}
        for i, method in enumerate(METHODS)
        for j, fold in enumerate(folds)
        for metric in METRICS
    ]
    cells = pd.DataFrame(rows).assign(experiment="compare")
    timings = cells[cells["metric"] == "nll"].assign(seconds=1.0)
    experiment = comparison(folds, label="y", environment="e")
    return summarise_comparison(Results(experiment, Path(), cells, timings, pd.DataFrame(), pd.DataFrame(), {}))


@pytest.mark.parametrize("n_folds", [3, 8])
def test_a_comparison_where_no_method_is_better_names_a_winner_in_one_of_twenty_at_most(
    n_folds: int, tally: Tally
) -> None:
    """The leader is chosen by the scores. Seen to fail when its tests alone are corrected, one-sided.

    Who is told from the leader is counted, not what the verdict says, silent where no model is unbeaten.
    """
    tables, alarms = times(25, 1500), 0
    rng = np.random.default_rng(n_folds)
    for _ in range(tables):
        summary = summary_of(rng.normal(size=(1, n_folds)) + rng.normal(size=(len(METHODS), n_folds)))
        told_apart = len(summary.rivals) < len(summary.rows) - 1
        assert told_apart or "significantly better" not in summary.verdict
        alarms += told_apart
    assert rarer_than(alarms, tables, 0.05)
    tally("tables where no method is better: simulated", tables)
    tally("tables where no method is better: called significant (at most 5 % is stated)", alarms)


@pytest.mark.parametrize(
    ("name", "noise", "stated"),
    [("normal", NORMAL, 0.95), ("skewed", SKEWED, 0.90), ("very skewed", VERY_SKEWED, 0.8)],
    ids=["normal", "skewed", "very skewed"],
)
@pytest.mark.parametrize("n_folds", [3, 5, 8, 20])
def test_intervals_over_folds_cover_as_often_as_is_stated(
    name: str, noise: Draw, stated: float, n_folds: int, tally: Tally
) -> None:
    """95 % where folds scatter as a normal does; less where a few environments are much worse than the others."""
    rng = np.random.default_rng(n_folds)
    covered = total = 0
    for _ in range(times(24 if n_folds == 3 else 4, 600)):
        for row in summary_of(noise(rng, (len(METHODS), n_folds))).rows:
            covered += row.low <= 0 <= row.high
            total += 1
            # Simulations this short tell a wrong factor only when it is large; Student's interval itself is the judge.
            students = stats.ttest_1samp([fold["nll"] for fold in row.by_fold.values()], 0).confidence_interval(0.95)
            np.testing.assert_allclose((row.low, row.high), (students.low, students.high))
    assert stats.binomtest(covered, total, stated, alternative="less").pvalue > UNLIKELY
    if name == "normal":  # neither too narrow nor too wide
        assert stats.binomtest(covered, total, stated).pvalue > UNLIKELY
    tally(f"intervals over {n_folds:2} folds, {name}: simulated", total)
    tally(f"intervals over {n_folds:2} folds, {name}: that hold the truth (at least {stated:.0%} is stated)", covered)


def shifted(rng: np.random.Generator, m: int, n: int, d: int) -> NDArray[np.float64]:
    return (rng.normal(size=(m, n, d)) + 0.5 * rng.normal(size=(m, 1, d))).reshape(m * n, d)


def gaussian(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    return shifted(rng, m, n, 6)


def rounded(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    return np.round(shifted(rng, m, n, 4), 1)


def counts(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    return rng.poisson(np.exp(0.5 * shifted(rng, m, n, 5) + 0.5)).astype(float)


def rare_counts(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    return rng.poisson(0.3, size=(m * n, 8)).astype(float)


def mostly_none(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    X = shifted(rng, m, n, 6)
    return np.where(rng.random(X.shape) < 0.7, 0.0, X)


def composition(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    """Shares of forty taxa, most of them rare, as from 2,000 reads a sample."""
    mean = np.repeat(rng.gamma(2, size=(m, 40)) * (rng.gamma(0.1, size=40) + 1e-3), n, axis=0)
    p = rng.gamma(mean + 1e-3)
    reads = np.stack([rng.multinomial(2000, row / row.sum()) for row in p])
    return reads / reads.sum(1, keepdims=True)


def like_a_table(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    """Rounded, yes or no, and one-hot columns."""
    X = shifted(rng, m, n, 3)
    kinds = np.eye(4)[rng.integers(4, size=m * n)]
    return np.column_stack([np.round(X[:, 0], 1), X[:, 1] > 0, X[:, 2] > 0.5, kinds, np.round(60 + 10 * X[:, 1])])


def drawn(rng: np.random.Generator, m: int, n: int, levels: int, spread: float) -> NDArray[np.float64]:
    """A one-hot column whose levels have other frequencies in each environment."""
    p = rng.dirichlet(np.ones(levels) / spread, size=m)
    return np.concatenate([np.eye(levels)[rng.choice(levels, size=n, p=row)] for row in p])


def yes_or_no(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    return np.column_stack([drawn(rng, m, n, 2, 1.0)[:, 0] for _ in range(8)])


def categories_and_age(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    """Rows that agree in all categories and nearly in age are near by nature."""
    categories = [drawn(rng, m, n, levels, 0.5) for levels in (2, 2, 3, 3, 4, 5)]
    return np.column_stack([*categories, np.round(60 + 12 * shifted(rng, m, n, 1), 1)])


def few_classes(rng: np.random.Generator, m: int, n: int) -> NDArray[np.float64]:
    """Ten categories that depend on one of five classes, of which an environment may have hardly any."""
    typical = rng.integers(4, size=(5, 10))
    X = typical[np.concatenate([rng.choice(5, size=n, p=rng.dirichlet(np.full(5, 0.5))) for _ in range(m)])]
    return np.where(rng.random(X.shape) < 0.05, rng.integers(4, size=X.shape), X).astype(float)


KINDS = [
    gaussian,
    rounded,
    counts,
    rare_counts,
    mostly_none,
    composition,
    like_a_table,
    yes_or_no,
    categories_and_age,
    few_classes,
]


def audit(X: NDArray[np.float64], m: int) -> LeakAudit:
    data = MultiEnvironmentData(X, np.zeros(len(X)), np.repeat(np.arange(m), len(X) // m))
    return leak_audit(*data.split(m - 1))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_leak_audit_cries_wolf_in_one_data_set_of_a_hundred_at_most(
    kind: Callable[..., NDArray[np.float64]], tally: Tally
) -> None:
    """Independent rows, small and middling. Rows without a value of their own: see tests/leaks/test_audit.py."""
    alarms = total = 0
    for m, n, short in ((3, 25, 40), (4, 100, 24)):
        for seed in range(times(short, 400)):
            alarms += audit(kind(np.random.default_rng([m, n, seed]), m, n), m).found
            total += 1
    assert rarer_than(alarms, total, 0.01)
    tally("data sets without a leak: audited", total)
    tally("data sets without a leak: with an alarm (at most 1 % is stated)", alarms)


@pytest.mark.parametrize("kind", [gaussian, composition, mostly_none], ids=lambda kind: kind.__name__)
def test_the_leak_audit_finds_planted_copies(kind: Callable[..., NDArray[np.float64]], tally: Tally) -> None:
    """Five copied rows among a hundred. Where rows repeat by nature, copies cannot be told and are not promised."""
    found = planted = 0
    for seed in range(times(5, 100)):
        rng = np.random.default_rng(seed)
        X = kind(rng, 4, 100)
        own = np.flatnonzero((X[:300] != 0).sum(1) > 2)  # a row with hardly a value of its own may well occur twice
        X[-5:] = X[rng.choice(own, 5, replace=False)]
        found += np.isin(np.arange(95, 100), audit(X, 4).leaked_rows).sum()
        planted += 5
    assert found >= 0.95 * planted
    tally("copied rows: planted", planted)
    tally("copied rows: found (at least 95 % is stated)", int(found))
