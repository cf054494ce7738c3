"""How results show themselves: plain text of 80 columns, and HTML for notebooks.

HTML takes its colours from the page around it, so that it is right in light and in dark, and asks for nothing. All
texts are escaped: names of columns and environments come from files that others made.
"""

from __future__ import annotations

import io
import itertools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

WIDTH = 80
LABEL_WIDTH = 20
"""Of the names in the first column of a table that would not fit otherwise."""
_STYLE = (
    "<style>"
    ".eber-result table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4em 0}"
    ".eber-result th,.eber-result td{padding:.2em .6em;text-align:right;background:none;color:inherit;"
    "border-bottom:1px solid rgba(128,128,128,.4)}"
    ".eber-result th:first-child,.eber-result td:first-child,.eber-result caption{text-align:left}"
    ".eber-result caption{caption-side:bottom;opacity:.75;font-size:.9em}"
    "</style>"
)


def text_table(heads: Sequence[str], lines: Sequence[Sequence[str]], dispensable: Sequence[str] | None = None) -> str:
    """A table as plain text of at most `WIDTH` columns; see `terminal_table`."""
    return rendered(terminal_table(heads, lines, heads[:0:-1] if dispensable is None else dispensable, WIDTH))


def terminal_table(
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    dispensable: Sequence[str],
    width: int,
    styles: Sequence[str] = (),
) -> RenderableType:
    """A table that is readable on a terminal of that width: columns that do not fit are left out, none is cut.

    Parameters
    ----------
    heads, lines
        The first column has names, which are wrapped on words before anything is left out.
    dispensable : sequence of str
        Heads of the columns that may be left out, the first one first.
    styles : sequence of str, optional
        Of each line.
    """

    def drawn(shown: Sequence[str], label_width: int | None) -> RichTable:
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        add_columns(table, shown, label_width)
        places = [heads.index(head) for head in shown]
        for line, style in itertools.zip_longest(lines, styles):
            table.add_row(*(Text(line[j]) for j in places), style=style)
        return table

    table = first_that_fits((drawn(shown, label_width) for shown, label_width in choices(heads, dispensable)), width)
    return with_hidden(table, heads)


def choices(heads: Sequence[str], dispensable: Sequence[str]) -> Iterator[tuple[list[str], int | None]]:
    """Ever fewer heads, and the width of the first column: as it is, then wrapped, then without the dispensable."""
    shown = list(heads)
    yield list(shown), None
    yield list(shown), LABEL_WIDTH
    for head in dispensable:
        shown.remove(head)
        yield list(shown), LABEL_WIDTH


def add_columns(table: RichTable, heads: Sequence[str], label_width: int | None) -> None:
    """Names to the left, wrapped at that width; figures to the right, never wrapped."""
    for j, head in enumerate(heads):
        if j == 0:
            table.add_column(Text(head), max_width=label_width, overflow="fold")
        else:
            table.add_column(Text(head), justify="right", no_wrap=True)


def first_that_fits(tables: Iterable[RichTable], width: int) -> RichTable:
    """The first of the tables that is no wider; the last where none is."""
    console = Console(file=io.StringIO(), width=10_000, _environ={})
    for table in tables:
        if Measurement.get(console, console.options, table).maximum <= width:
            return table
    return table


def with_hidden(table: RichTable, heads: Sequence[str], also: Sequence[str] = ()) -> RenderableType:
    """The table with a word below it on the columns that it was left without, and on what else is not shown."""
    shown = {str(column.header) for column in table.columns}
    hidden = [*also, *(head for head in heads if head not in shown)]
    return Group(table, Text(f"No room for: {', '.join(hidden)}.", style="dim")) if hidden else table


def rendered(renderable: RenderableType) -> str:
    """What a terminal of `WIDTH` columns without colours would show."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False, _environ={})
    with console.capture() as capture:
        console.print(renderable, highlight=False)
    return "\n".join(line.rstrip() for line in capture.get().strip("\n").split("\n"))


def text_display(parts: Iterable[str]) -> str:
    """Paragraphs below each other, wrapped to `WIDTH`; a part of several lines stays as it is."""
    return "\n".join(
        part if "\n" in part else textwrap.fill(part, WIDTH, break_on_hyphens=False) for part in parts if part
    )


def html_table(heads: Sequence[str], lines: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table in HTML."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(entry)}</td>' for entry in line)}</tr>" for line in lines)
    below = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{below}<thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>"


def html_display(title: str, parts: Iterable[str], lists: Mapping[str, Sequence[str]]) -> str:
    """A result in HTML: a title, parts that are HTML already, and sentences under headings, where there are any."""
    body = [_STYLE, f"<p><strong>{escape(title)}</strong></p>", *parts]
    for head, sentences in lists.items():
        if sentences:
            items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
            body.append(f"<details><summary>{escape(head)} ({len(sentences)})</summary><ul>{items}</ul></details>")
    return f'<div class="eber-result">{"".join(body)}</div>'
