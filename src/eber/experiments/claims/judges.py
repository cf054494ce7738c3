"""Rules by which a claim is held against our results. Each is stated in its docstring and fixed before any run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from eber.evaluation.metrics import find_metric
from eber.evaluation.wording import LEVEL, format_interval, format_p, listed
from eber.experiments.agreement import agreements
from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import Evidence, MissingEvidence, mean, shown
from eber.experiments.motivating import CONDITIONAL, LIMIT, NUMBERS, UNIFORM, column

EBER = "EBER"
CONSISTENTLY = 0.9
"""Share of rows on which a method that is called consistently right would have to be right."""
SAME_RATE = 0.05
"""How far a slope may be from the rate it is said to have."""

Judge = Callable[[Evidence], Finding]


def best(setting: str, metric: str) -> Judge:
    """Confirmed: significantly better than every other method.

    With a condition: ahead of all, but not of all significantly. Not confirmed: another method has the better mean.
    """

    def judge(evidence: Evidence) -> Finding:
        quantity = find_metric(metric)
        own = evidence.by_seed(setting, EBER, metric)
        tests = evidence.against(setting, EBER, metric)
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
        return Finding(Verdict.CONFIRMED, ours, f"{seeds}; corrected p at most {format_p(largest)} against each")

    return judge


def _open(p: float) -> bool:
    return math.isnan(p) or p >= LEVEL


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
        return Finding(verdict, ours, f"{len(rows['at test'])} seeds; EBER {eber:.3f}, ERM {erm:.3f}")

    return judge


def oracle_weights_close_the_gap(setting: str) -> Judge:
    """Confirmed: oracle weights throughout close at least a third of the gap between EBER and Bayes-x."""

    def judge(evidence: Evidence) -> Finding:
        eber, bayes = mean(evidence.by_seed(setting, EBER, "nll")), mean(evidence.by_seed(setting, "Bayes-x", "nll"))
        scores = evidence.by_seed(setting, "EBER 4: oracle weights", "nll")
        closed = (eber - mean(scores)) / (eber - bayes)
        return Finding(
            Verdict.CONFIRMED if closed >= 1 / 3 else Verdict.NOT_CONFIRMED,
            shown(scores, "nll"),
            f"{len(scores)} seeds; closes {closed:.0%} of the gap between EBER ({eber:.3f}) and Bayes-x ({bayes:.3f})",
        )

    return judge


def true_posteriors_do_not_help(setting: str) -> Judge:
    """Confirmed with a condition: the scores are poor as in the paper, but a decoder monotone in z explains them."""

    def judge(evidence: Evidence) -> Finding:
        eber = mean(evidence.by_seed(setting, EBER, "nll"))
        rows = {
            "learned weights": evidence.by_seed(setting, "EBER 5: oracle posteriors", "nll"),
            "uniform weights": evidence.by_seed(setting, "EBER 7: uniform weights and oracle posteriors", "nll"),
        }
        poor = all(mean(scores) > 2 * eber for scores in rows.values())
        return Finding(
            Verdict.CONDITIONAL if poor else Verdict.NOT_CONFIRMED,
            "; ".join(f"{name} {shown(scores, 'nll')}" for name, scores in rows.items()),
            "a linear decoder cannot follow sin(z/2), so that it need not be the aggregation",
        )

    return judge


def cost_grows_with_environments(evidence: Evidence) -> Finding:
    """Confirmed: three times as many environments take more than three times as long."""
    few, many = (mean(evidence.seconds(setting, EBER)) for setting in ("m=12", "m=36"))
    ratio = many / few
    return Finding(
        Verdict.CONFIRMED if ratio > 3 else Verdict.CONDITIONAL,
        f"{few:.2f} s at m = 12, {many:.2f} s at m = 36: {ratio:.1f} times",
        "fits of several seeds are trained side by side, so the seconds are shares of a joint fit",
    )


def all_rows_to_one_environment(setting: str) -> Judge:
    """Confirmed: under every seed at least 99 % of the held-out rows are taken for one and the same environment."""

    def judge(evidence: Evidence) -> Finding:
        seeds = evidence.results.seeds(EBER, setting)
        if not seeds:
            raise MissingEvidence(f"{EBER} in the setting {setting!r} has no finished seed")
        shares, names = [], []
        for seed in seeds:
            arrays = evidence.results.arrays(EBER, seed, setting)
            counts = Counter(arrays["assigned"].tolist())
            environment, rows = counts.most_common(1)[0]
            shares.append(rows / sum(counts.values()))
            names.append(str(arrays["environments"][environment]))
        together = len(set(names)) == 1 and min(shares) >= 0.99
        favourite, times = Counter(names).most_common(1)[0]
        return Finding(
            Verdict.CONFIRMED if together else Verdict.NOT_CONFIRMED,
            f"{min(shares):.0%} to {max(shares):.0%} of the rows go to one environment",
            f"{len(seeds)} seeds; most often {favourite} ({times} of {len(seeds)})",
        )

    return judge


def no_method_is_right_consistently(setting: str) -> Judge:
    """Confirmed: where methods differ and EBER is right, no other is right on `CONSISTENTLY` of the rows or more."""

    def judge(evidence: Evidence) -> Finding:
        found = agreements(evidence.results, setting)
        if not found:
            raise MissingEvidence(f"no seed of the setting {setting!r} is finished with all methods")
        shares = {
            method: float(np.nanmean([one.right_with_reference[method] for one in found]))
            for method in found[0].right_with_reference
        }
        most = max(shares, key=lambda method: shares[method])
        return Finding(
            Verdict.CONFIRMED if shares[most] < CONSISTENTLY else Verdict.NOT_CONFIRMED,
            ", ".join(f"{method} {share:.2f}" for method, share in shares.items()),
            f"{len(found)} seeds; all right on {np.mean([one.all_right for one in found]):.0%} of the rows, all wrong "
            f"on {np.mean([one.all_wrong for one in found]):.0%}",
        )

    return judge


def no_environment_loss_needed(setting: str, metric: str) -> Judge:
    """Confirmed: the 95 % interval of the difference with and without an environment loss holds zero."""

    def judge(evidence: Evidence) -> Finding:
        own = evidence.by_seed(setting, EBER, metric)
        without = evidence.by_seed(setting, "EBER lambda_env=0", metric)
        common = sorted(set(own) & set(without))
        difference = np.array([without[seed] - own[seed] for seed in common])
        if len(difference) < 2 or np.ptp(difference) == 0:
            raise MissingEvidence(f"fewer than two seeds have both in the setting {setting!r}")
        interval = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
        holds = interval.low <= 0 <= interval.high
        return Finding(
            Verdict.CONFIRMED if holds else Verdict.NOT_CONFIRMED,
            f"with {shown(own, metric)}, without {shown(without, metric)}",
            f"{len(common)} seeds; difference {format_interval(interval.low, interval.high)} (95 % interval)",
        )

    return judge


def seeds_behind_p_values(tables: Sequence[str], seeds: int, others: Sequence[int]) -> Judge:
    """Confirmed with a condition: the printed p-values are those of so many seeds, which the paper does not say."""

    def judge(evidence: Evidence) -> Finding:
        from eber.experiments.paper_p_values import all_tables, feasible_seeds

        found = {name: feasible_seeds(*all_tables()[name], seeds=(*others, seeds)) for name in tables}
        common = set.intersection(*(set(numbers) for numbers in found.values()))
        return Finding(
            Verdict.CONDITIONAL if common == {seeds} else Verdict.NOT_CONFIRMED,
            f"seeds that all of {len(tables)} tables admit: {', '.join(map(str, sorted(common))) or 'none'}",
            "from the printed means, deviations and corrected p-values (python -m eber.experiments.paper_p_values)",
        )

    return judge
