"""The table is the same in every dress."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from eber.report.latex import as_latex
from eber.report.tables import as_markdown, as_rich, lay_out
from eber.runs.progress import Progress
from eber.runs.results import Summary, load_results, summarise
from eber.runs.runner import run
from tests.latex import assert_compiles_and_fits, needs_tex
from tests.toy_experiment import TOY


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> list[Summary]:
    """Both settings of the toy experiment."""
    out: Path = tmp_path_factory.mktemp("tables")
    run(TOY, out=out, seeds=3, progress=Progress())
    return summarise(load_results(TOY, out))


def test_the_layout_has_the_papers_figures_where_the_paper_has_some(summaries: list[Summary]) -> None:
    baseline, shifted = map(lay_out, summaries)
    assert baseline.heads == ("NLL ↓", "Accuracy ↑", "Time (s)")
    assert baseline.has_paper == (True, True, True)
    assert shifted.has_paper == (False, False, False)
    assert [[line.role for line in block] for block in baseline.blocks] == [["oracle"], ["method"] * 3, ["variant"]]
    eber = baseline.lines[1]
    assert eber.entries[0].paper == "0.319 ± 0.030"
    assert eber.entries[0].best
    assert eber.entries[0].notable
    assert eber.entries[2].paper == "18.92 ± 1.12"
    assert eber.entries[2].deviation == "", "times are of other machines"
    assert (eber.p, baseline.lines[2].paper_p) == ("–", "0.015")


def test_markdown_has_as_many_cells_in_each_row_as_heads(summaries: list[Summary]) -> None:
    text = as_markdown("A toy", summaries)
    assert text.startswith(
        "# A toy\n\n## baseline\n\n| Method | NLL ↓ | paper | Accuracy ↑ | paper | Time (s) | paper | p"
    )
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert re.search(r"\| EBER \| \*\*0\.\d{3} ± 0\.\d{3}\*\* \| 0\.319 ± 0\.030 \(−\d\.\d\) \|", text)
    assert "over 3 seeds" in text
    assert "- EBER: NLL" in text


def test_latex_has_balanced_rows_and_no_raw_symbols(summaries: list[Summary]) -> None:
    text = as_latex("toy", summaries)
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 2
    assert text.isascii(), "every symbol has its LaTeX form"
    for table in text.split(r"\end{table}")[:2]:
        columns = len(re.search(r"\{(lc+)\}", table)[1])  # type: ignore[index]
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert {row.count("&") for row in rows} == {columns - 1}
    assert r"\textbf{0." in text
    assert r"\label{tab:toy-shift-0-1}" in text


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_on_a_terminal_columns_are_left_out_and_none_is_cut(summaries: list[Summary], width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    console.print(as_rich(summaries[0], width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for label in ("Bayes-x", "V-REx", "paper", "0.319"):
        assert label in text
    layout = lay_out(summaries[0])
    first_line = next(line for line in text.splitlines() if line.startswith("EBER "))
    shown = next(line for line in text.splitlines() if line.startswith("Method"))
    assert layout.p_head in shown, "the test stays"
    for head, entry in zip(layout.heads, layout.lines[1].entries, strict=True):
        if head in shown:
            assert entry.ours in first_line, "a column that is shown is whole"
        else:
            assert head in text.split("No room for: ")[1]
    if width == 160:
        assert "No room" not in text
        assert "(−" in text or "(+" in text, "deviations from the paper"


@needs_tex
def test_latex_compiles_and_no_table_is_wider_than_the_page(summaries: list[Summary], tmp_path: Path) -> None:
    assert_compiles_and_fits(as_latex("toy", summaries), tmp_path)


def test_quotation_marks_open_and_close_in_latex(summaries: list[Summary]) -> None:
    """A straight mark is a closing one in TeX, wherever it stands; a bar is a dash in its usual font."""
    text = as_latex("toy", [replace(summaries[0], setting='the "first" of p(y|x)')])
    assert "the ``first'' of p(y$|$x). " in text
    assert '"' not in text


def test_a_deviation_beyond_ten_is_said_to_be_beyond_ten(summaries: list[Summary]) -> None:
    row = next(row for row in summaries[0].rows if row.label == "EBER")
    for mean, text in ((0.519, "+6.7"), (0.919, "> +10"), (-0.719, "< −10")):
        estimate = replace(row.estimates["nll"], mean=mean)
        changed = replace(summaries[0], rows=(replace(row, estimates={**row.estimates, "nll": estimate}),))
        assert lay_out(changed).lines[0].entries[0].deviation == text
