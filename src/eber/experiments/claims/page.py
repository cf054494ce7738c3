"""Claims held against a folder of results, and the page that says what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from eber.experiments.claims.catalogue import all_claims
from eber.experiments.claims.claim import Claim, Finding, Verdict
from eber.experiments.claims.evidence import Evidence, MissingEvidence
from eber.experiments.claims.headline import headline, over_all
from eber.experiments.claims.runs import RUNS_HEAD, runs_of
from eber.experiments.registry import find_experiment

HEAD = ("Claim of the paper", "Where", "Paper", "Ours", "Verdict", "Evidence")
READ_THIS = (
    "EBER is this library's recipe unless a row says otherwise; docs/method.md has what it adds to the plain form, "
    "which is judged in the reading that comes closest to the paper, with the terms of Theorem 1 estimated one by one. "
    "Verdicts follow rules that are stated in `src/eber/experiments/claims`; nothing on this page but the paper's own "
    "figures is typed by hand."
)
OF_NO_RUN = "Over all, theory, costs and p-values"
OF_RUNS = (
    "What the claims above were held against; of seeds, the fewest and the most that a row of a run has. Claims that "
    "no run is about were computed on the spot."
)


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and what came out of it."""

    claim: Claim
    finding: Finding


def judge_claims(evidence: Mapping[str, Evidence]) -> list[JudgedClaim]:
    """Hold every claim against what is known of each experiment, by its name."""
    judged = [JudgedClaim(claim, _finding(claim, evidence.get(claim.experiment))) for claim in all_claims()]
    findings = {one.claim.key: one.finding for one in judged}
    return [*(JudgedClaim(*pair) for pair in over_all(findings)), *judged]


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
    """What a replication says first, in sentences that follow from the findings."""
    return headline({one.claim.key: one.finding for one in judged})


def as_markdown(judged: Sequence[JudgedClaim], evidence: Mapping[str, Evidence]) -> str:
    """The page: the headline, a row for each claim, and a row for each run that they were held against."""
    lines = [
        "# The paper, claim by claim",
        "",
        *(f"- {sentence}" for sentence in headline_of(judged)),
        "",
        counts(judged),
        "",
        READ_THIS,
    ]
    for title, claims in _parts(judged).items():
        lines += ["", f"## {title}", "", *_table(HEAD, [_cells(one) for one in claims])]
    if runs := runs_of(evidence):
        lines += [
            "",
            "## The runs",
            "",
            OF_RUNS,
            "",
            *_table(RUNS_HEAD, [[as_text(text) for text in run] for run in runs]),
        ]
    return "\n".join(lines) + "\n"


def _parts(judged: Sequence[JudgedClaim]) -> dict[str, list[JudgedClaim]]:
    """The claims by the experiment that they are about, in the order of the paper."""
    parts: dict[str, list[JudgedClaim]] = {}
    for one in judged:
        title = find_experiment(one.claim.experiment).title if one.claim.experiment else OF_NO_RUN
        parts.setdefault(title, []).append(one)
    return parts


def _cells(one: JudgedClaim) -> list[str]:
    claim, finding = one.claim, one.finding
    verdict = f"**{as_text(finding.verdict)}**"
    return [*map(as_text, (claim.text, claim.place, claim.paper, finding.ours)), verdict, as_text(finding.evidence)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]


_MARKED = str.maketrans({character: f"\\{character}" for character in "\\|*_`<>[]"})


def as_text(text: str) -> str:
    """A text in one cell of a Markdown table: one line, and no sign of it means anything."""
    return " ".join(text.split()).translate(_MARKED)
