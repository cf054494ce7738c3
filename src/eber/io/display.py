"""How results show themselves: plain text of 80 columns, and HTML for notebooks.

HTML takes its colours from the page around it, so that it is right in light and in dark, and asks for nothing. All
texts are escaped: names of columns and environments come from files that others made.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

WIDTH = 80
_STYLE = (
    "<style>"
    ".eber-result table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4em 0}"
    ".eber-result th,.eber-result td{padding:.2em .6em;text-align:right;background:none;color:inherit;"
    "border-bottom:1px solid rgba(128,128,128,.4)}"
    ".eber-result th:first-child,.eber-result td:first-child,.eber-result caption{text-align:left}"
    ".eber-result caption{caption-side:bottom;opacity:.75;font-size:.9em}"
    "</style>"
)


def text_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table as plain text; columns that do not fit into `WIDTH` are cut."""
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for j, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if j == 0 else "right", no_wrap=True)
    for line in lines:
        table.add_row(*(Text(entry) for entry in line))
    return rendered(table)


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
