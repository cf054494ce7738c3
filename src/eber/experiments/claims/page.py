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
from eber.experiments.claims.headline import headline, over_all_experiments

HEAD = ("Claim of the paper", "Where", "Paper", "Ours", "Verdict", "Evidence")
READ_THIS = (
    "EBER is this library's recipe unless a row says otherwise; docs/method.md has what it adds to the plain form. "
    "Verdicts follow rules that are stated in `src/eber/experiments/claims`; nothing on this page but the paper's own "
    "figures is typed by hand."
)


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and what came out of it."""

    claim: Claim
    finding: Finding


def judge_claims(folder: Path) -> list[JudgedClaim]:
    """Hold every claim against the result folders below `folder`, one for each experiment.

    Raises
    ------
    FileNotFoundError
        Where there is no such folder.
    """
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
    verdicts = {one.claim.key: one.finding.verdict for one in judged}
    return [JudgedClaim(*over_all_experiments(verdicts)), *judged]


def _finding(claim: Claim, evidence: Evidence | None) -> Finding:
    if claim.experiment and evidence is None:
        return Finding(Verdict.MISSING, "–", f"run: {claim.command}")
    try:
        return claim.judge(cast(Evidence, evidence))  # a claim without an experiment asks for none
    except MissingEvidence as error:
        return Finding(Verdict.MISSING, "–", f"{error}; run: {claim.command}")


def counts(judged: Sequence[JudgedClaim]) -> str:
    """How the claims came out, in numbers."""
    found = Counter(one.finding.verdict for one in judged)
    parts = [f"{found[verdict]} {verdict}" for verdict in Verdict if found[verdict]]
    return f"Of {len(judged)} claims: {', '.join(parts)}."


def headline_of(judged: Sequence[JudgedClaim]) -> list[str]:
    """What a replication says first, in sentences that follow from the verdicts."""
    return headline({one.claim.key: one.finding.verdict for one in judged})


def as_markdown(judged: Sequence[JudgedClaim]) -> str:
    """The page: the headline, then a row for each claim."""
    lines = [
        "# The paper, claim by claim",
        "",
        *headline_of(judged),
        "",
        counts(judged),
        "",
        READ_THIS,
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'---|' * len(HEAD)}",
    ]
    for one in judged:
        cells = (
            one.claim.text,
            one.claim.place,
            one.claim.paper,
            one.finding.ours,
            one.finding.verdict,
            one.finding.evidence,
        )
        texts = [_cell(text) for text in cells]
        texts[4] = f"**{texts[4]}**"
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


_MARKED = str.maketrans({character: f"\\{character}" for character in "\\|*_`<>[]"})


def _cell(text: str) -> str:
    """A text in one cell of a Markdown table: one line, and no sign of it means anything."""
    return " ".join(text.split()).translate(_MARKED)
