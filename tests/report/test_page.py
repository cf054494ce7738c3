"""The report is one file that needs nothing else, and says what the tables say."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from eber.experiments.parametric import EXPERIMENT as PARAMETRIC
from eber.report.alike_warnings import usual_warnings
from eber.report.figures import style
from eber.report.page import write_report
from eber.runs.figure import ReportFigure
from eber.runs.progress import Progress
from eber.runs.results import Results, load_results
from eber.runs.runner import run
from tests.browser import assert_shown_and_printed, needs_browser
from tests.toy_experiment import TOY, run_cell


def draw_figures(results: Results) -> Sequence[ReportFigure]:
    """A figure of an experiment's own, from the arrays that a cell kept."""
    with style():
        figure = Figure()
        figure.subplots().plot(results.arrays("EBER", 0)["draws"])
    return [ReportFigure("draws", figure, "Draws of the <first> seed.", "Five draws.", "baseline")]


EXPERIMENT = dataclasses.replace(TOY, figures=draw_figures)


class Page(HTMLParser):
    """Collects what a test asks about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.words = " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag and where it points."""
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that closes itself."""
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Tags close in order."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text.append(data)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report."""
    out = tmp_path_factory.mktemp("page")
    run(
        EXPERIMENT,
        out=out,
        seeds=3,
        overrides={"repeats": "7", "warning_method": "ERM"},
        progress=Progress(),
        command="eber reproduce toy --seeds 3 --set repeats=7",
    )
    write_report(load_results(EXPERIMENT, out))
    return out


@pytest.fixture(scope="module")
def page(out: Path) -> Page:
    """The page, parsed."""
    page = Page((out / "report.html").read_text())
    assert page.open == []
    return page


def test_everything_is_written(out: Path) -> None:
    names = {str(path.relative_to(out)) for path in out.rglob("*") if "cells/" not in str(path) and path.is_file()}
    figures = {
        f"figures/{name}{suffix}"
        for name in ("draws", "scores-baseline", "scores-shift=0.1")
        for suffix in (".png", ".svg")
    }
    assert names == figures | {
        "cells.csv",
        "timings.csv",
        "warnings.csv",
        "findings.csv",
        "run.json",
        "table.md",
        "table.tex",
        "report.html",
    }


def test_the_page_refers_to_nothing_outside_itself(page: Page) -> None:
    assert not {"script", "link", "iframe", "img", "object"} & set(page.tags)
    assert page.references
    assert all(reference.startswith(("#", "data:")) for reference in page.references)


def test_the_page_says_what_a_reader_asks(page: Page) -> None:
    for words in (
        "A toy",
        "Numbers drawn from the seed.",
        "The NLL of EBER is significantly better than that of",
        "over 3 seeds",
        "0.319 ± 0.030",
        "of the paper's standard deviations below its 0.319 ± 0.030 in Table 1 (better).",
        "95\xa0% interval".replace("\xa0", " "),
        "Draws of the <first> seed.",
        "A first paragraph with <b>, code and emphasis .",
        "A third one, on a shift.",
        "eber reproduce toy --seeds 3 --set repeats=7",
        "default 3",
        "Setting shift=0.1: shift = 0.1.",
        "torch 2",
        "ERM baseline 3 RuntimeWarning: the fit of seed 0 looks odd",
    ):
        assert words in page.words, words
    assert "A second one" not in page.words, "the ablation that it speaks of was not run"
    assert "b" not in page.tags, "texts are escaped"
    assert page.tags.count("svg") == 3


def test_a_report_without_ablations_does_not_speak_of_them(tmp_path: Path) -> None:
    parameters = {**PARAMETRIC.parameters, **TOY.parameters}
    small = dataclasses.replace(PARAMETRIC, parameters=parameters, run_cell=run_cell, figures=None)
    run(small, out=tmp_path, seeds=2, methods=["EBER", "ERM"], progress=Progress())
    words = Page(write_report(load_results(small, tmp_path)).read_text()).words
    assert "EBER here is the default recipe of this library" in words
    for name in (*PARAMETRIC.ablations, "Variants 5 and 7", "ablation", "With 100 rows an environment"):
        assert name not in words, name


def test_a_report_is_a_function_of_its_folder(out: Path) -> None:
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    write_report(load_results(EXPERIMENT, out))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_one_seed_is_reported_without_a_test(tmp_path: Path) -> None:
    run(TOY, out=tmp_path, seeds=1, settings=["shift=0.1"], progress=Progress())
    text = Page(write_report(load_results(TOY, tmp_path)).read_text()).words
    assert "one seed cannot show a spread" in text
    assert "nan" not in text


def test_an_empty_folder_is_not_reported(tmp_path: Path) -> None:
    run(TOY, out=tmp_path, seeds=1, methods=["ERM"], overrides={"broken_method": "ERM"}, progress=Progress())
    with pytest.raises(ValueError, match="no finished cell of 'toy'"):
        write_report(load_results(TOY, tmp_path))


@needs_browser
def test_a_browser_shows_and_prints_it_without_complaint(out: Path, tmp_path: Path) -> None:
    assert_shown_and_printed(out / "report.html", tmp_path)


def test_a_figure_stands_with_its_setting(page: Page) -> None:
    words = page.words
    assert words.index("Draws of the <first> seed.") < words.index("NLL by method, shift=0.1.")


def test_a_warning_of_most_fits_stands_with_the_scores(page: Page) -> None:
    """ERM warns under each seed; below the table of its setting, before the next."""
    sentence = "ERM (3 of 3 seeds) warned, as in the first of them:"
    assert page.words.index(sentence) < page.words.index("NLL by method, baseline.")


def test_methods_that_warn_alike_are_told_together(out: Path) -> None:
    """And what the leak audit warns of stands there already."""
    results = load_results(EXPERIMENT, out)
    ours = results.warnings[results.warnings["setting"] == "baseline"]
    alike = ours.assign(method="V-REx", message=ours["message"].str.replace("1", "2"))
    leaks = ours.assign(message="LeakWarning: 3 rows")
    both = dataclasses.replace(results, warnings=pd.concat([ours, alike, leaks]))
    (sentence,) = usual_warnings(both, "baseline")
    assert sentence.startswith("ERM (3 of 3 seeds) and V-REx (3 of 3 seeds) warned, as in the first of them: ")


def test_a_warning_of_few_fits_stays_at_the_bottom(out: Path) -> None:
    results = load_results(EXPERIMENT, out)
    rare = dataclasses.replace(results, warnings=results.warnings[results.warnings["seed"] == 0])
    assert len(usual_warnings(results, "baseline")) == 1
    assert usual_warnings(rare, "baseline") == []
