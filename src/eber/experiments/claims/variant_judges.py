"""Rules for the claims about variants of EBER: oracle or uniform weights, true posteriors, the collapsed objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import Evidence, mean, shown
from eber.experiments.claims.judges import EBER, Judge
from eber.experiments.claims.simulation_judges import BAYES, NEARLY
from eber.experiments.parametric import (
    COLLAPSED,
    COLLAPSED_ALONE,
    LONG,
    ORACLE_AT_TEST,
    PLAIN,
    PLAIN_ORACLE,
    UNIFORM_AT_TEST,
)
from eber.experiments.parametric_paper import PAPER
from eber.runs.cell import row_label

LEFT = 0.2
"""Where no more of EBER's gain over ERM is left, it is gone."""


def uniform_weights_destroy_the_gain(setting: str) -> Judge:
    """Confirmed: with uniform weights at test, and throughout, less than `LEFT` of EBER's gain over ERM is left."""

    def judge(evidence: Evidence) -> Finding:
        eber, erm = (mean(evidence.by_seed(setting, method, "nll")) for method in (EBER, "ERM"))
        rows = {
            "at test": evidence.by_seed(setting, EBER, "nll", UNIFORM_AT_TEST),
            "throughout": evidence.by_seed(setting, "EBER 6: uniform weights", "nll"),
        }
        left = {name: _left(mean(scores), eber, erm) for name, scores in rows.items()}
        ours = "; ".join(f"{name} {shown(scores, 'nll')}" for name, scores in rows.items())
        verdict = Verdict.CONFIRMED if max(left.values()) < LEFT else Verdict.NOT_CONFIRMED
        return Finding(verdict, ours, f"{len(rows['throughout'])} seeds throughout; EBER {eber:.3f}, ERM {erm:.3f}")

    return judge


def uniform_test_weights_are_inferior(settings: Sequence[str]) -> Judge:
    """Confirmed: with uniform weights at test less than `LEFT` of EBER's gain over ERM is left, in every setting.

    With a condition: in most. Not confirmed: in half of them at most.
    """

    def judge(evidence: Evidence) -> Finding:
        left, printed = {}, {}
        for setting in settings:
            eber, erm = (mean(evidence.by_seed(setting, method, "nll")) for method in (EBER, "ERM"))
            left[setting] = _left(mean(evidence.by_seed(setting, EBER, "nll", UNIFORM_AT_TEST)), eber, erm)
            printed[setting] = _left(
                *(_printed(setting, row) for row in (row_label(EBER, UNIFORM_AT_TEST), EBER, "ERM"))
            )
        gone, gone_there = ([name for name, share in shares.items() if share < LEFT] for shares in (left, printed))
        return Finding(
            _in_settings(len(gone), len(settings)),
            f"the gain is gone in {len(gone)} of {len(settings)} settings{_but(settings, gone)}",
            f"in the paper's own tables in {len(gone_there)}{_but(settings, gone_there)}",
        )

    return judge


def oracle_test_weights_match_bayes(settings: Sequence[str]) -> Judge:
    """Confirmed: with oracle weights at test accuracy is within `NEARLY` of Bayes-x in every setting, and NLL is better
    than EBER's in most of them ("often").

    With a condition: accuracy is so in most settings. Not confirmed: in half of them at most.

    This rule was changed after results were seen. At first it asked for rho = 0.15 alone, where both held.
    """

    def judge(evidence: Evidence) -> Finding:
        near, better, near_there = [], [], []
        for setting in settings:
            accuracy, nll = (
                mean(evidence.by_seed(setting, EBER, metric, ORACLE_AT_TEST)) for metric in ("accuracy", "nll")
            )
            if abs(accuracy - mean(evidence.by_seed(setting, BAYES, "accuracy"))) <= NEARLY:
                near.append(setting)
            if nll < mean(evidence.by_seed(setting, EBER, "nll")):
                better.append(setting)
            if (
                abs(
                    _printed(setting, row_label(EBER, ORACLE_AT_TEST), "accuracy")
                    - _printed(setting, BAYES, "accuracy")
                )
                <= NEARLY
            ):
                near_there.append(setting)
        verdict = _in_settings(len(near), len(settings))
        if verdict is Verdict.CONFIRMED and 2 * len(better) <= len(settings):
            verdict = Verdict.CONDITIONAL
        return Finding(
            verdict,
            f"accuracy that of Bayes-x in {len(near)} of {len(settings)} settings{_but(settings, near)}; NLL better "
            f"than EBER's in {len(better)}{_but(settings, better)}",
            f"in the paper's own tables accuracy in {len(near_there)}{_but(settings, near_there)} (within {NEARLY:g})",
        )

    return judge


def oracle_weights_close_the_gap(setting: str) -> Judge:
    """Confirmed: oracle weights throughout close at least half of the gap between EBER's plain form and Bayes-x.

    This rule was changed after results were seen. At first it asked for a third of the gap of this library's recipe, of
    which 13 % were closed at rho = 0.15: not confirmed. But the recipe with learned weights is 0.010 from Bayes-x there
    and the paper's EBER 0.070, so that the sentence is about a gap that only the paper's plain form has. It is judged
    on that form now, and "largely" is half. What oracle weights close of the recipe's gap is said.
    """

    def judge(evidence: Evidence) -> Finding:
        scores = evidence.by_seed(setting, PLAIN_ORACLE, "nll")
        plain, bayes, closed = _closed(evidence, setting, scores, PLAIN)
        own, own_bayes, own_closed = _closed(
            evidence, setting, evidence.by_seed(setting, "EBER 4: oracle weights", "nll"), EBER
        )
        return Finding(
            Verdict.CONFIRMED if closed >= 0.5 else Verdict.NOT_CONFIRMED,
            f"the plain form {shown(scores, 'nll')}",
            f"{len(scores)} seeds; closes {closed:.0%} of the gap between the plain form ({plain:.3f}) and Bayes-x "
            f"({bayes:.3f}); of this library's recipe, {own - own_bayes:.3f} from Bayes-x, {own_closed:.0%}",
        )

    return judge


def collapsed_objective_is_no_use(setting: str) -> Judge:
    """Confirmed: trained with point masses in place of learned weights, less than half of EBER's gain over ERM is left.

    With a condition: that is so where nothing else teaches p(e|x), but more is left with an environment loss. Not
    confirmed: more is left without one, too.

    This rule was changed after results were seen. At first it looked at fits with an environment loss alone; but the
    paper's reason is that the collapsed objective does not learn p(e|x), which such a loss then does for it.
    """

    def judge(evidence: Evidence) -> Finding:
        eber, erm = (mean(evidence.by_seed(setting, method, "nll")) for method in (EBER, "ERM"))
        alone, helped = (evidence.by_seed(setting, row, "nll") for row in (COLLAPSED_ALONE, COLLAPSED))
        left, left_with_loss = (_left(mean(scores), eber, erm) for scores in (alone, helped))
        verdict = Verdict.CONFIRMED if left_with_loss < 0.5 else Verdict.CONDITIONAL
        return Finding(
            verdict if left < 0.5 else Verdict.NOT_CONFIRMED,
            f"without an environment loss {shown(alone, 'nll')}; with one {shown(helped, 'nll')}",
            f"{len(alone)} seeds; left of EBER's gain over ERM (EBER {eber:.3f}, ERM {erm:.3f}): {_share(left)} "
            f"without that loss, {_share(left_with_loss)} with it, since it learns p(e|x)",
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


def _left(nll: float, eber: float, erm: float) -> float:
    """Share of EBER's gain over ERM."""
    return (erm - nll) / (erm - eber)


def _share(left: float) -> str:
    return f"{left:.0%}" if left > 0 else "none"


def _closed(evidence: Evidence, setting: str, scores: Mapping[int, float], form: str) -> tuple[float, float, float]:
    """NLL of a form and of Bayes-x, and the share of what is between them that scores of the same seeds close."""
    own, bayes = (mean(_under(scores, evidence.by_seed(setting, row, "nll"))) for row in (form, BAYES))
    return own, bayes, (own - mean(_under(evidence.by_seed(setting, form, "nll"), scores))) / (own - bayes)


def _under(seeds: Mapping[int, float], scores: Mapping[int, float]) -> dict[int, float]:
    """The scores under the same seeds: a small gap must not be one between seeds."""
    return {seed: score for seed, score in scores.items() if seed in seeds}


def _printed(setting: str, row: str, metric: str = "nll") -> float:
    return PAPER[setting].rows[row][metric][0]


def _in_settings(n: int, of: int) -> Verdict:
    """Confirmed in all of them, with a condition in most."""
    return Verdict.CONFIRMED if n == of else Verdict.CONDITIONAL if 2 * n > of else Verdict.NOT_CONFIRMED


def _but(settings: Sequence[str], where: Sequence[str]) -> str:
    """Names the exceptions where they are few."""
    others = [setting for setting in settings if setting not in where]
    return f" (not {', '.join(others)})" if others and len(others) < len(settings) else ""
