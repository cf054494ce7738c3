"""What a comparison found, as a value that shows itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from eber.compare.record import ComparisonRecord
from eber.compare.summary import ComparisonSummary, MethodSummary
from eber.io.display import html_display, html_table, text_display, text_table
from eber.report.comparison_tables import TERMINAL_METRICS, dispensable, ranking, ranking_caption
from eber.runs.runner import RunSummary

HTML_METRICS = ("nll", "accuracy", "ece", "brier", "auroc")


@dataclass(frozen=True, repr=False)
class TableComparison:
    """Every method on a table, each environment held out in turn.

    Parameters
    ----------
    record : ComparisonRecord
        What was compared.
    summary : ComparisonSummary
        The methods, best first, with intervals and tests.
    folder, page : Path
        The output folder, and the page in it.
    fit_command : str
        The command that fits the recommended method as it was compared; empty where its model cannot be saved.
    chosen : sequence of mappings
        What the searches chose; see `settings`.
    run : RunSummary, optional
        What was computed; none where an earlier comparison was read.
    """

    record: ComparisonRecord
    summary: ComparisonSummary
    folder: Path
    page: Path
    fit_command: str = ""
    chosen: Sequence[Mapping[str, Any]] = ()
    run: RunSummary | None = None

    @property
    def verdict(self) -> str:
        """What to use, in no stronger words than the tests allow."""
        return self.summary.verdict

    @property
    def recommended(self) -> str:
        """The simplest of the leading method and those that cannot be told from it."""
        return self.summary.recommended.method

    @property
    def next_step(self) -> str:
        """How to fit the recommended method, in a sentence."""
        if not self.fit_command:
            return f"{self.recommended} has no form as plain data, so that `eber fit` cannot save it."
        return f"To fit {self.recommended} on all rows: {self.fit_command}"

    @property
    def settings(self) -> pd.DataFrame:
        """What was chosen for each method in each held-out fold: settings that were kept, or a pool's weights."""
        return pd.DataFrame(list(self.chosen))

    @property
    def ranking(self) -> pd.DataFrame:
        """Methods, best first: the mean of every metric over held-out folds; `low` and `high`, the interval of the
        mean of the ranking metric; how far `behind` the leader and the corrected `p` of that; seconds of a fit.
        """
        return pd.DataFrame([_ranked(row) for row in self.summary.rows]).set_index("method")

    @property
    def scores(self) -> pd.DataFrame:
        """Every metric of every method in every held-out fold, the mean over seeds."""
        return _by_fold(self.summary.rows)

    @property
    def adapted_scores(self) -> pd.DataFrame:
        """The same of EBER adapted to the held-out rows without their labels; empty where EBER was not compared."""
        return _by_fold([self.summary.adapted] if self.summary.adapted else [])

    @property
    def suspicions(self) -> Sequence[str]:
        """What may be wrong with the data, in sentences."""
        return [suspicion.sentence for suspicion in self.record.suspicions]

    @property
    def notes(self) -> list[str]:
        """What was decided about columns, rows and folds, in sentences."""
        return [*self.record.notes, *self.record.remarks]

    @property
    def failures(self) -> Mapping[str, str]:
        """Fits that failed, with the cause; the same call tries them again."""
        return self.run.failures if self.run else {}

    @property
    def exit_status(self) -> int:
        """Zero only when every fit is finished, as the command gives it."""
        return self.run.exit_status if self.run else 0

    def __repr__(self) -> str:
        heads, lines = ranking(self.summary, TERMINAL_METRICS)
        table = text_table(heads, lines, dispensable(heads))
        suspicions = (f"- Suspicious: {sentence}" for sentence in self.suspicions)
        below = [*suspicions, *self._unfinished, self.next_step, f"Report: {self.page}"]
        care = self.record.effort.care
        return text_display([self._title, self.record.caution, table, care, self.verdict, *below])

    def _repr_html_(self) -> str:
        table = html_table(*ranking(self.summary, HTML_METRICS), ranking_caption(self.summary))
        lists = {"Suspicious": self.suspicions, "Notes": self.notes, "Not finished": self._unfinished}
        title = " ".join(filter(None, [self._title, self.record.caution, self.verdict]))
        return html_display(title, [table], {**lists, "Next": [self.next_step], "Report": [str(self.page)]})

    @property
    def _title(self) -> str:
        record = self.record
        return f"Predicting {record.label} of {record.table} in a new {record.environment}."

    @property
    def _unfinished(self) -> list[str]:
        stopped = ["Stopped before all fits were finished; the same call goes on from here."]
        failed = [f"Failed: {fit}: {cause}" for fit, cause in self.failures.items()]
        return [*(stopped if self.run and self.run.interrupted else []), *failed]


def _ranked(row: MethodSummary) -> dict[str, Any]:
    behind, p = (math.nan, math.nan) if row.test is None else (row.test.advantage, row.test.p_corrected)
    own = {"low": row.low, "high": row.high, "behind": behind, "p": p, "seconds": row.seconds}
    return {"method": row.method, **row.means, **own}


def _by_fold(rows: Sequence[MethodSummary]) -> pd.DataFrame:
    lines = [
        {"held_out": fold, "method": row.method, **{name: scores[name] for name in row.means}}
        for row in rows
        for fold, scores in row.by_fold.items()
    ]
    return pd.DataFrame(lines)
