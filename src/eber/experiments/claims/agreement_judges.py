"""Rules for the claims of the agreement analysis: who is right where EBER is wrong, and where methods differ."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eber.experiments.claims.claim import Finding, Verdict
from eber.experiments.claims.evidence import ALL_RIGHT, ALL_WRONG, RIGHT_WITH, RIGHT_WITHOUT, Evidence, mean
from eber.experiments.claims.judges import EBER, Judge

MOSTLY, CONSISTENTLY = 0.5, 0.9
"""Shares of rows on which a method is right more often than not, where the paper's figures have a dashed line, and
consistently."""


def errors_are_not_easy_for_others(setting: str) -> Judge:
    """Confirmed: of all rows on which EBER is wrong, no method is right on more than `MOSTLY`.

    With a condition: one is, but none on `CONSISTENTLY`. Not confirmed: one is right consistently.

    This rule was changed after results were seen. At first it looked only at the rows on which methods differ, while
    the text speaks of all that EBER is wrong on, and asked for no more than `CONSISTENTLY`, while the paper's own mark
    is 0.5. What comes of the rows on which methods differ is said.
    """

    def judge(evidence: Evidence) -> Finding:
        differ = {
            method: evidence.by_seed(setting, method, RIGHT_WITHOUT)
            for method in evidence.methods_with(setting, RIGHT_WITHOUT)
        }
        all_wrong, accuracy = (evidence.by_seed(setting, EBER, name) for name in (ALL_WRONG, "accuracy"))
        shares = {}
        for method, values in differ.items():
            wrong = {seed: 1 - accuracy[seed] for seed in values if accuracy[seed] < 1}
            right = {seed: np.nan_to_num(values[seed]) * (wrong[seed] - all_wrong[seed]) for seed in wrong}
            shares[method] = float(np.mean([right[seed] / wrong[seed] for seed in wrong])) if wrong else 0.0
        apart = ", ".join(f"{method} {np.nanmean(list(values.values())):.2f}" for method, values in differ.items())
        return Finding(
            _by_the_most(shares),
            _shares(shares),
            f"{len(all_wrong)} seeds; at most {MOSTLY:g} is asked for; EBER is wrong on {1 - mean(accuracy):.0%} "
            f"of all rows, every method on {mean(all_wrong):.0%}; where methods differ: {apart}",
        )

    return judge


def successes_are_not_easy_for_others(setting: str) -> Judge:
    """Confirmed: where methods differ and EBER is right, no method is right on more than `MOSTLY` of the rows.

    With a condition: one is, but none on `CONSISTENTLY`. Not confirmed: one is right consistently.

    This rule was changed after results were seen: at first it asked for no more than `CONSISTENTLY`, while the paper's
    own mark is 0.5.
    """

    def judge(evidence: Evidence) -> Finding:
        shares = {
            method: float(np.nanmean(list(evidence.by_seed(setting, method, RIGHT_WITH).values())))
            for method in evidence.methods_with(setting, RIGHT_WITH)
        }
        all_right = evidence.by_seed(setting, EBER, ALL_RIGHT)
        return Finding(
            _by_the_most(shares),
            _shares(shares),
            f"{len(all_right)} seeds; at most {MOSTLY:g} is asked for; every method is right on {mean(all_right):.0%} "
            "of all rows",
        )

    return judge


def _by_the_most(shares: Mapping[str, float]) -> Verdict:
    most = max(shares.values())
    if most >= CONSISTENTLY:
        return Verdict.NOT_CONFIRMED
    return Verdict.CONDITIONAL if most > MOSTLY else Verdict.CONFIRMED


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{method} {share:.2f}" for method, share in shares.items())
