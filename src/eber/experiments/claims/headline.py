"""What a replication says first: sentences that follow from what came of the claims, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eber.evaluation.wording import listed
from eber.experiments.claims.claim import Claim, Finding, Verdict

MAIN = {
    "parametric-nll": "the parametric simulation",
    "colored-mnist-nll": "Colored MNIST",
    "quasar-nll": "quasars",
    "microbiome-nll": "the microbiome",
    "sepsis-auroc": "sepsis",
}
"""The claim that EBER is best in the tested metric of each of the paper's five experiments."""
PLAIN = {key.replace("-nll", "-plain-nll").replace("-auroc", "-plain-auroc"): where for key, where in MAIN.items()}
"""The same of the paper's plain form."""
SETTINGS = {
    f"parametric-{setting}-nll": setting
    for setting in ("rho=0.15", "rho=0.2", "m=12", "m=36", "n=1000", "d=50", "d=100", "d=1000")
}
AHEAD = (Verdict.CONFIRMED, Verdict.CONDITIONAL)


def headline(findings: Mapping[str, Finding]) -> list[str]:
    """A few sentences."""
    verdicts = {key: finding.verdict for key, finding in findings.items()}
    return [
        *_best_of_all("With this library's recipe, in the metric that the paper tests", MAIN, findings),
        *_best_of_all("In the paper's plain form, without what this library adds", PLAIN, findings),
        *_small_leads(findings),
        *_no_model(findings),
        *_best_of_all("In the sensitivity settings of the parametric simulation", SETTINGS, findings),
        *_mechanism(verdicts),
        *_missing(verdicts),
    ]


def over_all(findings: Mapping[str, Finding]) -> list[tuple[Claim, Finding]]:
    """The claims that others decide: that of the abstract, and that over the sensitivity settings."""
    return [over_all_experiments(findings), over_all_settings(findings)]


def over_all_experiments(findings: Mapping[str, Finding]) -> tuple[Claim, Finding]:
    """The abstract's claim, judged by the claims about the five experiments.

    Confirmed: confirmed in each. With a condition: ahead in each. Not confirmed: behind in one.
    """
    claim = _of_others(
        "overall",
        "Across the five experiments EBER outperforms the other methods in new environments.",
        "Abstract, Section 5",
    )
    return claim, _over(MAIN, findings, all_but=0, command="eber reproduce all")


def over_all_settings(findings: Mapping[str, Finding]) -> tuple[Claim, Finding]:
    """Judged by the claims about NLL in the eight sensitivity settings.

    Confirmed: confirmed in each. With a condition: ahead in each but one ("overall"). Not confirmed: behind in more.
    """
    claim = _of_others(
        "sensitivity",
        "Across the sensitivity studies EBER remains best overall.",
        "Section 5.1, Tables 7 to 14",
    )
    return claim, _over(SETTINGS, findings, all_but=1, command="eber reproduce parametric --seeds 10 --sensitivity")


def _of_others(key: str, text: str, place: str) -> Claim:
    """A claim that nothing but verdicts on others decides: no evidence is held against it."""
    return Claim(key, text, place, "best in each", "", "", lambda evidence: Finding(Verdict.MISSING, ""))


def _over(claims: Mapping[str, str], findings: Mapping[str, Finding], all_but: int, command: str) -> Finding:
    """Confirmed: each of them is. With a condition: ahead in each but so many."""
    of = {where: findings[key].verdict for key, where in claims.items()}
    level = [where for key, where in claims.items() if findings[key].level]
    missing = [where for where, verdict in of.items() if verdict is Verdict.MISSING]
    ahead = [where for where, verdict in of.items() if verdict in AHEAD]
    surely = [where for where, verdict in of.items() if verdict is Verdict.CONFIRMED]
    behind = [where for where, verdict in of.items() if verdict is Verdict.NOT_CONFIRMED]
    surely_behind = [where for where in behind if where not in level]
    if len(behind) > all_but:
        verdict = Verdict.NOT_CONFIRMED
    elif missing:
        verdict = Verdict.MISSING
    else:
        verdict = Verdict.CONFIRMED if len(surely) == len(of) else Verdict.CONDITIONAL
    remarks = [
        *([f"behind in {listed(surely_behind)}"] if surely_behind else []),
        *([f"behind, by no more than chance may make, in {listed(level)}"] if level else []),
        *([f"not run: {listed(missing)}; run: {command}"] if missing else []),
    ]
    ours = f"ahead in {len(ahead)} of {len(of)}, significantly in {len(surely)}"
    return Finding(verdict, ours, "; ".join(remarks) or "the rows below")


def _best_of_all(words: str, claims: Mapping[str, str], findings: Mapping[str, Finding]) -> list[str]:
    """Where EBER is best, ahead, level and behind; nothing where nothing was run."""

    def where(verdict: Verdict, level: bool = False) -> list[str]:
        return [
            place
            for key, place in claims.items()
            if (found := findings.get(key)) and (found.verdict, found.level) == (verdict, level)
        ]

    parts = [
        f"{said} {listed(places)}"
        for said, places in (
            ("is significantly better than every other method on", where(Verdict.CONFIRMED)),
            ("is ahead, but not of all significantly, on", where(Verdict.CONDITIONAL)),
            ("is behind another method, by no more than chance may make, on", where(Verdict.NOT_CONFIRMED, level=True)),
            ("is behind another method on", where(Verdict.NOT_CONFIRMED)),
        )
        if places
    ]
    return [f"{words}, EBER {'; it '.join(parts)}."] if parts else []


def _no_model(findings: Mapping[str, Finding]) -> list[str]:
    """Where all of the paper's methods would better be left alone."""
    beaten = [f"{place} ({findings[key].no_model})" for key, place in MAIN.items() if findings[key].no_model]
    return [f"No model at all is better than EBER on {listed(beaten)}."] if beaten else []


def _small_leads(findings: Mapping[str, Finding]) -> list[str]:
    """Where EBER is ahead, but by less than half of what the paper prints."""
    small = [
        f"{place} ({finding.ours})"
        for key, place in MAIN.items()
        if findings[key].verdict in AHEAD
        and (finding := findings.get(f"{key.rsplit('-', 1)[0]}-substantial"))
        and finding.verdict in (Verdict.CONDITIONAL, Verdict.NOT_CONFIRMED)
    ]
    return [f"The recipe's lead is less than half of the paper's on {listed(small)}."] if small else []


def _mechanism(verdicts: Mapping[str, Verdict]) -> list[str]:
    """What makes it work, and what of the paper's own account does not hold."""
    said: list[tuple[str, Callable[[Verdict], bool], str]] = [
        ("theorem-1", lambda verdict: verdict is Verdict.CONFIRMED, "Theorem 1 holds"),
        ("uniform-weights", lambda verdict: verdict is Verdict.CONFIRMED, "without learned p(e|x) the gain is gone"),
        (
            "algorithm-1",
            lambda verdict: verdict is Verdict.NOT_CONFIRMED,
            "Algorithm 1 read to the letter does not maximise a lower bound",
        ),
        (
            "parametric-readings",
            lambda verdict: verdict is not Verdict.CONFIRMED,
            "the printed figures of EBER are not those of Algorithm 1 read to the letter",
        ),
    ]
    parts = [words for key, holds, words in said if verdicts[key] is not Verdict.MISSING and holds(verdicts[key])]
    return [f"{parts[0][0].upper()}{listed(parts)[1:]}."] if parts else []


def _missing(verdicts: Mapping[str, Verdict]) -> list[str]:
    n = sum(verdict is Verdict.MISSING for verdict in verdicts.values())
    return [f"{n} claims wait for a run, which their rows name."] if n else []
