"""From a result folder to evidence: its scores, and what the judges need of the arrays that its cells kept."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eber.experiments.agreement import agreements
from eber.experiments.claims.evidence import (
    ALL_RIGHT,
    ALL_WRONG,
    RIGHT_WITH,
    RIGHT_WITHOUT,
    TAKEN_FOR,
    Evidence,
    Measured,
    Row,
)
from eber.experiments.registry import find_experiment
from eber.runs.cell import MAIN
from eber.runs.own_folder import RUN_FILE
from eber.runs.results import Results, load_results
from eber.runs.spec import Experiment

DIGITS = 6
"""Kept of a number, so that a page says the same whether it is made from results or from what was kept of them."""


def measure_folder(folder: Path, experiment: str) -> Evidence | None:
    """What the results of an experiment in a folder say; None where there are none."""
    if not (folder / RUN_FILE).exists():
        return None
    written = datetime.fromtimestamp((folder / RUN_FILE).stat().st_mtime, UTC)
    return measure(load_results(find_experiment(experiment), folder), written.date().isoformat())


def measure(results: Results, date: str) -> Evidence:
    """What results say that were written on a date. Methods that a run added are left out: the paper has no claim of
    them.
    """
    declared = replace(results, experiment=find_experiment(results.experiment.name))
    overrides, versions = results.run["overrides"], results.run["versions"]
    return Evidence(
        declared.experiment.name,
        {
            setting: Measured(
                versions["eber"],
                date,
                fingerprint(declared.experiment, setting, overrides),
                results.run["data"],
                _series(declared, setting),
            )
            for setting in declared.experiment.settings
            if setting in set(results.cells["setting"])
        },
    )


def fingerprint(experiment: Experiment, setting: str, overrides: Mapping[str, Any]) -> str:
    """A text that changes whenever a parameter of a setting does."""
    content = json.dumps([experiment.name, setting, experiment.resolve(setting, overrides)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _series(results: Results, setting: str) -> dict[Row, dict[int, float]]:
    series: dict[Row, dict[int, float]] = defaultdict(dict)
    for row, seed, value in (
        *_scores(results, setting),
        *_assignments(results, setting),
        *_agreement(results, setting),
    ):
        series[row][seed] = float(f"{value:.{DIGITS}g}")
    return dict(series)


def _scores(results: Results, setting: str) -> Iterator[tuple[Row, int, float]]:
    cells = results.cells[results.cells["setting"] == setting]
    known = cells[cells["method"].isin(results.experiment.all_methods)]
    for method, variant, metric, seed, value in zip(
        *(known[name] for name in ("method", "variant", "metric", "seed", "value")), strict=True
    ):
        yield (method, variant, metric), int(seed), value


def _assignments(results: Results, setting: str) -> Iterator[tuple[Row, int, float]]:
    """Which share of the held-out rows a method takes for which training environment, where it says so."""
    for method in results.experiment.all_methods:
        for seed in results.seeds(method, setting):
            arrays = results.arrays(method, seed, setting)
            if "assigned" not in arrays:
                continue
            counts = Counter(arrays["assigned"].tolist())
            for position, rows in sorted(counts.items()):
                environment = f"{TAKEN_FOR}{arrays['environments'][position]}"
                yield (method, MAIN, environment), seed, rows / sum(counts.values())


def _agreement(results: Results, setting: str) -> Iterator[tuple[Row, int, float]]:
    """Where methods agree, and who is right where they differ; nothing where one of the paper's methods was not run."""
    reference = results.experiment.reference_method
    if not all(results.seeds(method, setting) for method in results.experiment.methods):
        return
    for seed, one in agreements(results, setting).items():
        yield (reference, MAIN, ALL_RIGHT), seed, one.all_right
        yield (reference, MAIN, ALL_WRONG), seed, one.all_wrong
        for quantity, shares in (
            (RIGHT_WITH, one.right_with_reference),
            (RIGHT_WITHOUT, one.right_without_reference),
        ):
            for method, share in shares.items():
                yield (method, MAIN, quantity), seed, share
