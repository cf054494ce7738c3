"""Which runs the claims were held against: a row for each setting, so that a reader sees how old each is."""

from __future__ import annotations

from collections.abc import Mapping

from eber.experiments.claims.evidence import Evidence, Measured
from eber.experiments.claims.measuring import fingerprint
from eber.experiments.registry import find_experiment

RUNS_HEAD = ("Experiment", "Setting", "Seeds", "Version", "Date", "Parameters")
AS_DECLARED, CHANGED = "as declared", "other than are declared now"


def runs_of(evidence: Mapping[str, Evidence]) -> list[tuple[str, ...]]:
    """Cells of the table, a row for each setting of each experiment."""
    return [
        (name, setting, _seeds(measured), measured.version, measured.date, _parameters(name, setting, measured))
        for name, found in evidence.items()
        for setting, measured in found.settings.items()
    ]


def _seeds(measured: Measured) -> str:
    seeds: dict[tuple[str, str], set[int]] = {}
    for (method, variant, _), values in measured.series.items():  # not every seed takes rows for every environment
        seeds.setdefault((method, variant), set()).update(values)
    numbers = set(map(len, seeds.values()))
    fewest, most = min(numbers, default=0), max(numbers, default=0)
    return str(most) if fewest == most else f"{fewest} to {most}"


def _parameters(experiment: str, setting: str, measured: Measured) -> str:
    declared = fingerprint(find_experiment(experiment), setting, {})
    return AS_DECLARED if measured.parameters == declared else CHANGED
