"""Rules for the claims about which environment rows are taken for, and about the loss that teaches p(e|x)."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy import stats

from eber.evaluation.metrics import find_metric
from eber.evaluation.wording import format_interval
from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import Evidence, MissingEvidence, shown
from eber.experiments.claims.judges import EBER, MEANINGFUL, Judge
from eber.experiments.parametric import NO_ENVIRONMENT_LOSS


def all_rows_to_one_environment(setting: str, row: str = EBER) -> Judge:
    """Confirmed: under every seed at least 99 % of the held-out rows are taken for one and the same environment.

    With a condition: under every seed for one environment, but not always for the same. Not confirmed: for several.
    Whether it is the most similar one is not judged, since the paper measures no similarity; who it is, is said.
    """

    def judge(evidence: Evidence) -> Finding:
        by_seed = evidence.shares_taken(setting, row)
        names = [max(taken, key=lambda name: taken[name]) for taken in by_seed.values()]
        shares = [max(taken.values()) for taken in by_seed.values()]
        verdict = Verdict.NOT_CONFIRMED
        if min(shares) >= 0.99:
            verdict = Verdict.CONFIRMED if len(set(names)) == 1 else Verdict.CONDITIONAL
        favourites = ", ".join(f"{name} ({times})" for name, times in Counter(names).most_common())
        return Finding(
            verdict,
            f"{min(shares):.0%} to {max(shares):.0%} of the rows go to one environment",
            f"{len(by_seed)} seeds; it is {favourites}",
        )

    return judge


def no_environment_loss_needed(setting: str, metric: str) -> Judge:
    """Confirmed: the 95 % interval of the difference with and without an environment loss holds zero and no more than
    `MEANINGFUL` on either side.

    With a condition: it holds zero, but larger differences as well. Not confirmed: it does not hold zero.

    This rule was changed after results of few seeds were seen, though not with a look at them: at first an interval of
    any width that held zero was enough, so that fewer seeds made a confirmation easier.
    """

    def judge(evidence: Evidence) -> Finding:
        low, high, ours, words = _without_environment_loss(evidence, setting, metric)
        small, holds = max(-low, high) <= MEANINGFUL, low <= 0 <= high
        verdict = (Verdict.CONFIRMED if small else Verdict.CONDITIONAL) if holds else Verdict.NOT_CONFIRMED
        return Finding(verdict, ours, words)

    return judge


def environment_loss_helps(setting: str, metric: str) -> Judge:
    """Confirmed: the metric is worse without an environment loss; the 95 % interval of the difference holds no zero.

    With a condition: worse, but it holds zero. Not confirmed: no worse.
    """

    def judge(evidence: Evidence) -> Finding:
        low, high, ours, words = _without_environment_loss(evidence, setting, metric)
        if find_metric(metric).higher_is_better:
            low, high = -high, -low
        verdict = Verdict.CONDITIONAL if low + high > 0 else Verdict.NOT_CONFIRMED
        return Finding(Verdict.CONFIRMED if low > 0 else verdict, ours, words)

    return judge


def _without_environment_loss(evidence: Evidence, setting: str, metric: str) -> tuple[float, float, str, str]:
    """Interval of the metric without the loss minus with it, and both in words."""
    own = evidence.by_seed(setting, EBER, metric)
    without = evidence.by_seed(setting, NO_ENVIRONMENT_LOSS, metric)
    common = sorted(set(own) & set(without))
    difference = np.array([without[seed] - own[seed] for seed in common])
    if len(difference) < 2 or np.ptp(difference) == 0:
        raise MissingEvidence(f"fewer than two seeds have both in the setting {setting!r}")
    interval = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
    return (
        float(interval.low),
        float(interval.high),
        f"with {shown(own, metric)}, without {shown(without, metric)}",
        f"{len(common)} seeds; difference {format_interval(interval.low, interval.high)} (95 % interval)",
    )
