"""The page of a comparison: one HTML file that needs no network and answers a reader's questions in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eber.compare.record import ComparisonRecord
from eber.compare.summary import ComparisonSummary
from eber.io.files import write_atomically
from eber.report import comparison_answers as answers
from eber.report.alike_warnings import NUMBERS_AND_NAMES, alike_warnings
from eber.report.charts import SYMBOLS, library
from eber.report.chosen_settings import choices_by_method
from eber.report.comparison_tables import fold_table, ranking, ranking_caption
from eber.report.environment_charts import class_marks, latent_charts, resemblance_chart, uncertainty_chart
from eber.report.held_out import HeldOut
from eber.report.page import PAGE_FILE
from eber.report.score_charts import calibration_charts, fold_chart, ranking_chart
from eber.report.templates import render
from eber.runs.results import Results

PAGE_METRICS = ("nll", "accuracy", "ece", "brier", "auroc")
MAX_SHOWN_ENVIRONMENTS = 60
"""Longer lists of environments are cut in the page; the scores' file has them all."""


def write_comparison_page(
    results: Results,
    record: ComparisonRecord,
    summary: ComparisonSummary,
    chosen: list[dict[str, Any]],
    fit_command: str,
) -> Path:
    """Write `report.html` into the output folder; returns it.

    Parameters
    ----------
    chosen : list of dict
        What the searches chose (`eber.report.chosen_settings`).
    fit_command : str
        The command that fits the recommended method; empty for none.
    """
    held = HeldOut(results, summary)
    heads, lines = ranking(summary, PAGE_METRICS)
    page = results.folder / PAGE_FILE
    content = render(
        "comparison.html",
        record=record,
        choices=choices_by_method(chosen),
        fit_command=fit_command,
        summary=summary,
        metric=summary.metric,
        title=results.experiment.title,
        heads=heads,
        lines=lines,
        caption=ranking_caption(summary),
        folds=fold_table(summary),
        answers={
            "expectation": answers.expectation(summary),
            "adaptation": answers.adaptation(summary),
            "trust": answers.trust(held),
            "resemblance": answers.resemblance(held),
            "uncertainty": answers.uncertainty(held),
            "suspicion": answers.suspicion(record.suspicions),
        },
        charts={
            "ranking": ranking_chart(summary),
            "folds": fold_chart(held),
            "calibration": calibration_charts(held, list(record.classes)),
            "resemblance": resemblance_chart(held),
            "latent": latent_charts(held, record.classes),
            "uncertainty": uncertainty_chart(held),
        },
        marks=[{**mark, "text": SYMBOLS[mark["symbol"]]} for mark in class_marks(record.classes)],
        library=library(),
        environments=list(record.environments.items())[:MAX_SHOWN_ENVIRONMENTS],
        hidden_environments=max(len(record.environments) - MAX_SHOWN_ENVIRONMENTS, 0),
        warnings=_warnings(results),
        run=results.run,
    )
    write_atomically(page, content)
    return page


def _warnings(results: Results) -> list[dict[str, Any]]:
    """Warnings by method, each kind shown by its first."""
    groups = alike_warnings(results.warnings, ["method"], NUMBERS_AND_NAMES)
    return [{**group.iloc[0].to_dict(), "fits": len(group)} for group in groups]
