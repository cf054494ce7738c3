"""Everything that a finished run leaves for people: tables, figures, and one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from eber.evaluation.wording import format_interval, format_p, format_signed
from eber.io.files import write_atomically
from eber.report.alike_warnings import alike_warnings, usual_warnings
from eber.report.figures import inline_svg, save_figure
from eber.report.glossary import Term, measures
from eber.report.holdout_figure import draw_holdouts
from eber.report.holdout_tables import holdouts_as_latex, holdouts_as_markdown, lay_out_advantages, lay_out_holdouts
from eber.report.latex import as_latex
from eber.report.markdown import inline_markup
from eber.report.score_figure import draw_scores
from eber.report.tables import as_markdown, lay_out
from eber.report.templates import render
from eber.runs.discussion import read_discussion
from eber.runs.figure import ReportFigure
from eber.runs.holdout_summary import HoldoutSummary, summarise_holdouts
from eber.runs.holdout_wording import (
    advantages_caption,
    caution,
    holdout_caption,
    holdout_remarks,
    holdout_title,
)
from eber.runs.own_folder import FIGURES_FOLDER
from eber.runs.results import Results, Summary, summarise
from eber.runs.wording import caption, deviations, verdict

PAGE_FILE, MARKDOWN_FILE, LATEX_FILE = "report.html", "table.md", "table.tex"


@dataclass(frozen=True)
class _Picture:
    """A figure as the page shows it."""

    svg: Markup
    caption: str


def write_report(results: Results) -> Path:
    """Write `table.md`, `table.tex`, the figures (PNG and SVG) and `report.html` into the output folder.

    Parameters
    ----------
    results : Results
        As :func:`eber.runs.results.load_results` reads them.

    Returns
    -------
    Path
        The page.
    """
    experiment, folder = results.experiment, results.folder
    summaries = summarise(results)
    if not summaries:
        raise ValueError(f"{folder} holds no finished cell of {experiment.name!r}: there is nothing to report yet.")
    holdouts = summarise_holdouts(experiment, summaries)
    write_atomically(folder / MARKDOWN_FILE, as_markdown(experiment.title, summaries) + holdouts_as_markdown(holdouts))
    write_atomically(
        folder / LATEX_FILE, as_latex(experiment.name, summaries) + holdouts_as_latex(experiment.name, holdouts)
    )
    scores = {summary.setting: _save(draw_scores(results, summary), folder) for summary in summaries}
    drawn = experiment.figures(results) if experiment.figures else ()
    figures = [(figure.setting, _save(figure, folder)) for figure in drawn]
    page = folder / PAGE_FILE
    sections = [
        _section(results, summary, scores[summary.setting], [f for setting, f in figures if setting == summary.setting])
        for summary in summaries
    ]
    overall = [_holdout_section(summary, _save(draw_holdouts(summary), folder)) for summary in holdouts]
    others = [picture for setting, picture in figures if setting not in scores]
    write_atomically(page, _render(results, sections, overall, others))
    return page


def _save(figure: ReportFigure, folder: Path) -> _Picture:
    _, svg = save_figure(figure.figure, folder / FIGURES_FOLDER / figure.name)
    return _Picture(Markup(inline_svg(svg.read_text(), figure.name, figure.alternative)), figure.caption)


def _render(
    results: Results,
    sections: Sequence[Mapping[str, Any]],
    holdouts: Sequence[Mapping[str, Any]],
    figures: Sequence[_Picture],
) -> str:
    experiment = results.experiment
    discussion, warnings, terms = _discussion(results), _warnings(results), measures(experiment.columns.values())
    return render(
        "page.html",
        experiment=experiment,
        entries=_contents(
            sections, holdouts, {"Figures": figures, "Discussion": discussion, "Warnings": warnings}, terms
        ),
        description=_paragraphs(experiment.description),
        discussion=discussion,
        sections=sections,
        holdouts=holdouts,
        figures=figures,
        warnings=warnings,
        terms=terms,
        parameters=_parameters(results),
        settings={section["setting"]: experiment.settings[section["setting"]] for section in sections},
        run=results.run,
    )


def _contents(
    sections: Sequence[Mapping[str, Any]],
    holdouts: Sequence[Mapping[str, Any]],
    parts: Mapping[str, Sequence[Any]],
    terms: Sequence[Term],
) -> list[tuple[str, str]]:
    """Name and title of every section of the page."""
    return [
        *((f"setting-{j}", section["setting"]) for j, section in enumerate(sections, start=1)),
        *((f"holdouts-{j}", section["title"]) for j, section in enumerate(holdouts, start=1)),
        *((title.lower(), title) for title, content in parts.items() if content),
        ("how", "How to reproduce this"),
        *([("words", "Words of this page")] if terms else []),
    ]


def _discussion(results: Results) -> list[Markup]:
    """The paragraphs that speak of nothing but what was run."""
    methods, settings = set(results.cells["method"]), set(results.cells["setting"])
    paragraphs = read_discussion(results.experiment)
    return [inline_markup(paragraph.text) for paragraph in paragraphs if paragraph.fits(methods, settings)]


def _section(results: Results, summary: Summary, scores: _Picture, figures: Sequence[_Picture]) -> dict[str, Any]:
    tests = _tests(summary)
    return {
        "setting": summary.setting,
        "metric": summary.primary.in_words,
        "table": lay_out(summary),
        "caption": caption(summary),
        "verdict": verdict(summary),
        "tests": tests,
        "has_reasons": any(test["reason"] for test in tests),
        "remarks": summary.remarks,
        "usual_warnings": usual_warnings(results, summary.setting),
        "deviations": deviations(summary),
        "source": summary.source,
        "scores": scores,
        "figures": figures,
    }


def _holdout_section(summary: HoldoutSummary, scores: _Picture) -> dict[str, Any]:
    return {
        "title": holdout_title(summary),
        "table": lay_out_holdouts(summary),
        "caption": holdout_caption(summary),
        "advantages": lay_out_advantages(summary),
        "advantages_caption": advantages_caption(summary),
        "verdict": verdict(summary),
        "caution": caution(summary),
        "remarks": holdout_remarks(summary),
        "scores": scores,
    }


def _tests(summary: Summary) -> list[dict[str, Any]]:
    """Rows of the table of tests: how large the advantage is, how sure, and why there is no p-value."""
    rows = []
    for row in summary.rows:
        comparison = row.comparison
        if comparison is None:
            continue
        rows.append(
            {
                "method": row.label,
                "seeds": comparison.n_units,
                "advantage": format_signed(comparison.advantage),
                "interval": format_interval(comparison.low, comparison.high),
                "p": format_p(comparison.p_value),
                "p_corrected": format_p(comparison.p_corrected),
                "reason": comparison.reason,
            }
        )
    return rows


def _warnings(results: Results) -> list[dict[str, Any]]:
    """Warnings by setting and method, each kind shown by its first."""
    groups = alike_warnings(results.warnings, ["setting", "method"])
    return [{**group.iloc[0].to_dict(), "seeds": group["seed"].nunique()} for group in groups]


def _parameters(results: Results) -> list[dict[str, Any]]:
    """Every parameter with the value that was used, and whether the user changed it."""
    overrides = results.run["overrides"]
    experiment = results.experiment
    used = experiment.resolve_overrides(overrides)
    return [
        {
            "name": name,
            "value": _text(value),
            "default": _text(experiment.parameters[name]),
            "changed": name in overrides,
        }
        for name, value in used.items()
    ]


def _text(value: Any) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, tuple) else str(value)


def _paragraphs(text: str) -> list[str]:
    return [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]
