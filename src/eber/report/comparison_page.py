"""The page of a comparison: one HTML file that needs no network and answers a reader's questions in order."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eber.compare.record import ComparisonRecord
from eber.compare.summary import ComparisonSummary
from eber.experiments.results import Results
from eber.experiments.runner import FIGURES_FOLDER
from eber.files import write_atomically
from eber.report.comparison_figures import (
    draw_calibration,
    draw_latent,
    draw_ranking,
    draw_resemblance,
    draw_uncertainty,
)
from eber.report.comparison_tables import extremes, fold_table, ranking, ranking_caption
from eber.report.figures import ReportFigure, inline_svg, save_figure
from eber.report.page import PAGE_FILE

PAGE_METRICS = ("nll", "accuracy", "ece", "brier", "auroc")
SHOWN_ENVIRONMENTS = 60
"""Longer lists of environments are cut in the page; the scores' file has them all."""


def write_comparison_page(results: Results, record: ComparisonRecord, summary: ComparisonSummary) -> Path:
    """Write the figures (PNG and SVG) and `report.html` into the output folder; returns the page."""
    figures = {
        "ranking": draw_ranking(summary),
        "calibration": draw_calibration(results, summary, record.classes),
        "resemblance": draw_resemblance(results, summary),
        "latent": draw_latent(results, summary, record.classes),
        "uncertainty": draw_uncertainty(results, summary),
    }
    heads, lines = ranking(summary, PAGE_METRICS)
    environment = Environment(
        loader=PackageLoader("eber.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = results.folder / PAGE_FILE
    content = environment.get_template("comparison.html").render(
        record=record,
        summary=summary,
        metric=summary.metric,
        title=results.experiment.title,
        heads=heads,
        lines=lines,
        caption=ranking_caption(summary),
        folds=fold_table(summary),
        extremes=extremes(summary.leader, summary.metric),
        adaptation=_adaptation(summary),
        pictures={name: _picture(figure, results.folder) for name, figure in figures.items() if figure is not None},
        environments=list(record.environments.items())[:SHOWN_ENVIRONMENTS],
        hidden_environments=max(len(record.environments) - SHOWN_ENVIRONMENTS, 0),
        warnings=_warnings(results),
        run=results.run,
    )
    write_atomically(page, content)
    return page


def _picture(figure: ReportFigure, folder: Path) -> dict[str, Any]:
    _, svg = save_figure(figure.figure, folder / FIGURES_FOLDER / figure.name)
    return {"svg": Markup(inline_svg(svg.read_text(), figure.name, figure.alternative)), "caption": figure.caption}


def _adaptation(summary: ComparisonSummary) -> str:
    """Whether adapting EBER to the held-out rows would have helped, in a sentence."""
    plain = next((row for row in summary.rows if row.method == "EBER"), None)
    if summary.adapted is None or plain is None:
        return ""
    metric = summary.metric
    before, after = plain.means[metric.name], summary.adapted.means[metric.name]
    if math.isnan(before) or math.isnan(after):
        return ""
    changed = sum(
        metric.is_better(scores[metric.name], plain.by_fold[fold][metric.name])
        for fold, scores in summary.adapted.by_fold.items()
        if fold in plain.by_fold
    )
    return (
        f"With the mixture of environments re-estimated from the held-out rows, without their labels (--adapt), EBER's "
        f"mean {metric.label} goes from {metric.format(before)} to {metric.format(after)}; it is better in {changed} "
        f"of {len(summary.adapted.by_fold)} held-out environments."
    )


def _warnings(results: Results) -> list[dict[str, Any]]:
    """Warnings by method; those that differ in numbers or names alone are one, shown by the first."""
    table = results.warnings
    kind = table["message"].str.replace(r"\d[\d.e+-]*|'[^']*'", "#", regex=True)
    return [
        {"method": method, "fits": len(group), "message": group["message"].iloc[0]}
        for (method, _), group in table.groupby(["method", kind], sort=False)
    ]
