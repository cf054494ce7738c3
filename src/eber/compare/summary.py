"""Which method is best here, and how sure is that: means over held-out folds, intervals, and tests of all pairs.

A method's score on a fold is its mean over seeds. Folds are what is drawn from the world (another hospital might have
been in the table), so intervals and tests are over folds. Every pair of methods is tested, two-sided and paired by
fold, and all pairs are corrected together by Benjamini and Yekutieli: the leader is not known before the scores are,
and its tests must hold whichever method it turns out to be. Folds share training rows, so the p-values are a guide and
not exact.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from eber.compare.verdict import verdict
from eber.evaluation.metrics import METRICS, Metric, find_metric
from eber.evaluation.significance import compare_with_reference
from eber.evaluation.wording import LEVEL
from eber.methods import NO_MODEL
from eber.runs.cell import ADAPTED, MAIN
from eber.runs.results import Results


@dataclass(frozen=True)
class LeaderTest:
    """The leader against one other method.

    Parameters
    ----------
    n_folds : int
        Folds that both have a score of.
    advantage, low, high : float
        Mean advantage of the leader over folds, and its two-sided 95 % interval.
    p_corrected : float
        Two-sided, corrected over all pairs of methods.
    """

    n_folds: int
    advantage: float
    low: float
    high: float
    p_corrected: float


@dataclass(frozen=True)
class MethodSummary:
    """One method over all folds.

    Parameters
    ----------
    method : str
    by_fold : mapping
        Fold to metric to the mean over seeds.
    means : mapping
        Metric to its mean over the folds where it is defined.
    low, high : float
        95 % interval of the mean of the ranking metric over folds, by Student's t; NaN for one fold.
    seconds : float
        Mean time of a fit, choice of a penalty weight included.
    simplicity : int
        The order in which methods that cannot be told apart are recommended, the simplest first.
    test : LeaderTest, optional
        The leader against this method; none for the leader itself.
    """

    method: str
    by_fold: Mapping[str, Mapping[str, float]]
    means: Mapping[str, float]
    low: float
    high: float
    seconds: float
    simplicity: int
    test: LeaderTest | None = None


@dataclass(frozen=True)
class ComparisonSummary:
    """All methods, best first.

    Parameters
    ----------
    metric : Metric
        The one that they are ranked by.
    rows : tuple of MethodSummary
    adapted : MethodSummary, optional
        EBER adapted to the held-out rows, which is not ranked: it has seen them, if not their labels.
    folds : tuple of str
        Those with a score.
    n_seeds : int
    alone : bool
        Whether each fold is a single environment.
    environment : str
        What the table calls an environment.
    """

    metric: Metric
    rows: tuple[MethodSummary, ...]
    adapted: MethodSummary | None
    folds: tuple[str, ...]
    n_seeds: int
    alone: bool
    environment: str = "environment"

    @property
    def held_out(self) -> str:
        """How many environments, or folds of them, were held out, in words."""
        n = len(self.folds)
        noun = "environment" if self.alone else "fold"
        return f"{n} held-out {noun}{'' if n == 1 else 's'}"

    @property
    def leader(self) -> MethodSummary:
        """The method with the best mean."""
        return self.rows[0]

    @property
    def rivals(self) -> list[str]:
        """Methods that the tests cannot tell from the leader."""
        return [row.method for row in self.rows[1:] if row.test is None or not row.test.p_corrected < LEVEL]

    @property
    def no_model(self) -> MethodSummary | None:
        """The average rate of the training environments, where it is among the rows."""
        return next((row for row in self.rows if row.method == NO_MODEL), None)

    @property
    def beats_no_model(self) -> bool:
        """Whether the leader is significantly better than the average rate; so where that was not compared."""
        return self.no_model is None or (self.no_model is not self.leader and NO_MODEL not in self.rivals)

    @property
    def recommended(self) -> MethodSummary:
        """The simplest of the leader and those that cannot be told from it, but none that is worse than no model."""
        tied = [row for row in self.rows if row is self.leader or row.method in self.rivals]
        if self.no_model is None or self.no_model is self.leader:
            return min(tied, key=lambda row: row.simplicity) if self.no_model is None else self.leader
        ahead = self.rows[: self.rows.index(self.no_model)]
        return min((row for row in tied if row in ahead), key=lambda row: row.simplicity)

    @property
    def ahead_everywhere(self) -> bool:
        """Whether the leader beats the average rate in every fold, and by more on average than folds differ.

        More cannot be seen of few environments: a test that pays for all pairs of methods finds next to nothing in
        four, however far ahead a method is.
        """
        if self.no_model is None or self.no_model is self.leader:
            return False
        name, test = self.metric.name, self.no_model.test
        both = [fold for fold in self.leader.by_fold if fold in self.no_model.by_fold]
        better = [
            self.metric.is_better(self.leader.by_fold[fold][name], self.no_model.by_fold[fold][name]) for fold in both
        ]
        return all(better) and test is not None and test.low > 0

    @property
    def verdict(self) -> str:
        """What to use, in no stronger words than the tests allow: a tie is called one."""
        return verdict(self)


def summarise_comparison(results: Results) -> ComparisonSummary:
    """Sum up what an output folder holds."""
    metric = find_metric(results.experiment.primary_metric)
    cells = results.cells[results.cells["metric"].isin(list(METRICS))]
    if cells.empty:
        raise ValueError(f"{results.folder} holds no finished fit: there is nothing to report yet.")
    rows = [
        _summarise_method(results, cells, method, MAIN, metric)
        for method in results.experiment.methods
        if ((cells["method"] == method) & (cells["variant"] == MAIN)).any()
    ]
    rows = _rank(rows, metric)
    folds = tuple(fold for fold in results.experiment.settings if fold in set(cells["setting"]))
    members = [json.loads(str(results.experiment.settings[fold]["held_out"])) for fold in folds]
    has_adapted = (cells["variant"] == ADAPTED).any()
    return ComparisonSummary(
        metric,
        tuple(_test(rows, metric)),
        _summarise_method(results, cells, "EBER", ADAPTED, metric) if has_adapted else None,
        folds,
        int(cells["seed"].nunique()),
        all(len(environments) == 1 for environments in members),
        str(results.experiment.parameters["environment"]),
    )


def _summarise_method(
    results: Results, cells: pd.DataFrame, method: str, variant: str, metric: Metric
) -> MethodSummary:
    own = cells[(cells["method"] == method) & (cells["variant"] == variant)]
    # A seed without a score makes its fold's mean NaN; it is not passed over in silence.
    table = (
        own.groupby(["setting", "metric"], sort=False)["value"].agg(lambda values: values.mean(skipna=False)).unstack()
    )
    by_fold = {str(fold): {str(name): float(value) for name, value in row.items()} for fold, row in table.iterrows()}
    values = table[metric.name].dropna().to_numpy()
    low = high = math.nan
    if len(values) > 1:
        half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        low, high = float(values.mean() - half), float(values.mean() + half)
    times = results.timings[(results.timings["method"] == method) & (results.timings["variant"] == MAIN)]
    means = {name: float(table[name].mean()) for name in METRICS}
    simplicity = results.experiment.method(method).simplicity
    return MethodSummary(method, by_fold, means, low, high, float(times["seconds"].mean()), simplicity)


def _rank(rows: list[MethodSummary], metric: Metric) -> list[MethodSummary]:
    sign = -1 if metric.higher_is_better else 1

    def key(row: MethodSummary) -> float:
        mean = row.means[metric.name]
        return math.inf if math.isnan(mean) else sign * mean

    return sorted(rows, key=key)


def _test(rows: list[MethodSummary], metric: Metric) -> list[MethodSummary]:
    """The rows with the tests of the first against the others."""
    scores = [
        {j: row.by_fold[fold][metric.name] for j, fold in enumerate(rows[0].by_fold) if _has(row, fold, metric)}
        for row in rows
    ]
    pairs = list(itertools.combinations(range(len(rows)), 2))
    tests = {}
    for a, b in pairs:
        pair = {"a": scores[a], "b": scores[b]}
        tests[a, b] = compare_with_reference(pair, "a", higher_is_better=bool(metric.higher_is_better))["b"]
    family = [pair for pair in pairs if not math.isnan(tests[pair].p_value)]
    two_sided = [min(1.0, 2 * min(tests[pair].p_value, 1 - tests[pair].p_value)) for pair in family]
    corrected = stats.false_discovery_control(two_sided, method="by") if family else []
    p = dict(zip(family, np.asarray(corrected).tolist(), strict=True))
    tested = [rows[0]]
    for j, row in enumerate(rows[1:], start=1):
        t = tests[0, j]
        test = LeaderTest(t.n_units, t.advantage, t.low, t.high, p.get((0, j), math.nan))
        tested.append(MethodSummary(**{**vars(row), "test": test}))
    return tested


def _has(row: MethodSummary, fold: str, metric: Metric) -> bool:
    return not math.isnan(row.by_fold.get(fold, {}).get(metric.name, math.nan))
