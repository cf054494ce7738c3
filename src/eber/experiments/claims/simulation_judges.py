"""Rules for the claims about the motivating example and the parametric simulation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import stats

from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import Evidence, mean, shown
from eber.experiments.claims.judges import EBER, Judge
from eber.experiments.motivating import CONDITIONAL, LIMIT, NUMBERS, UNIFORM, column
from eber.experiments.parametric import (
    PLAIN,
    PLAIN_ALGORITHM,
    PLAIN_ALGORITHM_RELU,
    PLAIN_DECOMPOSED,
    PLAIN_DECOMPOSED_RELU,
    PLAIN_RELU,
)
from eber.experiments.parametric_paper import PAPER
from eber.methods import paper_methods

BAYES = "Bayes-x"
SAME_RATE = 0.05
"""How far a slope may be from the rate it is said to have."""
NEARLY = 0.01
"""Two scores that differ by no more nearly match."""
CLOSE = 2.0
"""So many of the paper's standard deviations are between figures that can be called the same."""


def rate_of_conditional_weights(evidence: Evidence) -> Finding:
    """Confirmed: the slope of log error against log m is -1/2 to within `SAME_RATE`."""
    errors = [mean(evidence.by_seed("baseline", CONDITIONAL, column(m))) for m in NUMBERS]
    slope = float(stats.linregress(np.log(NUMBERS), np.log(errors)).slope)
    right = abs(slope + 0.5) < SAME_RATE
    return Finding(
        Verdict.CONFIRMED if right else Verdict.NOT_CONFIRMED,
        f"slope {slope:.3f}",
        f"error {errors[0]:.4f} at m = {NUMBERS[0]}, {errors[-1]:.4f} at m = {NUMBERS[-1]}",
    )


def biased_limit_of_uniform_weights(evidence: Evidence) -> Finding:
    """Confirmed: at the largest m the error is near its limit and the limit is not near zero."""
    last = column(NUMBERS[-1])
    error, limit, conditional = (mean(evidence.by_seed("baseline", row, last)) for row in (UNIFORM, LIMIT, CONDITIONAL))
    right = abs(error / limit - 1) < 0.1 and limit > 10 * conditional
    return Finding(
        Verdict.CONFIRMED if right else Verdict.NOT_CONFIRMED,
        f"error {error:.3f} at m = {NUMBERS[-1]}, limit {limit:.3f}",
        f"conditional weights have {conditional:.4f} there",
    )


def nearly_bayes(setting: str, *metrics: str) -> Judge:
    """Confirmed: within `NEARLY` of Bayes-x in each metric. Not confirmed: in none; else with a condition."""

    def judge(evidence: Evidence) -> Finding:
        gaps = {}
        for metric in metrics:
            gaps[metric] = abs(
                mean(evidence.by_seed(setting, EBER, metric)) - mean(evidence.by_seed(setting, BAYES, metric))
            )
        near = [metric for metric, gap in gaps.items() if gap <= NEARLY]
        verdict = Verdict.CONDITIONAL if near else Verdict.NOT_CONFIRMED
        if len(near) == len(gaps):
            verdict = Verdict.CONFIRMED
        own = {metric: evidence.by_seed(setting, EBER, metric) for metric in metrics}
        return Finding(
            verdict,
            "; ".join(f"{metric} {shown(scores, metric)}" for metric, scores in own.items()),
            f"{len(own[metrics[0]])} seeds; from Bayes-x: "
            + ", ".join(f"{metric} {gap:.3f}" for metric, gap in gaps.items())
            + f" (near: at most {NEARLY:g})",
        )

    return judge


def advantage_shrinks(setting: str, against: str = "baseline") -> Judge:
    """Confirmed: the NLL of the best other method is less than half as far from EBER's as in the other setting."""

    def judge(evidence: Evidence) -> Finding:
        gaps = {
            where: _best_other(evidence, where) - mean(evidence.by_seed(where, EBER, "nll"))
            for where in (setting, against)
        }
        return Finding(
            Verdict.CONFIRMED if gaps[setting] < 0.5 * gaps[against] else Verdict.NOT_CONFIRMED,
            f"advantage over the best other method {gaps[setting]:.3f} at {setting}",
            f"{gaps[against]:.3f} at {against}",
        )

    return judge


def more_rows_help(setting: str, against: str = "baseline") -> Judge:
    """Confirmed: EBER's NLL is lower than in the other setting, its lead over the best other method half of that there.

    With a condition: lower, but the lead is smaller. Not confirmed: not lower.
    """

    def judge(evidence: Evidence) -> Finding:
        own = {where: mean(evidence.by_seed(where, EBER, "nll")) for where in (setting, against)}
        leads = {where: _best_other(evidence, where) - own[where] for where in own}
        verdict = Verdict.CONFIRMED if leads[setting] >= 0.5 * leads[against] else Verdict.CONDITIONAL
        return Finding(
            verdict if own[setting] < own[against] else Verdict.NOT_CONFIRMED,
            f"NLL {own[setting]:.3f}, {own[against]:.3f} at {against}",
            f"lead over the best other method {leads[setting]:.3f}, {leads[against]:.3f} at {against}",
        )

    return judge


def gap_to_bayes_widens(*settings: str) -> Judge:
    """Confirmed: EBER's NLL is best in each setting and its distance to Bayes-x grows from one to the next."""

    def judge(evidence: Evidence) -> Finding:
        gaps = []
        for where in ("baseline", *settings):
            own = mean(evidence.by_seed(where, EBER, "nll"))
            gaps.append(own - mean(evidence.by_seed(where, BAYES, "nll")))
        best = all(mean(evidence.by_seed(where, EBER, "nll")) < _best_other(evidence, where) for where in settings)
        widens = all(a < b for a, b in pairwise(gaps))
        return Finding(
            Verdict.CONFIRMED if best and widens else Verdict.CONDITIONAL if widens else Verdict.NOT_CONFIRMED,
            "distance to Bayes-x: "
            + ", ".join(f"{where} {gap:.3f}" for where, gap in zip(("baseline", *settings), gaps, strict=True)),
            "EBER has the lowest NLL in each" if best else "EBER has not the lowest NLL in each",
        )

    return judge


def accuracy_collapses(setting: str) -> Judge:
    """Confirmed: no method has an accuracy above 0.6, where Bayes-x has more than 0.9."""

    def judge(evidence: Evidence) -> Finding:
        scores = {method: mean(evidence.by_seed(setting, method, "accuracy")) for method in paper_methods()}
        bayes = mean(evidence.by_seed(setting, BAYES, "accuracy"))
        return Finding(
            Verdict.CONFIRMED if max(scores.values()) <= 0.6 and bayes > 0.9 else Verdict.NOT_CONFIRMED,
            ", ".join(f"{method} {value:.3f}" for method, value in scores.items()),
            f"Bayes-x {bayes:.3f}",
        )

    return judge


def cue_helps(weak: str, strong: str) -> Judge:
    """Confirmed: every method's NLL is lower where the cue is stronger. With a condition: EBER's is."""

    def judge(evidence: Evidence) -> Finding:
        change = {
            method: mean(evidence.by_seed(strong, method, "nll")) - mean(evidence.by_seed(weak, method, "nll"))
            for method in paper_methods()
        }
        verdict = Verdict.CONFIRMED if max(change.values()) < 0 else Verdict.CONDITIONAL
        return Finding(
            verdict if change[EBER] < 0 else Verdict.NOT_CONFIRMED,
            "change in NLL: " + ", ".join(f"{method} {value:+.3f}" for method, value in change.items()),
            f"from {weak} to {strong}",
        )

    return judge


def cue_helps_most(weak: str, strong: str, method: str) -> Judge:
    """Confirmed: of all methods this one's NLL falls most where the cue is stronger."""

    def judge(evidence: Evidence) -> Finding:
        falls = {
            name: mean(evidence.by_seed(weak, name, "nll")) - mean(evidence.by_seed(strong, name, "nll"))
            for name in paper_methods()
        }
        printed = {
            name: PAPER[weak].rows[name]["nll"][0] - PAPER[strong].rows[name]["nll"][0] for name in paper_methods()
        }
        most, most_there = (max(fall, key=lambda name: fall[name]) for fall in (falls, printed))
        return Finding(
            Verdict.CONFIRMED if most == method else Verdict.NOT_CONFIRMED,
            f"from {weak} to {strong} {most} falls most, by {falls[most]:.3f}; {method} by {falls[method]:.3f}",
            f"in the paper's own tables {most_there}, by {printed[most_there]:.3f}; {method} by {printed[method]:.3f}",
        )

    return judge


def closest_to_bayes(settings: Sequence[str]) -> Judge:
    """Confirmed: in each of these settings EBER's NLL is nearer to that of Bayes-x than in every other one.

    With a condition: in one of them it is nearest of all. Not confirmed: in another one it is.
    """

    def judge(evidence: Evidence) -> Finding:
        gaps, printed = {}, {}
        for where, table in PAPER.items():
            gaps[where] = mean(evidence.by_seed(where, EBER, "nll")) - mean(evidence.by_seed(where, BAYES, "nll"))
            printed[where] = table.rows[EBER]["nll"][0] - table.rows[BAYES]["nll"][0]
        nearest, nearest_there = (sorted(found, key=lambda where: found[where]) for found in (gaps, printed))
        verdict = Verdict.CONDITIONAL if nearest[0] in settings else Verdict.NOT_CONFIRMED
        if set(nearest[: len(settings)]) == set(settings):
            verdict = Verdict.CONFIRMED
        return Finding(
            verdict,
            "nearest: " + ", ".join(f"{where} {gaps[where]:.3f}" for where in nearest[:3]),
            "in the paper's own tables: " + ", ".join(f"{where} {printed[where]:.3f}" for where in nearest_there[:3]),
        )

    return judge


LITERAL = "plain, Algorithm 1"
PLAIN_READINGS = {
    LITERAL: PLAIN_ALGORITHM,
    "plain, stratified": PLAIN,
    "plain, decomposed": PLAIN_DECOMPOSED,
    "plain with a ReLU more, Algorithm 1": PLAIN_ALGORITHM_RELU,
    "plain with a ReLU more, stratified": PLAIN_RELU,
    "plain with a ReLU more, decomposed": PLAIN_DECOMPOSED_RELU,
}
READINGS = {"this library's recipe": EBER, **PLAIN_READINGS}


def figures_are_those_of_algorithm_1(evidence: Evidence) -> Finding:
    """Confirmed: Algorithm 1 to the letter, with the network of the text, is within `CLOSE` of the paper's figure in
    every setting.

    With a condition: another plain reading, or one with a ReLU more than the text has, is in most settings. Not
    confirmed: none is.
    """
    distances: dict[str, dict[str, float]] = {}
    for setting, table in PAPER.items():
        printed, sd = table.rows[EBER]["nll"]
        distances[setting] = {
            name: abs(mean(evidence.by_seed(setting, row, "nll")) - printed) / sd for name, row in READINGS.items()
        }
    close = {name: sum(by_name[name] <= CLOSE for by_name in distances.values()) for name in READINGS}
    verdict = Verdict.NOT_CONFIRMED
    if close[LITERAL] == len(distances):
        verdict = Verdict.CONFIRMED
    elif 2 * max(close[name] for name in PLAIN_READINGS) > len(distances):
        verdict = Verdict.CONDITIONAL
    return Finding(
        verdict,
        "NLL within two of the paper's standard deviations: "
        + ", ".join(f"{name} in {count} of {len(distances)} settings" for name, count in close.items()),
        "nearest of the plain ones: "
        + ", ".join(
            f"{setting} {min(PLAIN_READINGS, key=lambda name: by_name[name]).removeprefix('plain').lstrip(', ')}"
            for setting, by_name in distances.items()
        ),
    )


def _best_other(evidence: Evidence, setting: str) -> float:
    return min(mean(evidence.by_seed(setting, method, "nll")) for method in paper_methods() if method != EBER)
