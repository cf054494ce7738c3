"""Is the reference method better than the others, or were its seeds, or the environments held out, lucky?

For each other method a one-sided t-test on the scores under each seed, paired by seed, since both methods saw the same
data under the same seed; or on the scores in each held-out environment, paired by environment. The p-values of one
table are a family and are corrected together by Benjamini and Yekutieli, whose bound holds whatever the dependence
between tests: here they all share the reference method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

CONFIDENCE_LEVEL = 0.95

Unit = TypeVar("Unit", int, str)
"""A seed, by its number, or an environment, by its name."""


@dataclass(frozen=True)
class Comparison:
    """The reference method against one other.

    Parameters
    ----------
    method : str
        The other method.
    n_units : int
        Seeds, or environments, that both have a score of.
    advantage : float
        Mean over units of how much better the reference scored, in units of the metric; negative where it was worse.
    low, high : float
        Two-sided 95 % confidence interval of the advantage, by Student's t.
    p_value : float
        One-sided: how probable so large an advantage is when there is none.
    p_corrected : float
        After correction over the family.
    reason : str
        Why there is no p-value, or none that was computed, where that is so.
    """

    method: str
    n_units: int
    advantage: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    p_corrected: float = math.nan
    reason: str = ""


def compare_with_reference(
    scores: Mapping[str, Mapping[Unit, float]],
    reference: str,
    *,
    higher_is_better: bool,
    unit: Literal["seed", "environment"] = "seed",
) -> dict[str, Comparison]:
    """Test the reference method against each other one and correct over all of them.

    Parameters
    ----------
    scores : mapping
        Method to unit to score. Methods are compared on the units that both have.
    reference : str
        A key of `scores`.
    higher_is_better : bool
        Direction of the metric.
    unit : {"seed", "environment"}
        What the scores are paired by.

    Returns
    -------
    dict
        Other method to comparison, in the order of `scores`. Comparisons without a p-value are not part of the family.
    """
    if reference not in scores:
        raise ValueError(f"There are no scores of the reference method {reference!r}; there are {', '.join(scores)}.")
    raw = {
        method: _compare_pair(method, scores[reference], other, higher_is_better, unit)
        for method, other in scores.items()
        if method != reference
    }
    return _correct(raw)


def _compare_pair(
    method: str, reference: Mapping[Unit, float], other: Mapping[Unit, float], higher_is_better: bool, unit: str
) -> Comparison:
    from scipy import stats

    common = sorted(set(reference) & set(other))
    a = np.array([reference[name] for name in common], dtype=np.float64)
    b = np.array([other[name] for name in common], dtype=np.float64)
    n = len(common)
    if n == 0:
        return Comparison(method, 0, math.nan, reason=f"no {unit} was run with both methods")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        bad = [name for name, x, y in zip(common, a, b, strict=True) if not math.isfinite(x + y)]
        return Comparison(method, n, math.nan, reason=f"scores are not finite for {unit}s {bad}")
    difference = a - b if higher_is_better else b - a
    advantage = float(difference.mean())
    if n < 2:
        return Comparison(method, n, advantage, reason=f"one {unit} cannot show a spread; run at least two")
    rounding = 8 * np.finfo(np.float64).eps * max(np.abs(a).max(), np.abs(b).max())
    if np.ptp(difference) <= rounding:
        if abs(advantage) <= rounding:  # t = 0/0; equal scores are no evidence at all
            return Comparison(method, n, 0.0, 0.0, 0.0, 1.0, reason=f"scores are equal for every {unit}")
        # t would be infinite and p zero, but units which change nothing are no repetitions.
        return Comparison(method, n, advantage, reason=f"the difference is the same for every {unit}")
    interval = stats.ttest_1samp(difference, 0.0).confidence_interval(CONFIDENCE_LEVEL)
    p_value = stats.ttest_1samp(difference, 0.0, alternative="greater").pvalue
    return Comparison(method, n, advantage, float(interval.low), float(interval.high), float(p_value))


def _correct(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    from scipy import stats

    family = [method for method, comparison in comparisons.items() if not math.isnan(comparison.p_value)]
    if not family:
        return dict(comparisons)
    corrected = stats.false_discovery_control([comparisons[method].p_value for method in family], method="by")
    return dict(comparisons) | {
        method: replace(comparisons[method], p_corrected=float(p)) for method, p in zip(family, corrected, strict=True)
    }
