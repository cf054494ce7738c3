"""What a summary over holdouts says in words: how the environments were counted, tested and audited."""

from __future__ import annotations

from eber.evaluation.wording import listed
from eber.runs.holdout_summary import HoldoutSummary
from eber.runs.wording import changed, how_tested


def holdout_title(summary: HoldoutSummary) -> str:
    """Its heading."""
    return f"Summary over holdouts: {summary.family}"


def holdout_caption(summary: HoldoutSummary) -> str:
    """What a reader must know to read the table."""
    parts = [
        f"Mean ± standard deviation over {len(summary.environments)} environments, each held out in turn, of "
        f"{_scores(*summary.n_seeds)}. Best in: environments in which no other method has the better figure, as "
        "printed; worst in: where the method itself scores worst."
    ]
    if summary.missing:
        parts.append(f"Not counted, since not every method has finished there: {listed(summary.missing)}.")
    return " ".join([*parts, *changed(summary.changes), *how_tested(summary, "environment")])


def advantages_caption(summary: HoldoutSummary) -> str:
    """What a reader must know to read the differences."""
    return (
        f"By how much {summary.reference} is better in {summary.primary.label} where each environment is held out; "
        "below zero it is worse. The interval is a two-sided 95 % confidence interval of the mean over environments."
    )


def caution(summary: HoldoutSummary) -> str:
    """What the tests cannot show; empty where nothing was tested."""
    if not any(row.comparison for row in summary.rows):
        return ""
    return (
        f"The units of these tests are the {len(summary.environments)} environments, not seeds. So few show only an "
        "advantage that is large beside its spread from one environment to the next: where none is shown, there may "
        "still be one. What is trained on overlaps from one holdout to the next, so the p-values are a guide and not "
        "exact."
    )


def holdout_remarks(summary: HoldoutSummary) -> list[str]:
    """What the leak audit found, each finding once with the environments it belongs to, and the family's own note."""
    held_out_with: dict[str, list[str]] = {}
    for name, findings in summary.audit.items():
        for finding in findings:
            held_out_with.setdefault(finding, []).append(name)
    remarks = [f"{listed(names)} held out: {finding}" for finding, names in held_out_with.items()]
    return [*remarks, *([summary.note] if summary.note else [])]


def _scores(fewest: int, most: int) -> str:
    if fewest == most:
        return "scores under one seed" if most == 1 else f"means over {most} seeds"
    return f"means over {fewest} to {most} seeds"
