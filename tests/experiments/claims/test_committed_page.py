"""The page that is committed is what `eber claims --evidence docs/claims-evidence` makes of the evidence beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eber.experiments.claims import catalogue, page
from eber.experiments.claims.claim import Claim, Finding, Verdict
from eber.experiments.claims.gathering import gather
from eber.experiments.claims.page import as_markdown, judge_claims

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_page_is_that_of_the_kept_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims that no run is about are computed on the spot, one of them by a clock: they are taken as the page has
    them, and have tests of their own.
    """
    committed = (DOCS / "claims.md").read_text()
    rows = [line.split(" | ") for line in committed.splitlines() if line.startswith("| ") and line.count(" | ") == 5]
    on_page = {cells[0].removeprefix("| "): cells for cells in rows}

    def as_on_page(claim: Claim) -> Claim:
        _, _, _, ours, verdict, evidence = (cell.replace("\\", "") for cell in on_page[page.as_text(claim.text)])
        finding = Finding(Verdict(verdict.strip("*")), ours, evidence.removesuffix(" |"))
        return replace(claim, judge=lambda evidence: finding)

    claims = [claim if claim.experiment else as_on_page(claim) for claim in catalogue.all_claims()]
    monkeypatch.setattr(page, "all_claims", lambda: claims)
    evidence = gather(None, DOCS / "claims-evidence")
    assert as_markdown(judge_claims(evidence), evidence) == committed
