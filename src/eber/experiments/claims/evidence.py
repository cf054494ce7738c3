"""What the result folders of our runs hold, as the judges of claims ask for it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eber.evaluation.metrics import Quantity, find_metric
from eber.evaluation.significance import Comparison, compare_with_reference
from eber.experiments.registry import find_experiment
from eber.runs.cell import MAIN
from eber.runs.results import Results, load_results

MIN_SEEDS = 2
"""Fewer say nothing about a spread."""


class MissingEvidence(LookupError):
    """The results lack a row that a claim is about."""


@dataclass(frozen=True)
class Evidence:
    """The results of one experiment.

    Parameters
    ----------
    results : Results
    """

    results: Results

    def by_seed(self, setting: str, method: str, metric: str, variant: str = MAIN) -> dict[int, float]:
        """Seed to score.

        Raises
        ------
        MissingEvidence
            Where fewer than `MIN_SEEDS` seeds are there.
        """
        table = self.results.cells
        rows = table[
            (table["setting"] == setting)
            & (table["method"] == method)
            & (table["variant"] == variant)
            & (table["metric"] == metric)
        ]
        return self._enough(dict(zip(rows["seed"].astype(int), rows["value"], strict=True)), setting, method)

    def seconds(self, setting: str, method: str) -> dict[int, float]:
        """Seed to the seconds that a method took; fails as `by_seed` does."""
        table = self.results.timings
        rows = table[(table["setting"] == setting) & (table["method"] == method) & (table["variant"] == MAIN)]
        return self._enough(dict(zip(rows["seed"].astype(int), rows["seconds"], strict=True)), setting, method)

    def against(self, setting: str, reference: str, metric: str) -> Mapping[str, Comparison]:
        """The reference against every other method of the paper's table, paired by seed and corrected over them.

        Methods that a run added are no part of it: the paper claims nothing of them.
        """
        added = {method.name for method in self.results.experiment.added_methods}
        methods = [name for name in self.results.experiment.methods if name not in added]
        scores = {method: self.by_seed(setting, method, metric) for method in methods}
        return compare_with_reference(scores, reference, higher_is_better=bool(find_metric(metric).higher_is_better))

    def _enough(self, found: dict[int, float], setting: str, method: str) -> dict[int, float]:
        if len(found) < MIN_SEEDS:
            raise MissingEvidence(f"{method} in the setting {setting!r} has {len(found)} seeds; {MIN_SEEDS} are needed")
        return found


def read_evidence(folder: Path, experiment: str) -> Evidence | None:
    """The results of an experiment below the folder that `eber reproduce all` fills; None where there are none."""
    place = folder / experiment
    if not (place / "run.json").exists():
        return None
    return Evidence(load_results(find_experiment(experiment), place))


def shown(scores: Mapping[int, float], quantity: Quantity | str) -> str:
    """Mean ± standard deviation."""
    values = list(scores.values())
    column = find_metric(quantity) if isinstance(quantity, str) else quantity
    return f"{column.format(statistics.fmean(values))} ± {column.format(statistics.stdev(values))}"


def mean(scores: Mapping[int, float]) -> float:
    """Over seeds."""
    return statistics.fmean(scores.values())
