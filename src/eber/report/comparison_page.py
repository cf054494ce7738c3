"""The page of a comparison: one HTML file that needs no network and answers a reader's questions in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eber.compare.column_summary import summarise_columns
from eber.compare.record import ComparisonRecord
from eber.compare.summary import ComparisonSummary
from eber.evaluation.metrics import METRICS
from eber.io.files import write_atomically
from eber.report import comparison_answers as answers
from eber.report import use_answers as use
from eber.report.alike_warnings import NUMBERS_AND_NAMES, alike_warnings
from eber.report.charts import SYMBOLS, library
from eber.report.chosen_settings import choices_by_method
from eber.report.column_charts import importance_chart, importance_map
from eber.report.comparison_tables import fold_table, ranking, ranking_caption, shown_methods
from eber.report.environment_charts import class_marks, latent_charts, resemblance_chart, uncertainty_chart
from eber.report.glossary import comparison_terms
from eber.report.held_out import HeldOut
from eber.report.new_environment import new_environment
from eber.report.page import PAGE_FILE
from eber.report.score_charts import calibration_charts, fold_chart, ranking_chart
from eber.report.templates import render
from eber.report.thresholds import (
    counts_as_json,
    decision_chart,
    first_threshold,
    threshold_counts,
    threshold_lines,
)
from eber.runs.results import Results

PAGE_METRICS = ("nll", "accuracy", "ece", "brier", "auroc")
MAX_SHOWN_ENVIRONMENTS = 60
"""Longer lists of environments are cut in the page; the scores' file has them all."""

MAX_THRESHOLD_CLASSES = 10
TOO_MANY_CLASSES = (
    f"Thresholds and decision curves are shown for up to {MAX_THRESHOLD_CLASSES} classes, each against the others."
)
SECTIONS = {
    "method": "Which method should I use, and how sure is that?",
    "expectation": "How will it do in a new environment?",
    "trust": "Can I trust its probabilities?",
    "distance": "How far off may it be in a new environment?",
    "action": "Does it help to act on it, and from which probability on?",
    "columns": "Which columns matter, and do they matter everywhere?",
    "labels": "How many labels of a new environment buy how much?",
    "adaptation": "Should I adapt it to a new environment?",
    "resemblance": "Which environments resemble each other?",
    "uncertainty": "Where does uncertainty come from?",
    "suspicious": "What is suspicious in the data?",
    "compared": "What was compared",
    "words": "Words of this page",
}


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
    advised = summary.recommended.method
    heads, lines = ranking(summary, PAGE_METRICS)
    fold_methods = shown_methods(summary)
    columns = summarise_columns(held.importance(advised))
    thresholds = _thresholds(held, record)
    elsewhere = new_environment(held, record)
    said = {
        "reference": use.reference(summary),
        "expectation": answers.expectation(summary),
        "adaptation": use.adaptation(summary),
        "trust": answers.trust(held),
        "distance": elsewhere.distance,
        "labels": elsewhere.labels,
        "action": thresholds["answer"] if thresholds else TOO_MANY_CLASSES,
        "columns": use.importance(columns, advised),
        "resemblance": answers.resemblance(held),
        "own_uncertainty": use.own_uncertainty(held),
        "uncertainty": answers.uncertainty(held),
        "suspicion": answers.suspicion(record.suspicions),
    }
    page = results.folder / PAGE_FILE
    content = render(
        "comparison.html",
        record=record,
        choices=choices_by_method(chosen),
        fit_command=fit_command,
        sections={name: title for name, title in SECTIONS.items() if said.get(name) != ""},
        badge=use.badge(summary),
        spelled={f"{metric.label} {metric.arrow}": metric.full_name for metric in METRICS.values()},
        summary=summary,
        metric=summary.metric,
        title=results.experiment.title,
        heads=heads,
        lines=lines,
        caption=ranking_caption(summary),
        folds=fold_table(summary, fold_methods),
        fold_methods=fold_methods,
        answers=said,
        of_eber=use.of_eber(summary),
        thresholds=thresholds,
        elsewhere=elsewhere,
        charts={
            "ranking": ranking_chart(summary),
            "folds": fold_chart(held),
            "calibration": calibration_charts(held, list(record.classes)),
            "distance": elsewhere.distance_chart,
            "decision": thresholds["chart"] if thresholds else None,
            "importance": importance_chart(columns, advised) if columns else None,
            "importance_map": importance_map(columns, summary.folds) if columns else None,
            "resemblance": resemblance_chart(held),
            "latent": latent_charts(held, record.classes),
            "uncertainty": uncertainty_chart(held),
        },
        marks=[{**mark, "text": SYMBOLS[mark["symbol"]]} for mark in class_marks(record.classes)],
        library=library(),
        environments=list(record.environments.items())[:MAX_SHOWN_ENVIRONMENTS],
        hidden_environments=max(len(record.environments) - MAX_SHOWN_ENVIRONMENTS, 0),
        warnings=_warnings(results),
        terms=comparison_terms(),
        run=results.run,
    )
    write_atomically(page, content)
    return page


def _thresholds(held: HeldOut, record: ComparisonRecord) -> dict[str, Any]:
    """What the section on thresholds shows of the advised method; nothing for too many classes."""
    n = len(record.classes)
    if n > MAX_THRESHOLD_CLASSES:
        return {}
    method = held.summary.recommended.method
    wanted = [1] if n == 2 else list(range(n))  # of two classes the second is the event
    counts = [threshold_counts(held, method, k) for k in wanted]
    percent = first_threshold(counts[0][0])
    names = [record.classes[k] for k in wanted]
    return {
        "percent": percent,
        "classes": names,
        "lines": threshold_lines(counts[0], percent),
        "json": counts_as_json(names, counts),
        "chart": decision_chart(counts[0][0], method, percent),
        "answer": use.action(counts[0], method, f"{record.label} = {names[0]}", percent),
    }


def _warnings(results: Results) -> list[dict[str, Any]]:
    """Warnings by method, each kind shown by its first."""
    groups = alike_warnings(results.warnings, ["method"], NUMBERS_AND_NAMES)
    return [{**group.iloc[0].to_dict(), "fits": len(group)} for group in groups]
