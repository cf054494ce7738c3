"""What runs measured, as the judges of claims ask for it: plain numbers, whether just read from results or kept."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from eber.evaluation.metrics import Quantity, find_metric
from eber.evaluation.significance import Comparison, compare_with_reference
from eber.experiments.registry import find_experiment
from eber.runs.cell import MAIN

MIN_SEEDS = 2
"""Fewer say nothing about a spread."""
ALL_RIGHT, ALL_WRONG = "all right", "all wrong"
"""Quantities of the reference method: shares of held-out rows on which every method is right, or wrong."""
RIGHT_WITH, RIGHT_WITHOUT = "right where EBER is right", "right where EBER is wrong"
"""Quantities of another method: its share of right ones among the rows on which methods differ."""
TAKEN_FOR = "taken for "
"""Begins the quantities of a form of EBER that say which share of the held-out rows is taken for an environment."""

Row = tuple[str, str, str]
"""Method, variant and quantity."""


class MissingEvidence(LookupError):
    """The results lack a row that a claim is about."""


@dataclass(frozen=True)
class Measured:
    """What a run measured in one setting.

    Parameters
    ----------
    version : str
        Of this library, by which it was computed.
    date : str
        On which the run wrote its tables.
    parameters : str
        Fingerprint of every parameter of the setting.
    data : str
        Fingerprint of the data files; empty for a simulation.
    series : mapping
        Row to its values, by seed.
    """

    version: str
    date: str
    parameters: str
    data: str
    series: Mapping[Row, Mapping[int, float]]


@dataclass(frozen=True)
class Evidence:
    """What is known of one experiment.

    Parameters
    ----------
    experiment : str
        Its name.
    settings : mapping
        Setting to what was measured in it.
    """

    experiment: str
    settings: Mapping[str, Measured] = field(default_factory=dict)

    def by_seed(self, setting: str, method: str, quantity: str, variant: str = MAIN) -> dict[int, float]:
        """Seed to value.

        Raises
        ------
        MissingEvidence
            Where fewer than `MIN_SEEDS` seeds are there.
        """
        found = dict(self._series(setting).get((method, variant, quantity), {}))
        if len(found) < MIN_SEEDS:
            raise MissingEvidence(f"{method} in the setting {setting!r} has {len(found)} seeds; {MIN_SEEDS} are needed")
        return found

    def methods_with(self, setting: str, quantity: str) -> list[str]:
        """The methods that have a quantity."""
        return [method for method, variant, name in self._series(setting) if (variant, name) == (MAIN, quantity)]

    def shares_taken(self, setting: str, method: str) -> dict[int, dict[str, float]]:
        """Seed to the share of held-out rows that is taken for each environment.

        Raises
        ------
        MissingEvidence
            Where no seed is there.
        """
        found: dict[int, dict[str, float]] = {}
        for (name, _, quantity), values in self._series(setting).items():
            if name == method and quantity.startswith(TAKEN_FOR):
                for seed, share in values.items():
                    found.setdefault(seed, {})[quantity.removeprefix(TAKEN_FOR)] = share
        if not found:
            raise MissingEvidence(
                f"{method} in the setting {setting!r} has no seed with environments that rows are taken for"
            )
        return found

    def against(self, setting: str, reference: str, metric: str) -> Mapping[str, Comparison]:
        """The reference, EBER or a row that stands for it, against every other method of the paper's table.

        Paired by seed, and corrected over them.

        Methods that a run added are no part of it: the paper claims nothing of them.
        """
        experiment = find_experiment(self.experiment)
        others = [method for method in experiment.methods if method != experiment.reference_method]
        scores = {method: self.by_seed(setting, method, metric) for method in (reference, *others)}
        return compare_with_reference(scores, reference, higher_is_better=bool(find_metric(metric).higher_is_better))

    def _series(self, setting: str) -> Mapping[Row, Mapping[int, float]]:
        return self.settings[setting].series if setting in self.settings else {}


def shown(scores: Mapping[int, float], quantity: Quantity | str) -> str:
    """Mean ± standard deviation."""
    values = list(scores.values())
    column = find_metric(quantity) if isinstance(quantity, str) else quantity
    return f"{column.format(statistics.fmean(values))} ± {column.format(statistics.stdev(values))}"


def mean(scores: Mapping[int, float]) -> float:
    """Over seeds."""
    return statistics.fmean(scores.values())
