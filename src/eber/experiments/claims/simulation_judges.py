"""Rules for the claims about the motivating example and the parametric simulation."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from scipy import stats

from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import Evidence, mean, shown
from eber.experiments.claims.judges import EBER, Judge
from eber.experiments.motivating import CONDITIONAL, LIMIT, NUMBERS, UNIFORM, column
from eber.experiments.parametric import LONG, PLAIN, PLAIN_ALGORITHM, PLAIN_DECOMPOSED
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


def uniform_weights_destroy_the_gain(setting: str) -> Judge:
    """Confirmed: with uniform weights at test, and throughout, less than a fifth of EBER's gain over ERM is left."""

    def judge(evidence: Evidence) -> Finding:
        eber, erm = (mean(evidence.by_seed(setting, method, "nll")) for method in (EBER, "ERM"))
        rows = {
            "at test": evidence.by_seed(setting, EBER, "nll", "2: uniform test weights"),
            "throughout": evidence.by_seed(setting, "EBER 6: uniform weights", "nll"),
        }
        left = {name: (erm - mean(scores)) / (erm - eber) for name, scores in rows.items()}
        ours = "; ".join(f"{name} {shown(scores, 'nll')}" for name, scores in rows.items())
        verdict = Verdict.CONFIRMED if max(left.values()) < 0.2 else Verdict.NOT_CONFIRMED
        return Finding(verdict, ours, f"{len(rows['throughout'])} seeds throughout; EBER {eber:.3f}, ERM {erm:.3f}")

    return judge


def oracle_weights_close_the_gap(setting: str) -> Judge:
    """Confirmed: oracle weights throughout close at least a third of the gap between EBER and Bayes-x."""

    def judge(evidence: Evidence) -> Finding:
        scores = evidence.by_seed(setting, "EBER 4: oracle weights", "nll")
        eber, bayes = (mean(_under(scores, evidence.by_seed(setting, row, "nll"))) for row in (EBER, BAYES))
        closed = (eber - mean(scores)) / (eber - bayes)
        return Finding(
            Verdict.CONFIRMED if closed >= 1 / 3 else Verdict.NOT_CONFIRMED,
            shown(scores, "nll"),
            f"{len(scores)} seeds; closes {closed:.0%} of the gap between EBER ({eber:.3f}) and Bayes-x ({bayes:.3f})",
        )

    return judge


def true_posteriors_do_not_help(setting: str) -> Judge:
    """Confirmed: with true posteriors NLL is more than twice EBER's, whatever the decoder.

    With a condition: it is so as the paper trains, but trained for longer (`LONG`) a decoder that can follow sin(z/2)
    more than halves the distance to EBER with learned or with uniform weights. Not confirmed: it is not so.

    This rule was changed after results were seen. At first the flexible decoder, too, was judged after the paper's ten
    epochs. There it helped with learned weights, but did not halve the distance, and the verdict was "confirmed"; then
    fits of 50 epochs showed that it needs longer.
    """
    rows = {
        "learned weights": ("EBER 5: oracle posteriors", "EBER 5 with a flexible decoder"),
        "uniform weights": ("EBER 7: uniform weights and oracle posteriors", "EBER 7 with a flexible decoder"),
    }

    def judge(evidence: Evidence) -> Finding:
        eber, eber_long = (mean(evidence.by_seed(where, EBER, "nll")) for where in (setting, LONG))
        ours, long, helped = {}, {}, []
        for name, (linear, flexible) in rows.items():
            ours[name] = evidence.by_seed(setting, linear, "nll")
            before, after = (evidence.by_seed(LONG, row, "nll") for row in (linear, flexible))
            long[name] = f"{name} {shown(after, 'nll')} (linear {shown(before, 'nll')})"
            if mean(after) - eber_long < 0.5 * (mean(before) - eber_long):
                helped.append(name)
        verdict = Verdict.CONDITIONAL if helped else Verdict.CONFIRMED
        if any(mean(scores) <= 2 * eber for scores in ours.values()):
            verdict = Verdict.NOT_CONFIRMED
        return Finding(
            verdict,
            "; ".join(f"{name} {shown(scores, 'nll')}" for name, scores in ours.items()),
            "a linear decoder cannot follow sin(z/2); with hidden layers (32, 32) and "
            f"{LONG}: {'; '.join(long.values())}",
        )

    return judge


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


def oracle_test_weights_match_bayes(setting: str) -> Judge:
    """Confirmed: with oracle weights at test accuracy is within `NEARLY` of Bayes-x, and NLL is at most EBER's."""

    def judge(evidence: Evidence) -> Finding:
        variant = "3: oracle test weights"
        accuracy = evidence.by_seed(setting, EBER, "accuracy", variant)
        nll = evidence.by_seed(setting, EBER, "nll", variant)
        bayes, eber = mean(evidence.by_seed(setting, BAYES, "accuracy")), mean(evidence.by_seed(setting, EBER, "nll"))
        near, better = abs(mean(accuracy) - bayes) <= NEARLY, mean(nll) <= eber
        return Finding(
            Verdict.CONFIRMED if near and better else Verdict.CONDITIONAL if near or better else Verdict.NOT_CONFIRMED,
            f"accuracy {shown(accuracy, 'accuracy')}, NLL {shown(nll, 'nll')}",
            f"{len(nll)} seeds; accuracy of Bayes-x {bayes:.3f}, NLL of EBER {eber:.3f}",
        )

    return judge


READINGS = {
    "this library's recipe": EBER,
    "plain, stratified": PLAIN,
    "plain, Algorithm 1": PLAIN_ALGORITHM,
    "plain, decomposed": PLAIN_DECOMPOSED,
}


def figures_are_those_of_algorithm_1(evidence: Evidence) -> Finding:
    """Confirmed: Algorithm 1 to the letter is within `CLOSE` of the paper's figure in every setting.

    With a condition: another plain reading is, in most settings. Not confirmed: none is.
    """
    distances: dict[str, dict[str, float]] = {}
    for setting, table in PAPER.items():
        printed, sd = table.rows[EBER]["nll"]
        distances[setting] = {
            name: abs(mean(evidence.by_seed(setting, row, "nll")) - printed) / sd for name, row in READINGS.items()
        }
    nearest = {setting: min(by_name, key=lambda name: by_name[name]) for setting, by_name in distances.items()}
    close = {name: sum(by_name[name] <= CLOSE for by_name in distances.values()) for name in READINGS}
    most = max(close["plain, stratified"], close["plain, decomposed"])
    verdict = Verdict.NOT_CONFIRMED
    if close["plain, Algorithm 1"] == len(distances):
        verdict = Verdict.CONFIRMED
    elif 2 * most > len(distances):
        verdict = Verdict.CONDITIONAL
    return Finding(
        verdict,
        "NLL within two of the paper's standard deviations: "
        + ", ".join(f"{name} in {count} of {len(distances)} settings" for name, count in close.items()),
        "nearest: " + ", ".join(f"{setting} {name}" for setting, name in nearest.items()),
    )


def _under(seeds: Mapping[int, float], scores: Mapping[int, float]) -> dict[int, float]:
    """The scores under the same seeds: a small gap must not be one between seeds."""
    return {seed: score for seed, score in scores.items() if seed in seeds}


def _best_other(evidence: Evidence, setting: str) -> float:
    return min(mean(evidence.by_seed(setting, method, "nll")) for method in paper_methods() if method != EBER)
