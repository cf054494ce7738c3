"""Rules by which a claim is held against our results. Each is stated in its docstring, and so is whether it was changed
after results were seen.

Here are those that several experiments share; `simulation_judges` has those of the two simulations with known answers,
`measured` those that need no run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy import stats

from eber.evaluation.metrics import find_metric
from eber.evaluation.significance import Comparison
from eber.evaluation.wording import LEVEL, format_interval, format_p, listed, p_with_sign
from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import (
    ALL_RIGHT,
    ALL_WRONG,
    RIGHT_WITH,
    RIGHT_WITHOUT,
    Evidence,
    MissingEvidence,
    mean,
    shown,
)
from eber.experiments.parametric import NO_ENVIRONMENT_LOSS
from eber.io.text import count
from eber.methods import NO_MODEL
from eber.runs.cell import PENALTY_WEIGHT
from eber.runs.spec import PaperTable

EBER = "EBER"
CONSISTENTLY = 0.9
"""Share of rows on which a method that is called consistently right would have to be right."""

MEANINGFUL = 0.01
"""A difference in NLL or AUROC that is no larger makes no meaningful difference."""

Judge = Callable[[Evidence], Finding]


def best(setting: str, metric: str, row: str = EBER) -> Judge:
    """Confirmed: EBER, or the row that stands for it, is significantly better than every other method.

    With a condition: ahead of all, but not of all significantly. Not confirmed: another method has the better mean.
    That no model at all is better changes no verdict, since the paper says nothing of it, but is said.
    """

    def judge(evidence: Evidence) -> Finding:
        finding, beaten = compared(evidence), _no_model(evidence, setting, metric, row)
        remark = f"; no model at all is better ({beaten})" if beaten else ""
        return replace(finding, evidence=finding.evidence + remark, no_model=beaten)

    def compared(evidence: Evidence) -> Finding:
        quantity = find_metric(metric)
        own = evidence.by_seed(setting, row, metric)
        tests = evidence.against(setting, row, metric)
        others = {name: mean(evidence.by_seed(setting, name, metric)) for name in tests}
        rival = min(others, key=lambda name: others[name] * (-1 if quantity.higher_is_better else 1))
        ours = f"{shown(own, metric)}; {rival} {shown(evidence.by_seed(setting, rival, metric), metric)}"
        worse = [name for name, score in others.items() if quantity.is_better(score, mean(own))]
        seeds = f"{len(own)} seeds"
        if worse:
            test = tests[worse[0]]
            interval = format_interval(test.low, test.high)
            return Finding(
                Verdict.NOT_CONFIRMED,
                ours,
                f"{seeds}; behind {listed(worse)} (advantage over {worse[0]} {interval}, 95 % interval)",
            )
        open_ = [f"{name} (p {format_p(test.p_corrected)})" for name, test in tests.items() if _open(test.p_corrected)]
        if open_:
            return Finding(Verdict.CONDITIONAL, ours, f"{seeds}; ahead of all, not significantly of {listed(open_)}")
        largest = max(test.p_corrected for test in tests.values())
        return Finding(Verdict.CONFIRMED, ours, f"{seeds}; largest corrected p {p_with_sign(largest)}")

    return judge


def substantial(table: PaperTable, setting: str, metric: str, over: tuple[str, ...]) -> Judge:
    """Confirmed: EBER is ahead of the best of these methods by at least half of what the paper prints.

    With a condition: by less than that, but more than `MEANINGFUL`. Not confirmed: by no more than that, or behind.
    """

    def judge(evidence: Evidence) -> Finding:
        sign = 1 if find_metric(metric).higher_is_better else -1
        scores = {name: sign * mean(evidence.by_seed(setting, name, metric)) for name in (EBER, *over)}
        printed = {name: sign * table.rows[name][metric][0] for name in (EBER, *over)}
        (lead, rival), (there, rival_there) = (
            min((found[EBER] - found[name], name) for name in over) for found in (scores, printed)
        )
        verdict = Verdict.CONFIRMED if lead >= 0.5 * there else Verdict.CONDITIONAL
        return Finding(
            verdict if lead > MEANINGFUL else Verdict.NOT_CONFIRMED,
            f"{lead:.3f} over {rival}; the paper's {there:.3f} over {rival_there}",
            f"{len(evidence.by_seed(setting, EBER, metric))} seeds; at least half of the paper's lead is asked for",
        )

    return judge


def _no_model(evidence: Evidence, setting: str, metric: str, own_row: str) -> str:
    """What no model at all has and what EBER has, where the first is better; else empty."""
    if NO_MODEL not in evidence.methods_with(setting, metric):
        return ""
    quantity = find_metric(metric)
    floor, own = (mean(evidence.by_seed(setting, row, metric)) for row in (NO_MODEL, own_row))
    if not quantity.is_better(floor, own):
        return ""
    return f"{quantity.in_words} {quantity.format(floor)} against {quantity.format(own)}"


def significant(setting: str, metric: str, over: tuple[str, ...], not_over: tuple[str, ...] = ()) -> Judge:
    """Confirmed: significantly better than every method that the paper says so of, whatever comes of the others.

    With a condition: significantly better than some of them. Not confirmed: than none.
    """

    def judge(evidence: Evidence) -> Finding:
        tests = evidence.against(setting, EBER, metric)
        shown_p = ", ".join(f"{name} {format_p(tests[name].p_corrected)}" for name in (*over, *not_over))
        missed = [name for name in over if _open(tests[name].p_corrected)]
        verdict = Verdict.CONFIRMED
        if missed:
            verdict = Verdict.NOT_CONFIRMED if len(missed) == len(over) else Verdict.CONDITIONAL
        also = [name for name in not_over if not _open(tests[name].p_corrected)]
        remarks = [
            *([f"not shown over {listed(missed)}"] if missed else []),
            *([f"shown over {listed(also)} as well"] if also else []),
        ]
        return Finding(verdict, f"corrected p: {shown_p}", "; ".join([_seeds(tests), *remarks]))

    return judge


def _seeds(tests: Mapping[str, Comparison]) -> str:
    return f"{min(test.n_units for test in tests.values())} seeds"


def _open(p: float) -> bool:
    return math.isnan(p) or p >= LEVEL


def weights_are_those_of_validation(setting: str) -> Judge:
    """Cannot be tested: a weight depends on the validation rows, and the paper does not say which they were."""

    def judge(evidence: Evidence) -> Finding:
        chosen = {}
        for method in ("IRM", "V-REx", "Fishr"):
            counts = Counter(evidence.by_seed(setting, method, PENALTY_WEIGHT).values()).most_common()
            chosen[method] = ", ".join(f"{weight:g} ({count(n, 'seed')})" for weight, n in counts)
        return Finding(
            Verdict.UNTESTABLE,
            "; ".join(f"{method} {weights}" for method, weights in chosen.items()),
            "the paper does not say which rows it validated on; ours are of the training environments",
        )

    return judge


def all_rows_to_one_environment(setting: str) -> Judge:
    """Confirmed: under every seed at least 99 % of the held-out rows are taken for one and the same environment."""

    def judge(evidence: Evidence) -> Finding:
        by_seed = evidence.shares_taken(setting, EBER)
        names = [max(taken, key=lambda name: taken[name]) for taken in by_seed.values()]
        shares = [max(taken.values()) for taken in by_seed.values()]
        together = len(set(names)) == 1 and min(shares) >= 0.99
        favourite, times = Counter(names).most_common(1)[0]
        return Finding(
            Verdict.CONFIRMED if together else Verdict.NOT_CONFIRMED,
            f"{min(shares):.0%} to {max(shares):.0%} of the rows go to one environment",
            f"{len(by_seed)} seeds; most often {favourite} ({times} of {len(by_seed)})",
        )

    return judge


def no_method_is_right_consistently(setting: str, where_eber_is: Literal["right", "wrong"]) -> Judge:
    """Confirmed: where methods differ and EBER is right (or wrong), none is right on `CONSISTENTLY` of the rows."""

    def judge(evidence: Evidence) -> Finding:
        quantity = RIGHT_WITH if where_eber_is == "right" else RIGHT_WITHOUT
        by_seed = {
            method: evidence.by_seed(setting, method, quantity) for method in evidence.methods_with(setting, quantity)
        }
        all_right, all_wrong = (evidence.by_seed(setting, EBER, name) for name in (ALL_RIGHT, ALL_WRONG))
        shares = {method: float(np.nanmean(list(values.values()))) for method, values in by_seed.items()}
        most = max(shares, key=lambda method: shares[method])
        return Finding(
            Verdict.CONFIRMED if shares[most] < CONSISTENTLY else Verdict.NOT_CONFIRMED,
            ", ".join(f"{method} {share:.2f}" for method, share in shares.items()),
            f"{len(all_right)} seeds; all right on {mean(all_right):.0%} of the rows, all wrong on "
            f"{mean(all_wrong):.0%}",
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
        own = evidence.by_seed(setting, EBER, metric)
        without = evidence.by_seed(setting, NO_ENVIRONMENT_LOSS, metric)
        common = sorted(set(own) & set(without))
        difference = np.array([without[seed] - own[seed] for seed in common])
        if len(difference) < 2 or np.ptp(difference) == 0:
            raise MissingEvidence(f"fewer than two seeds have both in the setting {setting!r}")
        interval = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
        small = max(-interval.low, interval.high) <= MEANINGFUL
        holds = interval.low <= 0 <= interval.high
        return Finding(
            (Verdict.CONFIRMED if small else Verdict.CONDITIONAL) if holds else Verdict.NOT_CONFIRMED,
            f"with {shown(own, metric)}, without {shown(without, metric)}",
            f"{len(common)} seeds; difference {format_interval(interval.low, interval.high)} (95 % interval)",
        )

    return judge
