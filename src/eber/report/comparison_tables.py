"""The tables of a comparison: the ranking, for the terminal and for the page, and the scores by held-out fold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from eber.compare.summary import ComparisonSummary, MethodSummary
from eber.evaluation.metrics import METRICS, Metric
from eber.evaluation.wording import format_p
from eber.io.display import terminal_table
from eber.runs.spec import SECONDS

MISSING = "–"
INTERVAL, BEHIND = "95 % interval", "Behind"
TERMINAL_METRICS = ("nll", "auroc", "accuracy", "ece")
"""The first ones first, where there is no room for all."""
MAX_METHODS = 12
"""Methods that have a column each on the page; more would need a scrollbar."""


def ranking(summary: ComparisonSummary, metrics: Iterable[str]) -> tuple[list[str], list[list[str]]]:
    """Heads and lines: the ranking metric with its interval, the leader's test, then the other metrics."""
    metric = summary.metric
    others = [METRICS[name] for name in metrics if name != metric.name]
    heads = [
        "Method",
        f"{metric.label} {metric.arrow}",
        INTERVAL,
        BEHIND,
        "p",
        *(f"{other.label} {other.arrow}" for other in others),
        SECONDS.label,
    ]
    lines = [_line(row, row.method, metric, others) for row in summary.rows]
    if summary.adapted is not None:
        line = _line(summary.adapted, "EBER, adapted", metric, others)
        lines.append([*line[:-1], MISSING])
    return heads, lines


def dispensable(heads: list[str]) -> list[str]:
    """What a narrow terminal does without: the time first, then the other metrics from the last, `BEHIND`, `INTERVAL`.

    The method, its score and the test of it stay.
    """
    *others, seconds = heads[5:]
    return [seconds, *reversed(others), BEHIND, INTERVAL]


def ranking_for_terminal(summary: ComparisonSummary, width: int) -> RenderableType:
    """The ranking for a terminal of that width; the leader in bold."""
    heads, lines = ranking(summary, TERMINAL_METRICS)
    table = terminal_table(heads, lines, dispensable(heads), width, ["bold"])
    return Group(table, Text(ranking_caption(summary), style="italic dim"))


def ranking_caption(summary: ComparisonSummary) -> str:
    """What a reader must know to read the ranking."""
    seeds = summary.n_seeds
    parts = [
        f"Means over {summary.held_out}, {seeds} {'seed' if seeds == 1 else 'seeds'}.",
        "Interval: of the mean over environments, by Student's t.",
        "p: two-sided t-test against the leader, paired by held-out environment, Benjamini-Yekutieli corrected over "
        "all pairs of methods. Behind: how much worse than the leader.",
    ]
    if summary.adapted is not None:
        parts.append("EBER, adapted: has seen the held-out rows without their labels, and is not ranked.")
    return " ".join(parts)


def shown_methods(summary: ComparisonSummary) -> list[MethodSummary]:
    """The methods that stand side by side in a table: as many as there is room for, the advised one among them."""
    first = list(summary.rows[:MAX_METHODS])
    return first if summary.recommended in first else [*first[:-1], summary.recommended]


def fold_table(summary: ComparisonSummary, rows: Sequence[MethodSummary]) -> list[dict[str, Any]]:
    """One line for each held-out fold: the score of each of these methods, with the best of them marked."""
    metric = summary.metric
    pick = max if metric.higher_is_better else min
    lines = []
    for fold in summary.folds:
        values = [row.by_fold.get(fold, {}).get(metric.name, math.nan) for row in rows]
        known = [value for value in values if not math.isnan(value)]
        best = metric.format(pick(known)) if known else ""
        entries = [{"text": metric.format(value), "best": metric.format(value) == best} for value in values]
        lines.append({"fold": fold, "entries": entries})
    return lines


def _line(row: MethodSummary, label: str, metric: Metric, others: list[Metric]) -> list[str]:
    interval = MISSING if math.isnan(row.low) else f"{metric.format(row.low)} to {metric.format(row.high)}"
    test = row.test
    behind = MISSING if test is None or math.isnan(test.advantage) else f"{test.advantage:.3f}"
    p = MISSING if test is None else format_p(test.p_corrected)
    return [
        label,
        metric.format(row.means[metric.name]),
        interval,
        behind,
        p,
        *(other.format(row.means[other.name]) for other in others),
        SECONDS.format(row.seconds),
    ]
