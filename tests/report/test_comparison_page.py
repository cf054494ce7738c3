"""The page of a comparison in a browser: it fits the window, follows the slider, prints, and runs nobody's name."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import eber
from eber.compare.methods import Effort
from eber.compare.record import ComparisonRecord
from eber.compare.summary import summarise_comparison
from eber.report.held_out import HeldOut
from eber.runs.results import load_results
from tests.browser import answer_of, filled_sheets, needs_browser

ATTACK = "<script>document.title='taken'</script>"
SITES = [*(f"s {j}" for j in range(1, 20)), ATTACK]
WIDE = """
for (const each of document.querySelectorAll("details")) each.open = true;
return [...document.querySelectorAll(".wide"), document.documentElement]
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.getAttribute("aria-label") ?? "page");
"""
MOVE = """
const slider = document.getElementById("threshold");
slider.value = PERCENT;
slider.dispatchEvent(new Event("input"));
const select = document.getElementById("threshold-environment");
select.value = 2;
select.dispatchEvent(new Event("change"));
const rows = [...document.querySelectorAll("#threshold-table tbody tr")];
return {
  title: document.title,
  table: rows.map((row) => [...row.children].map((cell) => cell.textContent)),
  curve: document.getElementById("chart-decision").data.map((trace) => trace.y[PERCENT - 1]),
};
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of twenty sites with names in need of care, and twenty columns."""
    rng = np.random.default_rng(0)
    site = np.repeat(SITES, 30)
    X = rng.normal(size=(len(site), 20))
    y = rng.random(len(site)) < 1 / (1 + np.exp(1 - 2 * X[:, 0] - X[:, 1]))
    table = pd.DataFrame(X, columns=[f"measurement {ATTACK if j == 7 else j}" for j in range(20)])
    table = table.assign(site=site, event=y.astype(int))
    folder = tmp_path_factory.mktemp("page")
    options = {"methods": ["Logistic regression", "EBER"], "quick": True, "jobs": 1, "epochs": 5}
    eber.compare_table(table, label="event", environment="site", out=folder, **options)  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="module")
def held(out: Path) -> HeldOut:
    """The predictions that the page is about."""
    results = load_results(ComparisonRecord.load(out).experiment, out)
    return HeldOut(results, summarise_comparison(results))


def test_numbered_names_stand_in_their_natural_order(out: Path) -> None:
    page = (out / "report.html").read_text()
    table = page[page.index('id="threshold-table"') :]
    names = re.findall(r'<th scope="row">(s \d+)</th>', table[: table.index("</table>")])
    assert names == SITES[:-1]


def test_as_many_passes_are_made_as_were_asked_for(out: Path, held: HeldOut) -> None:
    assert "5 passes over the training rows a fit" in (out / "report.html").read_text()
    assert held.results.experiment.parameters["passes"] == 5
    assert Effort(steps=1500, passes=7).epochs(100) == 7
    assert Effort(steps=1500).epochs(100_000) == 3


def test_names_from_a_table_are_text_wherever_they_stand(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert ATTACK not in page
    assert "</script>document" not in page
    assert "&lt;script&gt;document.title=" in page


def test_the_page_is_about_the_advised_method(out: Path, held: HeldOut) -> None:
    page, advised = (out / "report.html").read_text(), held.summary.recommended.method
    assert advised == "Logistic regression"
    for slot, says in (
        ("calibration-0", f"Calibration curve of {advised}"),
        ("decision", f"Net benefit of {advised}"),
        ("importance", f"Importance of columns for {advised}: measurement 0"),
    ):
        assert f'id="chart-{slot}" role="img" aria-label="{says}' in page
    parts = [held.predictions(advised, fold)[0][1] for fold in held.summary.folds]
    unsure = np.mean([-(p * np.log(p)).sum(axis=1).mean() for p in parts])
    assert f"The predictions of {advised} have a mean entropy of {unsure:.3f} nats" in page
    assert page.count("This is what EBER sees in the same rows") == 2, "where the page is about EBER it says so"


def test_every_section_is_in_the_contents_and_every_measure_is_spelled_out(out: Path) -> None:
    page = (out / "report.html").read_text()
    entries = re.findall(r'<li><a href="#(.*?)">(.*?)</a></li>', page)
    assert entries == re.findall(r'<section id="(.*?)">\n<h2>(.*?)</h2>', page)
    for term in ("NLL", "ECE", "AUROC", "Brier", "Net benefit", "Sensitivity", "p(e|x)"):
        assert f"<dt>{term}</dt>" in page
    assert "NLL is the negative log-likelihood (lower is better): how surprised" in page


@needs_browser
@pytest.mark.parametrize("percent", [10, 63])
def test_the_slider_gives_the_shares_that_one_counts_by_hand(
    out: Path, held: HeldOut, tmp_path: Path, percent: int
) -> None:
    found = answer_of(out / "report.html", tmp_path, MOVE.replace("PERCENT", str(percent)))
    assert found["title"] == "Predicting event in a new site"
    by_fold = {fold: held.predictions("Logistic regression", fold)[0] for fold in held.summary.folds}
    everything = tuple(np.concatenate([part[j] for part in by_fold.values()]) for j in (0, 1))
    expected = {"All together": everything, **by_fold}
    assert [line[0] for line in found["table"]] == list(expected)
    for line, (labels, proba) in zip(found["table"], expected.values(), strict=True):
        called, event = proba[:, 1] >= percent / 100, labels == 1
        for text, part, of in (
            (line[1], called, np.ones_like(called)),
            (line[2], called & event, event),
            (line[3], ~called & ~event, ~event),
            (line[4], called & event, called),
            (line[5], ~called & ~event, ~called),
        ):
            if not of.any():
                assert text == "–"
                continue
            percentage, counted = text.split(" %\n")
            assert counted == f"{part.sum()} of {of.sum()}"
            assert float(percentage) == pytest.approx(100 * part.sum() / of.sum(), abs=0.0501)
        odds = percent / (100 - percent)
        benefit = ((called & event).sum() - (called & ~event).sum() * odds) / len(called)
        assert float(line[6].replace("−", "-")) == pytest.approx(benefit, abs=0.00051)
    labels, proba = list(by_fold.values())[1]
    called, event = proba[:, 1] >= percent / 100, labels == 1
    odds = percent / (100 - percent)
    assert found["curve"] == pytest.approx(
        [
            ((called & event).sum() - (called & ~event).sum() * odds) / len(called),
            (event.sum() - (~event).sum() * odds) / len(event),
            0.0,
        ]
    )


@needs_browser
def test_nothing_needs_a_scrollbar_in_a_window_of_1300_pixels(out: Path, tmp_path: Path) -> None:
    assert answer_of(out / "report.html", tmp_path, WIDE) == []


@needs_browser
def test_a_narrow_window_scrolls_tables_and_not_the_page(out: Path, tmp_path: Path) -> None:
    assert "page" not in answer_of(out / "report.html", tmp_path, WIDE, width=500)


@needs_browser
def test_no_printed_sheet_is_half_empty(out: Path, tmp_path: Path) -> None:
    shares = filled_sheets(out / "report.html", tmp_path)
    assert len(shares) > 3
    assert min(shares[:-1]) > 0.5
