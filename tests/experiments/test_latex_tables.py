"""Every table that `eber reproduce` can write for LaTeX compiles, and fits the page of an article without tiny type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from eber.experiments.registry import EXPERIMENTS, find_experiment
from eber.report.holdout_tables import holdouts_as_latex
from eber.report.latex import as_latex
from eber.runs.cell import ADAPTED, MAIN, PENALTY_WEIGHT
from eber.runs.collect import TIMINGS_COLUMNS
from eber.runs.holdout_summary import summarise_holdouts
from eber.runs.results import Results, summarise
from tests.experiments.claims.made_up import results
from tests.latex import assert_compiles_and_fits, needs_tex


def every_row(name: str) -> Results:
    """Results with every setting, every row and every quantity of an experiment, after three seeds."""
    experiment = find_experiment(name)
    scores = {
        (setting, row if variant == MAIN else f"{row}|{variant}", metric): [0.25, 1.125, 0.5 + place / 100]
        for setting in experiment.settings
        for place, row in enumerate(experiment.all_methods)
        for variant in ((MAIN, ADAPTED) if row == experiment.reference_method else (MAIN,))
        for metric in (*experiment.columns, *([PENALTY_WEIGHT] if row in ("IRM", "V-REx", "Fishr") else []))
    }
    fits = scores if experiment.fits_any_method else []  # what fits nothing has no times
    times = [(name, setting, method, MAIN, 0, 123.45) for setting, method, _ in fits if "|" not in method]
    return replace(results(name, scores), timings=pd.DataFrame(times, columns=list(TIMINGS_COLUMNS)))


@needs_tex
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_table_of_an_experiment_compiles_and_fits(name: str, tmp_path: Path) -> None:
    everything = every_row(name)
    summaries = summarise(everything)
    holdouts = summarise_holdouts(everything.experiment, summaries)
    assert len(summaries) == len(everything.experiment.settings)
    assert len(holdouts) == len(everything.experiment.holdouts)
    assert_compiles_and_fits(as_latex(name, summaries) + holdouts_as_latex(name, holdouts), tmp_path)


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_no_row_and_no_figure_of_the_paper_is_lost(name: str) -> None:
    """Names may be broken over lines, and figures of the paper stand below ours."""
    for summary in summarise(every_row(name)):
        text = as_latex(name, [summary])
        words = " ".join(text.replace(r"\quad", "").replace("&", " ").replace(r"\\", " ").split())
        printed = [row for row in summary.rows if any(estimate.paper for estimate in row.estimates.values())]
        assert text.count(r"\quad paper &") == len(printed)
        for row in summary.rows:
            for part in row.label.replace("_", r"\_").split():
                assert part in words


def test_a_table_that_is_higher_than_a_page_goes_on_in_another() -> None:
    """Rows are on one page each, whole, and only the first has the caption that takes room there."""
    summary = summarise(every_row("parametric"))[0]
    first, second = as_latex("parametric", [summary]).split("\n\n")
    assert first.count(r"\\") < 45
    assert second.count(r"\\") < 50
    assert r"\caption{baseline. Mean" in first
    assert r"\label{tab:parametric-baseline}" in first
    assert r"\caption{baseline, continued.}" in second
    assert r"\label{tab:parametric-baseline-2}" in second
    assert second.count(r"\toprule") == second.count(r"\bottomrule") == 1
    assert "Method & NLL" in first
    assert "Method & NLL" in second
    start = second.split(r"\midrule")[1].strip()
    assert not start.startswith(r"\quad"), "the rest of a row"
    few = replace(summary, rows=summary.rows[:6])
    assert as_latex("parametric", [few]).count(r"\begin{table}") == 1
