"""A table as text, and its dress for the terminal and for Markdown: oracles, methods, variants, the paper beside us."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from eber.evaluation.metrics import Quantity
from eber.evaluation.wording import format_estimate, format_p
from eber.io.display import WIDTH, add_columns, choices, first_that_fits, with_hidden
from eber.runs.results import MAX_COUNTED_DEVIATION, MAX_USUAL_DEVIATION, Role, Row, Summary
from eber.runs.spec import SECONDS
from eber.runs.wording import caption, deviations, verdict

MISSING = "–"


@dataclass(frozen=True)
class Entry:
    """Our figure and the paper's, as text.

    Parameters
    ----------
    ours, paper : str
        The paper's is empty where it has none.
    deviation : str
        Signed, in the paper's standard deviations; empty where there is no paper, and for times.
    best : bool
        Whether no other method is better.
    notable : bool
        Whether the deviation is beyond two.
    """

    ours: str
    paper: str = ""
    deviation: str = ""
    best: bool = False
    notable: bool = False

    @property
    def paper_with_deviation(self) -> str:
        """The paper's figure, with the deviation in brackets."""
        return f"{self.paper} ({self.deviation})" if self.deviation else self.paper


@dataclass(frozen=True)
class Line:
    """A row of the table as text."""

    label: str
    role: Role
    entries: tuple[Entry, ...]
    p: str
    paper_p: str


@dataclass(frozen=True)
class Layout:
    """A table as text, before any markup.

    Parameters
    ----------
    heads : tuple of str
        One for each quantity.
    has_paper : tuple of bool
        Whether the paper has a figure in that column.
    p_head : str
        Empty where nothing was tested.
    has_paper_p : bool
        Whether the paper printed p-values.
    lines : tuple of Line
    """

    heads: tuple[str, ...]
    has_paper: tuple[bool, ...]
    p_head: str
    has_paper_p: bool
    lines: tuple[Line, ...]

    @property
    def blocks(self) -> list[list[Line]]:
        """Oracles, methods and variants apart."""
        return [list(block) for _, block in groupby(self.lines, key=lambda line: line.role)]


def lay_out(summary: Summary) -> Layout:
    """A summary as a table of texts."""
    lines = tuple(_line(row, summary) for row in summary.rows)
    tested = any(row.comparison for row in summary.rows)
    return Layout(
        tuple(f"{column.label} {column.arrow}".strip() for column in summary.columns),
        tuple(any(line.entries[i].paper for line in lines) for i in range(len(summary.columns))),
        f"p ({summary.primary.label})" if tested else "",
        tested and any(line.paper_p for line in lines),
        lines,
    )


def _line(row: Row, summary: Summary) -> Line:
    entries = tuple(_entry(row, column, row.label in summary.best(column.name)) for column in summary.columns)
    p = format_p(row.comparison.p_corrected) if row.comparison else MISSING
    return Line(row.label, row.role, entries, p, row.paper_p_value)


def _entry(row: Row, column: Quantity, best: bool) -> Entry:
    estimate = row.estimates.get(column.name)
    if estimate is None:
        return Entry(MISSING)
    ours = format_estimate(column, estimate.mean, estimate.sd)
    if estimate.paper is None:
        return Entry(ours, best=best)
    paper = format_estimate(column, *estimate.paper)
    if column.name == SECONDS.name or math.isnan(estimate.deviation):  # times are of other machines
        return Entry(ours, paper, best=best)
    notable = abs(estimate.deviation) > MAX_USUAL_DEVIATION
    return Entry(ours, paper, _signed_deviation(estimate.deviation), best, notable)


def _signed_deviation(deviation: float) -> str:
    """With one decimal; beyond `MAX_COUNTED_DEVIATION` that it is beyond it."""
    if abs(deviation) > MAX_COUNTED_DEVIATION:
        return f"> +{MAX_COUNTED_DEVIATION:.0f}" if deviation > 0 else f"< −{MAX_COUNTED_DEVIATION:.0f}"
    return f"{deviation:+z.1f}".replace("-", "−")


def as_markdown(title: str, summaries: Iterable[Summary]) -> str:
    """All settings as a Markdown document."""
    parts = [f"# {title}"]
    for summary in summaries:
        parts += [f"## {summary.setting}", markdown_table(lay_out(summary)), caption(summary)]
        if sentence := verdict(summary):
            parts.append(sentence)
        parts += summary.remarks
        if differing := deviations(summary):
            parts.append("Differs from the paper:\n\n" + "\n".join(f"- {sentence}" for sentence in differing))
    return "\n\n".join(parts) + "\n"


def markdown_table(layout: Layout) -> str:
    """One table in Markdown."""
    heads = ["Method", *map(_markdown, _flat_heads(layout))]
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for line in layout.lines:
        rows.append([_markdown(line.label), *_flat_entries(line, layout, _markdown, "**{}**")])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _markdown(text: str) -> str:
    return text.replace("|", "\\|")


def _flat_heads(layout: Layout) -> list[str]:
    heads = []
    for head, has_paper in zip(layout.heads, layout.has_paper, strict=True):
        heads += [head, "paper"] if has_paper else [head]
    if layout.p_head:
        heads += [layout.p_head, "paper"] if layout.has_paper_p else [layout.p_head]
    return heads


def _flat_entries(line: Line, layout: Layout, escape: Callable[[str], str], bold: str) -> list[str]:
    texts = []
    for entry, has_paper in zip(line.entries, layout.has_paper, strict=True):
        ours = escape(entry.ours)
        texts.append(bold.format(ours) if entry.best else ours)
        if has_paper:
            texts.append(escape(entry.paper_with_deviation or MISSING))
    if layout.p_head:
        texts.append(escape(line.p))
        if layout.has_paper_p:
            texts.append(escape(line.paper_p or MISSING))
    return texts


def as_rich(summary: Summary, width: int = WIDTH) -> RenderableType:
    """One setting for a terminal of that width, the paper's figures below ours.

    A narrow one does without the columns from the last but one on, times first; the tested metric and its p stay.
    """
    layout = lay_out(summary)
    kept = [j for j, column in enumerate(summary.columns) if column.name != summary.primary.name]
    return rich_table(layout, summary.setting, caption(summary), [layout.heads[j] for j in reversed(kept)], width)


def rich_table(layout: Layout, title: str, words: str, dispensable: Sequence[str], width: int) -> RenderableType:
    """One table for a terminal of that width, with its caption.

    Where there is no room, the deviations in brackets go first, of which sentences below the table tell; then names are
    wrapped, and then the dispensable columns go, the first one first.
    """
    heads = ["Method", *layout.heads, *([layout.p_head] if layout.p_head else [])]

    whole = _drawn(layout, heads, heads, None, with_deviations=True)

    def tables() -> Iterator[RichTable]:
        yield whole
        for shown, label_width in choices(heads, dispensable):
            yield _drawn(layout, heads, shown, label_width, with_deviations=False)

    table = first_that_fits(tables(), width)
    has_deviations = any(entry.deviation for line in layout.lines for entry in line.entries)
    lost = ["deviations in brackets"] if has_deviations and table is not whole else []
    return Group(Text(title, style="italic"), with_hidden(table, heads, lost), Text(words, style="italic dim"))


def _drawn(
    layout: Layout, heads: list[str], shown: list[str], label_width: int | None, *, with_deviations: bool
) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    add_columns(table, shown, label_width)
    places = [heads.index(head) for head in shown]
    for block in layout.blocks:
        for line in block:
            ours = [Text(entry.ours, style="bold" if entry.best else "") for entry in line.entries]
            texts = [Text(line.label), *ours, Text(line.p)]
            table.add_row(*(texts[j] for j in places))
            if any(entry.paper for entry in line.entries):
                paper = [
                    Text(
                        entry.paper_with_deviation if with_deviations else entry.paper,
                        style="yellow" if entry.notable else "dim",
                    )
                    for entry in line.entries
                ]
                texts = [Text("  paper", style="dim"), *paper, Text(line.paper_p, style="dim")]
                table.add_row(*(texts[j] for j in places))
        table.add_section()
    return table
