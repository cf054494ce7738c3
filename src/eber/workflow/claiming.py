"""`claims`: the paper's claims, held against the results of its experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eber.experiments.claims.evidence import Evidence
from eber.experiments.claims.gathering import gather
from eber.experiments.claims.page import HEAD, JudgedClaim, as_markdown, counts, headline_of, judge_claims
from eber.experiments.claims.runs import RUNS_HEAD, runs_of
from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.io.display import html_display, html_table, text_display
from eber.io.files import write_atomically
from eber.report.page import PAGE_FILE
from eber.report.templates import render
from eber.workflow.arguments import RESULTS

ALL = "all"
CLAIMS_FILE, INDEX_FILE = "claims.md", "index.html"


@dataclass(frozen=True, repr=False)
class Claims:
    """Every claim of the paper and what came out of it.

    Parameters
    ----------
    judged : tuple of JudgedClaim
    evidence : mapping
        Experiment to what its runs measured, as far as there are any.
    """

    judged: tuple[JudgedClaim, ...]
    evidence: Mapping[str, Evidence]

    @property
    def verdicts(self) -> dict[str, str]:
        """Key of a claim to its verdict."""
        return {one.claim.key: str(one.finding.verdict) for one in self.judged}

    @property
    def headline(self) -> str:
        """What came out, in a few sentences."""
        return " ".join(headline_of(self.judged))

    @property
    def markdown(self) -> str:
        """The page."""
        return as_markdown(self.judged, self.evidence)

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all."""
        write_atomically(Path(path), self.markdown)
        return Path(path)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Cells of the table, a row for each claim."""
        return [
            (
                one.claim.text,
                one.claim.place,
                one.claim.paper,
                one.finding.ours,
                str(one.finding.verdict),
                one.finding.evidence,
            )
            for one in self.judged
        ]

    def __repr__(self) -> str:
        parts = [self.headline, "", counts(self.judged)]
        for text, _, paper, ours, verdict, evidence in self.rows:
            parts += [" ", f"{verdict.upper()}: {text}", f"  Paper: {paper}. Ours: {ours}. {evidence}."]
        return text_display(parts)

    def _repr_html_(self) -> str:
        tables = [html_table(HEAD, self.rows, self.headline), html_table(RUNS_HEAD, runs_of(self.evidence), "The runs")]
        return html_display("The paper, claim by claim", tables, {})


def claims(folder: str | Path | None = None, evidence: str | Path | None = None) -> Claims:
    """Hold every claim of the paper against the results of its experiments.

    Parameters
    ----------
    folder : str or Path, optional
        With a folder for each experiment, as `reproduce_all` fills it; results/all when not given. A claim whose
        results are not there says which command gives them.
    evidence : str or Path, optional
        A folder that keeps what results said, in a small file for each experiment. What is in `folder` is written
        there, a setting at a time, and what is not in it is taken from there: the runs need not all be made at once,
        and their results need not be kept. It will do without `folder`.
    """
    kept = Path(evidence) if evidence is not None else None
    place = Path(folder) if folder is not None else RESULTS / ALL
    only_kept = folder is None and kept is not None and not place.is_dir()
    found = gather(None if only_kept else place, kept)
    return Claims(tuple(judge_claims(found)), found)


def write_index(folder: Path) -> Path:
    """Write `claims.md` and `index.html`, which has the claims and leads to every report below the folder."""
    found = claims(folder)
    found.save(folder / CLAIMS_FILE)
    reports = {
        find_experiment(name).title: f"{name}/{PAGE_FILE}"
        for name in EXPERIMENTS
        if (folder / name / PAGE_FILE).exists()
    }
    index = folder / INDEX_FILE
    write_atomically(
        index,
        render(
            "index.html",
            headline=headline_of(found.judged),
            counts=counts(found.judged),
            reports=reports,
            head=HEAD,
            rows=found.rows,
            runs_head=RUNS_HEAD,
            runs=runs_of(found.evidence),
        ),
    )
    return index
