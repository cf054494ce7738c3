"""Claims that a table of the paper makes by what it prints in bold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eber.evaluation.metrics import find_metric
from eber.experiments.claims import judges
from eber.experiments.claims.claim import Claim
from eber.runs.spec import PaperTable

OTHERS = ("ERM", "IRM", "V-REx", "Fishr")


def printed(table: PaperTable, row: str, metric: str) -> str:
    """A figure as the paper prints it."""
    mean, sd = table.rows[row][metric]
    return f"{mean:.3f} ± {sd:.3f}"


def best(
    table: PaperTable, metric: str, key: str, where: str, place: str, experiment: str, setting: str, command: str
) -> Claim:
    """EBER is best of all methods in one metric of one table."""
    quantity = find_metric(metric)
    superlative = "highest" if quantity.higher_is_better else "lowest"
    noun = quantity.label if quantity.label.isupper() else quantity.label.lower()
    return Claim(
        f"{key}-{metric}",
        f"{where}: EBER has the {superlative} {noun} of all methods.",
        place,
        printed(table, "EBER", metric),
        experiment,
        command,
        judges.best(setting, metric),
    )


def best_in_plain_form(
    table: PaperTable,
    metric: str,
    key: str,
    where: str,
    place: str,
    experiment: str,
    setting: str,
    command: str,
    row: str,
) -> Claim:
    """The same claim of the paper's own form, which a row of its own stands for."""
    claim = best(table, metric, f"{key}-plain", f"{where}, plain form", place, experiment, setting, command)
    return replace(claim, judge=judges.best(setting, metric, row))


def best_calibrated(
    table: PaperTable, key: str, where: str, place: str, experiment: str, setting: str, command: str
) -> Iterator[Claim]:
    """EBER has the lowest ECE, where the paper's table has it in bold: a claim or none."""
    if table.rows["EBER"]["ece"][0] < min(table.rows[row]["ece"][0] for row in OTHERS):
        yield best(table, "ece", key, where, place, experiment, setting, command)
