"""Each environment held out in turn, summed up: is a method better in most of them, or was one split lucky?

A method's score in an environment is its mean over seeds. Environments are what is drawn from the world (another
hospital might have been in the data), so spreads and tests are over environments, and seeds count for nothing more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eber.evaluation.metrics import Quantity
from eber.evaluation.significance import Comparison, compare_with_reference
from eber.runs.holdouts import held_out
from eber.runs.results import ROLE_ORDER, Role, Summary
from eber.runs.spec import Experiment, Holdouts


@dataclass(frozen=True)
class HoldoutRow:
    """One method over all environments.

    Parameters
    ----------
    label : str
    role : str
        "oracle", "method", "floor", "tuned" or "variant".
    by_environment : mapping
        Environment to the mean over seeds of the primary metric; NaN where there is none.
    n_best : int or None
        Environments in which no other method is better, as printed; None for oracles and variants, which do not
        compete.
    worst : str
        The environment with the worst score; empty where a score is missing or the metric has no direction.
    advantages : mapping
        Environment to how much better the reference method scored there, in units of the metric; empty for itself.
    comparison : Comparison, optional
        The reference method against this one, paired by environment.
    """

    label: str
    role: Role
    by_environment: Mapping[str, float]
    n_best: int | None
    worst: str
    advantages: Mapping[str, float]
    comparison: Comparison | None = None

    @property
    def mean(self) -> float:
        """Over environments; NaN where one has no score."""
        return statistics.fmean(self.by_environment.values())

    @property
    def sd(self) -> float:
        """Standard deviation over environments; NaN where one has no finite score."""
        return statistics.stdev(self.by_environment.values()) if math.isfinite(self.mean) else math.nan

    @property
    def mean_advantage(self) -> float:
        """Of the reference method, over environments; NaN for itself and where a score is missing."""
        return statistics.fmean(self.advantages.values()) if self.advantages else math.nan


@dataclass(frozen=True)
class HoldoutSummary:
    """One family of environments, summed up.

    Parameters
    ----------
    family : str
    environments : tuple of str
        Those in which every method has finished.
    missing : tuple of str
        The others.
    rows : tuple of HoldoutRow
        Oracles, then methods, then variants.
    primary : Quantity
        The metric.
    reference : str
        The method that was tested against the others.
    n_seeds : tuple of int
        The fewest and the most seeds that a score is a mean over.
    audit : mapping
        Environment to what the leak audit found where it is held out.
    note : str
        What a reader must know about these environments.
    changes : mapping
        Parameters that this run changed, and their values.
    """

    family: str
    environments: tuple[str, ...]
    missing: tuple[str, ...]
    rows: tuple[HoldoutRow, ...]
    primary: Quantity
    reference: str
    n_seeds: tuple[int, int]
    audit: Mapping[str, tuple[str, ...]]
    note: str
    changes: Mapping[str, Any]

    @property
    def best(self) -> set[str]:
        """Labels of the methods with the best mean over environments, as printed."""
        return self.primary.best({row.label: row.mean for row in self.rows if row.role == "method"})


def summarise_holdouts(experiment: Experiment, summaries: Sequence[Summary]) -> list[HoldoutSummary]:
    """One summary for each family of which at least two environments have been held out with every method.

    Parameters
    ----------
    experiment : Experiment
    summaries : sequence of Summary
        One for each setting, as :func:`eber.runs.results.summarise` gives them.
    """
    families = (_summarise_family(family, holdouts, summaries) for family, holdouts in experiment.holdouts.items())
    return [summary for summary in families if summary is not None]


def _summarise_family(family: str, holdouts: Holdouts, summaries: Sequence[Summary]) -> HoldoutSummary | None:
    members = {held_out(summary.setting): summary for summary in summaries if summary.setting in holdouts.settings}
    roles = {row.label: row.role for summary in members.values() for row in summary.rows}
    methods = {label for label, role in roles.items() if role == "method"}
    # Means over different environments cannot be compared: an environment counts for all methods or for none.
    finished = {name: summary for name, summary in members.items() if methods <= set(_scores(summary))}
    if len(finished) < 2:
        return None
    one = next(iter(finished.values()))
    seeds = [row.n_seeds for summary in finished.values() for row in summary.rows]
    return HoldoutSummary(
        family,
        tuple(finished),
        tuple(name for name in map(held_out, holdouts.settings) if name not in finished),
        _rows(roles, finished, one.primary, one.reference),
        one.primary,
        one.reference,
        (min(seeds), max(seeds)),
        {name: summary.audit for name, summary in finished.items()},
        holdouts.note,
        one.changes,
    )


def _rows(
    roles: Mapping[str, Role], finished: Mapping[str, Summary], primary: Quantity, reference: str
) -> tuple[HoldoutRow, ...]:
    by_environment = {name: _scores(summary) for name, summary in finished.items()}
    scores = {
        label: {name: found.get(label, math.nan) for name, found in by_environment.items()}
        for label in sorted(roles, key=lambda label: ROLE_ORDER[roles[label]])  # stable: within a role as declared
    }
    methods = {label: own for label, own in scores.items() if roles[label] == "method"}
    against = scores[reference] if primary.higher_is_better is not None and reference in methods else None
    comparisons: Mapping[str, Comparison] = {}
    if against is not None:
        comparisons = compare_with_reference(
            methods, reference, higher_is_better=bool(primary.higher_is_better), unit="environment"
        )
    best = [primary.best({label: own[name] for label, own in methods.items()}) for name in finished]
    return tuple(
        HoldoutRow(
            label,
            roles[label],
            own,
            sum(label in winners for winners in best) if label in methods else None,
            _worst(own, primary),
            _advantages(against, own, primary) if against is not None and label != reference else {},
            comparisons.get(label),
        )
        for label, own in scores.items()
    )


def _scores(summary: Summary) -> dict[str, float]:
    """Row to its mean over seeds."""
    name = summary.primary.name
    return {row.label: row.estimates[name].mean for row in summary.rows if name in row.estimates}


def _worst(scores: Mapping[str, float], primary: Quantity) -> str:
    if primary.higher_is_better is None or any(map(math.isnan, scores.values())):
        return ""
    return (min if primary.higher_is_better else max)(scores, key=lambda name: scores[name])


def _advantages(reference: Mapping[str, float], other: Mapping[str, float], primary: Quantity) -> dict[str, float]:
    sign = 1 if primary.higher_is_better else -1
    return {name: sign * (reference[name] - score) for name, score in other.items()}
