"""What a run of an experiment found, as a value that shows itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from eber.io.display import html_display, html_table, rendered, text_display
from eber.report.holdout_tables import holdouts_as_rich, lay_out_holdouts
from eber.report.tables import Layout, as_rich, lay_out
from eber.runs.holdout_summary import HoldoutSummary, summarise_holdouts
from eber.runs.holdout_wording import caution, holdout_remarks, holdout_title
from eber.runs.results import Results, Summary, summarise
from eber.runs.runner import RunSummary
from eber.runs.wording import caption, deviations, verdict


@dataclass(frozen=True, repr=False)
class Reproduction:
    """An experiment of the paper, our figures beside the paper's.

    Parameters
    ----------
    results : Results
        Every score and time, as DataFrames.
    page : Path
        The page in the output folder.
    run : RunSummary, optional
        What was computed; none where an earlier run was read.
    """

    results: Results
    page: Path
    run: RunSummary | None = None

    @property
    def folder(self) -> Path:
        """The output folder."""
        return self.results.folder

    @cached_property
    def summaries(self) -> list[Summary]:
        """Every setting, summed up."""
        return summarise(self.results)

    @cached_property
    def holdouts(self) -> list[HoldoutSummary]:
        """Every family of environments that were held out in turn, summed up."""
        return summarise_holdouts(self.results.experiment, self.summaries)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Setting to its table: mean and standard deviation over seeds of every quantity, the paper's beside them."""
        return {summary.setting: _frame(summary) for summary in self.summaries}

    @property
    def verdicts(self) -> dict[str, str]:
        """Setting to how the tests came out, in a sentence."""
        return {summary.setting: verdict(summary) for summary in self.summaries}

    @property
    def failures(self) -> Mapping[str, str]:
        """Cells that failed, with the cause; the same call tries them again."""
        return self.run.failures if self.run else {}

    @property
    def exit_status(self) -> int:
        """Zero only when every cell is finished, as the command gives it."""
        return self.run.exit_status if self.run else 0

    def __repr__(self) -> str:
        parts = [self.results.experiment.title]
        for summary in self.summaries:
            parts += [rendered(as_rich(summary)), verdict(summary), *summary.remarks, *deviations(summary)]
        for family in self.holdouts:
            parts += [*map(rendered, holdouts_as_rich(family)), *_holdout_sentences(family)]
        return text_display([*parts, *self._failed, f"Report: {self.page}"])

    def _repr_html_(self) -> str:
        parts = [_html(lay_out(summary), f"{summary.setting}. {caption(summary)}") for summary in self.summaries]
        parts += [_html(lay_out_holdouts(family), holdout_title(family)) for family in self.holdouts]
        sentences = [sentence for summary in self.summaries for sentence in (verdict(summary), *summary.remarks)]
        sentences += [sentence for family in self.holdouts for sentence in _holdout_sentences(family)]
        differing = [sentence for summary in self.summaries for sentence in deviations(summary)]
        lists = {"Tests": list(filter(None, sentences)), "Differs from the paper": differing, "Failed": self._failed}
        return html_display(self.results.experiment.title, parts, {**lists, "Report": [str(self.page)]})

    @property
    def _failed(self) -> list[str]:
        return [f"{cell}: {cause}" for cell, cause in self.failures.items()]


def _holdout_sentences(family: HoldoutSummary) -> list[str]:
    return [*filter(None, (verdict(family), caution(family), *holdout_remarks(family)))]


def _frame(summary: Summary) -> pd.DataFrame:
    lines = {}
    for row in summary.rows:
        line: dict[tuple[str, str], float] = {}
        for name, estimate in row.estimates.items():
            line |= {(name, "mean"): estimate.mean, (name, "sd"): estimate.sd}
            if estimate.paper is not None:
                line |= {(name, "paper mean"): estimate.paper[0], (name, "paper sd"): estimate.paper[1]}
        if row.comparison is not None:
            line[summary.primary.name, "p"] = row.comparison.p_corrected
        lines[row.label] = line
    frame = pd.DataFrame.from_dict(lines, orient="index")
    frame.columns = pd.MultiIndex.from_tuples(frame.columns)
    return frame.sort_index(axis=1, level=0, sort_remaining=False)


def _html(layout: Layout, words: str) -> str:
    """The table with the paper's figure behind ours."""
    heads = ["Method", *layout.heads, *([layout.p_head] if layout.p_head else [])]
    lines = [
        [
            line.label,
            *(
                f"{entry.ours} (paper {entry.paper_with_deviation})" if entry.paper else entry.ours
                for entry in line.entries
            ),
            *([line.p] if layout.p_head else []),
        ]
        for line in layout.lines
    ]
    return html_table(heads, lines, words)
