"""Claims held against a folder of results, and the page that says what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from eber.experiments.claims.catalogue import all_claims
from eber.experiments.claims.claim import Claim, Finding, Verdict
from eber.experiments.claims.evidence import Evidence, MissingEvidence, read_evidence

HEAD = ("Claim of the paper", "Paper", "Ours", "Verdict", "Evidence")


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and what came out of it."""

    claim: Claim
    finding: Finding


def judge_claims(folder: Path) -> list[JudgedClaim]:
    """Hold every claim against the result folders below `folder`, one for each experiment."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder}; give the one that holds the results of eber reproduce all."
        )
    known: dict[str, Evidence | None] = {}
    judged = []
    for claim in all_claims():
        if claim.experiment not in known:
            known[claim.experiment] = read_evidence(folder, claim.experiment) if claim.experiment else None
        judged.append(JudgedClaim(claim, _finding(claim, known[claim.experiment])))
    return judged


def _finding(claim: Claim, evidence: Evidence | None) -> Finding:
    if claim.experiment and evidence is None:
        return Finding(Verdict.MISSING, "–", f"run: {claim.command}")
    try:
        return claim.judge(cast(Evidence, evidence))  # a claim without an experiment asks for none
    except MissingEvidence as error:
        return Finding(Verdict.MISSING, "–", f"{error}; run: {claim.command}")


def headline(judged: Sequence[JudgedClaim]) -> str:
    """How the claims came out, in one sentence of counts."""
    counts = Counter(one.finding.verdict for one in judged)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    return f"Of {len(judged)} claims: {', '.join(parts)}."


def as_markdown(judged: Sequence[JudgedClaim]) -> str:
    """The page: the headline, then a row for each claim."""
    lines = [
        "# The paper, claim by claim",
        "",
        headline(judged),
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'---|' * len(HEAD)}",
    ]
    for one in judged:
        cells = (
            one.claim.text,
            one.claim.paper,
            one.finding.ours,
            f"**{one.finding.verdict}**",
            one.finding.evidence,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
