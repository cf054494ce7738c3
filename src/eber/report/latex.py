"""Tables for LaTeX: the paper's figures stand below ours, so that they fit an article's page in a type one can read."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence

from eber.report.tables import MISSING, Layout, Line, lay_out
from eber.runs.results import Summary
from eber.runs.wording import caption

_CHARACTERS = 84
"""Of the type that tables are set in, in a line of an article or a little more: names broken often make tables high."""
_BETWEEN_COLUMNS = 2
_SHORTEST_LABEL = 16
_LINES, _OF_CAPTION = 50, 64
"""Lines of a table on a page of an article, and characters of a caption that take the place of one."""


def as_latex(name: str, summaries: Iterable[Summary]) -> str:
    """All settings as LaTeX tables; they need the packages booktabs and graphicx."""
    tables = (
        latex_table(
            lay_out(summary),
            f"{summary.setting}. {caption(summary, with_deviations=False)}",
            f"{name}-{summary.setting}",
        )
        for summary in summaries
    )
    return "\n\n".join(tables) + "\n"


def latex_table(layout: Layout, words: str, name: str) -> str:
    """One table in LaTeX, with its caption and a label made of its name.

    Long names of rows are broken over lines. What is wider even so, such as a table of many environments, is shrunk to
    the width of the text; what is higher than a page goes on in a table of its own.
    """
    heads = [*layout.heads, *([layout.p_head] if layout.p_head else [])]
    label = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    width = _label_width(layout, heads)
    pages = _pages([[_rows(line, layout, width) for line in block] for block in layout.blocks], words)
    return "\n\n".join(
        _table(body, heads, f"{words.split('. ')[0]}, continued." if n else words, f"{label}-{n + 1}" if n else label)
        for n, body in enumerate(pages)
    )


def _table(body: Iterable[str], heads: Sequence[str], words: str, label: str) -> str:
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex(words)}}}",
            rf"  \label{{tab:{label}}}",
            r"  \medskip\footnotesize\setlength{\tabcolsep}{4pt}",
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"  \begin{{tabular}}{{l{'c' * len(heads)}}}",
            r"    \toprule",
            f"    {_row('Method', map(_latex, heads))}",
            *(f"    {row}" for row in body),
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table}",
        ]
    )


def _pages(blocks: Sequence[Sequence[Sequence[str]]], words: str) -> list[list[str]]:
    """The rows of each page's table: as many methods as there is room for below its caption."""
    pages: list[list[str]] = [[]]
    room = _LINES - math.ceil(len(words) / _OF_CAPTION)
    for block in blocks:
        pages[-1].append(r"\midrule")
        for rows in block:
            if len(pages[-1]) + len(rows) > room:
                pages.append([r"\midrule"])
                room = _LINES
            pages[-1] += rows
    return [page for page in pages if page != [r"\midrule"]]


def _label_width(layout: Layout, heads: Sequence[str]) -> int:
    """As many characters of a row's name as the other columns leave room for."""
    columns = zip(heads, zip(*(_ours(line, layout) for line in layout.lines), strict=True), strict=True)
    others = sum(max(map(len, [head, *texts])) + _BETWEEN_COLUMNS for head, texts in columns)
    return max(_SHORTEST_LABEL, _CHARACTERS - others)


def _rows(line: Line, layout: Layout, width: int) -> list[str]:
    """What one method has: its figures, what is left of its name, and the paper's figures."""
    first, *rest = textwrap.wrap(line.label, width, break_on_hyphens=False)
    ours = [_latex(text) for text in _ours(line, layout)]
    for j, entry in enumerate(line.entries):
        if entry.best:
            ours[j] = rf"\textbf{{{ours[j]}}}"
    rows = [_row(_latex(first), ours)]
    rows += [_row(rf"\quad {_latex(words)}", [""] * len(ours)) for words in rest]
    paper = [entry.paper for entry in line.entries] + ([line.paper_p] if layout.p_head else [])
    if any(paper):
        rows.append(_row(r"\quad paper", [rf"\scriptsize {_latex(text or MISSING)}" for text in paper]))
    return rows


def _ours(line: Line, layout: Layout) -> list[str]:
    return [*(entry.ours for entry in line.entries), *([line.p] if layout.p_head else [])]


def _row(label: str, texts: Iterable[str]) -> str:
    return " & ".join([label, *texts]) + r" \\"


_LATEX = {
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "−": "$-$",
    "–": "--",
    "|": "$|$",
    "<": "$<$",
    ">": "$>$",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}


def _latex(text: str) -> str:
    quoted = re.sub(r'"([^"]*)"', r"``\1''", text)  # a straight mark would be a closing one
    return "".join(_LATEX.get(character, character) for character in quoted)
