"""A summary over holdouts as tables: each method over all environments, and the reference method in each of them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType

from eber.evaluation.wording import format_estimate, format_interval, format_p, format_signed
from eber.io.display import WIDTH
from eber.report.latex import latex_table
from eber.report.tables import MISSING, Entry, Layout, Line, markdown_table, rich_table
from eber.runs.holdout_summary import HoldoutRow, HoldoutSummary
from eber.runs.holdout_wording import (
    advantages_caption,
    caution,
    holdout_caption,
    holdout_remarks,
    holdout_title,
)
from eber.runs.wording import verdict


def lay_out_holdouts(summary: HoldoutSummary) -> Layout:
    """Every method over all environments."""
    metric = summary.primary
    heads = (f"{metric.label} {metric.arrow}".strip(), "best in", "worst in")
    tested = any(row.comparison for row in summary.rows)
    return Layout(
        heads,
        (False,) * len(heads),
        f"p ({metric.label})" if tested else "",
        False,
        tuple(_line(row, summary) for row in summary.rows),
    )


def _line(row: HoldoutRow, summary: HoldoutSummary) -> Line:
    metric = summary.primary
    entries = (
        Entry(format_estimate(metric, row.mean, row.sd), best=row.label in summary.best),
        Entry(MISSING if row.n_best is None else f"{row.n_best} of {len(summary.environments)}"),
        Entry(f"{row.worst} ({metric.format(row.by_environment[row.worst])})" if row.worst else MISSING),
    )
    p = format_p(row.comparison.p_corrected) if row.comparison else MISSING
    return Line(row.label, row.role, entries, p, "")


def lay_out_advantages(summary: HoldoutSummary) -> Layout:
    """The reference method's advantage over each other row in each environment; no lines where it was not run."""
    heads = (*summary.environments, "mean", "95 % interval")
    lines = []
    for row in summary.rows:
        if row.advantages:
            low, high = (row.comparison.low, row.comparison.high) if row.comparison else (float("nan"),) * 2
            texts = [format_signed(value) for value in (*row.advantages.values(), row.mean_advantage)]
            lines.append(Line(row.label, row.role, tuple(map(Entry, [*texts, format_interval(low, high)])), "", ""))
    return Layout(heads, (False,) * len(heads), "", False, tuple(lines))


def holdouts_as_markdown(summaries: Iterable[HoldoutSummary]) -> str:
    """All families, to go below the settings; empty where there are none."""
    parts = []
    for summary in summaries:
        parts += [f"## {holdout_title(summary)}", markdown_table(lay_out_holdouts(summary)), holdout_caption(summary)]
        advantages = lay_out_advantages(summary)
        if advantages.lines:
            parts += [markdown_table(advantages), advantages_caption(summary)]
        parts += filter(None, [verdict(summary), caution(summary), *holdout_remarks(summary)])
    return "".join(f"\n{part}\n" for part in parts)


def holdouts_as_latex(name: str, summaries: Iterable[HoldoutSummary]) -> str:
    """All families as LaTeX tables, to go below those of the settings; empty where there are none."""
    tables = []
    for summary in summaries:
        title = holdout_title(summary)
        label = f"{name}-holdouts-{summary.family}"
        tables.append(latex_table(lay_out_holdouts(summary), f"{title}. {holdout_caption(summary)}", label))
        advantages = lay_out_advantages(summary)
        if advantages.lines:
            tables.append(latex_table(advantages, f"{title}. {advantages_caption(summary)}", f"{label}-advantages"))
    return "".join(f"\n{table}\n" for table in tables)


def holdouts_as_rich(summary: HoldoutSummary, width: int = WIDTH) -> list[RenderableType]:
    """One family for a terminal of that width; a narrow one does without some environments, from the last on."""
    layout = lay_out_holdouts(summary)
    title, words = holdout_title(summary), holdout_caption(summary)
    tables = [rich_table(layout, title, words, layout.heads[:0:-1], width)]
    advantages = lay_out_advantages(summary)
    if advantages.lines:
        title, words = f"Advantage of {summary.reference}", advantages_caption(summary)
        tables.append(rich_table(advantages, title, words, summary.environments[::-1], width))
    return tables
