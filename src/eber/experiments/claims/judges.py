"""Rules by which a claim is held against our results. Each is stated in its docstring, and so is whether it was changed
after results were seen.

Here are those that several experiments share. `environment_judges` has those about environments that rows are taken for
and the environment loss, `agreement_judges` those about who is right where, `simulation_judges` and `variant_judges`
those of the two simulations with known answers, `measured` those that need no run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from eber.evaluation.metrics import find_metric
from eber.evaluation.significance import Comparison
from eber.evaluation.wording import LEVEL, format_interval, format_p, listed, p_with_sign
from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import Evidence, mean, shown
from eber.io.text import count
from eber.methods import NO_MODEL
from eber.runs.cell import PENALTY_WEIGHT
from eber.runs.spec import PaperTable

EBER = "EBER"
MEANINGFUL = 0.01
"""A difference in NLL or AUROC that is no larger makes no meaningful difference."""

Judge = Callable[[Evidence], Finding]


def best(setting: str, metric: str, row: str = EBER) -> Judge:
    """Confirmed: EBER, or the row that stands for it, is significantly better than every other method.

    With a condition: ahead of all, but not of all significantly. Not confirmed: another method has the better mean.
    Whether chance alone may have put it ahead, since the 95 % interval of the advantage holds zero, changes no verdict,
    but is said. So it is with no model at all that is better, of which the paper says nothing.
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
            interval = format_interval(tests[rival].low, tests[rival].high)
            surely = [name for name in worse if tests[name].high < 0]
            remark = "" if surely else ", by no more than chance may make"
            return Finding(
                Verdict.NOT_CONFIRMED,
                ours,
                f"{seeds}; behind {listed(worse)}{remark} (advantage over {rival} {interval}, 95 % interval)",
                level=not surely,
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
