"""The summary over holdouts stands in the terminal, in both tables and on the page, and says the same in each."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eber.cli.main import app
from eber.report.holdout_figure import draw_holdouts
from eber.report.holdout_tables import lay_out_advantages, lay_out_holdouts
from eber.runs.holdout_summary import HoldoutSummary, summarise_holdouts
from eber.runs.results import load_results, summarise
from tests.browser import assert_shown_and_printed, needs_browser
from tests.latex import assert_compiles_and_fits, needs_tex
from tests.toy_experiment import TOY_HOLDOUTS

NAME = "tests.toy_experiment:TOY_HOLDOUTS"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `eber reproduce --all-holdouts` filled, with what it printed."""
    out = tmp_path_factory.mktemp("holdouts")
    done = CliRunner().invoke(app, ["reproduce", NAME, "--all-holdouts", "--seeds", "2", "--out", str(out)])
    assert done.exit_code == 0, done.output
    (out / "printed.txt").write_text(" ".join(done.stdout.split()))
    return out


@pytest.fixture(scope="module")
def summaries(out: Path) -> list[HoldoutSummary]:
    """Wards and regions."""
    return summarise_holdouts(TOY_HOLDOUTS, summarise(load_results(TOY_HOLDOUTS, out)))


def test_each_family_has_its_summary_after_the_tables(out: Path, summaries: list[HoldoutSummary]) -> None:
    assert [summary.environments for summary in summaries] == [("a", "b", "c"), ("north", "south")]
    for text in ((out / "printed.txt").read_text(), (out / "table.md").read_text()):
        places = [
            text.index(words)
            for words in ("hold out south", "Summary over holdouts: wards", "Summary over holdouts: regions")
        ]
        assert places == sorted(places)
        assert text.count("Summary over holdouts") == 2


def test_the_same_figures_stand_in_every_place(out: Path, summaries: list[HoldoutSummary]) -> None:
    printed, markdown, page = ((out / name).read_text() for name in ("printed.txt", "table.md", "report.html"))
    latex = (out / "table.tex").read_text()
    for summary in summaries:
        lines = [*lay_out_holdouts(summary).lines, *lay_out_advantages(summary).lines]
        for entry in (entry for line in lines for entry in line.entries):
            assert entry.ours in printed
            assert entry.ours in markdown
            assert f">{entry.ours}</span>" in page
        label = f"tab:toy-holdouts-holdouts-{summary.family}"
        assert rf"\label{{{label}}}" in latex
        assert rf"\label{{{label}-advantages}}" in latex


def test_the_layout_shows_means_wins_and_the_worst_environment(summaries: list[HoldoutSummary]) -> None:
    layout = lay_out_holdouts(summaries[0])
    assert layout.heads == ("NLL ↓", "best in", "worst in")
    assert layout.p_head == "p (NLL)"
    eber = next(line for line in layout.lines if line.label == "EBER")
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}", eber.entries[0].ours)
    assert eber.entries[0].best
    assert eber.entries[1].ours == "3 of 3"
    assert re.fullmatch(r"[abc] \(0\.2\d\d\)", eber.entries[2].ours)
    advantages = lay_out_advantages(summaries[0])
    assert advantages.heads == ("a", "b", "c", "mean", "95 % interval")
    assert [line.label for line in advantages.lines] == ["Bayes-x", "ERM", "V-REx", "EBER (uniform test weights)"]
    assert advantages.lines[0].entries[3].ours.startswith("−"), "nobody beats the oracle"
    assert advantages.lines[0].entries[4].ours == "–", "nor is it tested"
    erm = next(row.comparison for row in summaries[0].rows if row.label == "ERM")
    assert erm is not None
    assert erm.low < 0.3 < erm.high
    assert advantages.lines[1].entries[4].ours == f"{erm.low:+.3f} to {erm.high:+.3f}"


def test_latex_stays_balanced_and_ascii(out: Path) -> None:
    text = (out / "table.tex").read_text()
    assert text.isascii()
    tables = text.split(r"\end{table}")[:-1]
    assert len(tables) == 6 + 2 * 2
    for table in tables:
        columns = len(re.search(r"\{(lc+)\}", table)[1])  # type: ignore[index]
        assert {line.count("&") for line in table.splitlines() if line.endswith(r"\\")} == {columns - 1}


@needs_tex
def test_latex_of_holdouts_compiles_and_fits(out: Path, tmp_path: Path) -> None:
    assert_compiles_and_fits((out / "table.tex").read_text(), tmp_path)


def test_the_page_has_the_words_the_figure_and_a_way_to_them(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert '<a href="#holdouts-2">Summary over holdouts: regions</a>' in page
    assert '<section id="holdouts-2">' in page
    assert "The units of these tests are the 2 environments, not seeds." in page
    assert "Ward c is &lt;small&gt;." in page
    assert "NLL by method and held-out environment. Means over environments: Bayes-x" in page
    for family in ("wards", "regions"):
        assert (out / "figures" / f"holdouts-{family}.png").exists()
    assert page.index("Summary over holdouts: regions</h2>") < page.index("How to reproduce this</h2>")


def test_the_figure_has_every_method_in_every_environment(summaries: list[HoldoutSummary]) -> None:
    (axes,) = draw_holdouts(summaries[0]).figure.axes
    shown = {str(line.get_label()): list(np.asarray(line.get_xdata())) for line in axes.lines}
    marks = {label: values for label, values in shown.items() if not label.startswith("_")}
    assert list(marks) == ["a", "b", "c", "mean"]
    for name in "abc":
        assert marks[name] == [row.by_environment[name] for row in summaries[0].rows]
    assert marks["mean"] == [row.mean for row in summaries[0].rows]
    assert axes.get_xscale() == "linear"


def test_one_environment_far_off_does_not_squeeze_the_others(summaries: list[HoldoutSummary]) -> None:
    row = summaries[0].rows[2]
    far = type(row)(**{**vars(row), "by_environment": {**row.by_environment, "b": 23.0}})
    drawn = draw_holdouts(type(summaries[0])(**{**vars(summaries[0]), "rows": (*summaries[0].rows[:2], far)}))
    assert drawn.figure.axes[0].get_xscale() == "log"
    assert "The axis is logarithmic." in drawn.caption


def test_a_run_of_the_default_settings_has_no_summary(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", NAME, "--seeds", "1", "--methods", "ERM", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for text in (done.stdout, *((tmp_path / name).read_text() for name in ("table.md", "table.tex", "report.html"))):
        assert "Summary over holdouts" not in text


@needs_browser
def test_a_browser_shows_and_prints_it_without_complaint(out: Path, tmp_path: Path) -> None:
    assert_shown_and_printed(out / "report.html", tmp_path)
