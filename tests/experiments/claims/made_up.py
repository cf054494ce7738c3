"""Evidence made up for the tests of the judges."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from eber.experiments.claims.evidence import Evidence
from eber.experiments.claims.measuring import measure
from eber.experiments.registry import find_experiment
from eber.runs.collect import CELLS_COLUMNS, FINDINGS_COLUMNS, TIMINGS_COLUMNS, WARNINGS_COLUMNS
from eber.runs.results import Results

_FOLDER = tempfile.TemporaryDirectory(prefix="eber-")
"""Where the results would lie: reading one makes the folder of its cells. Removed when the tests end."""
Scores = Mapping[tuple[str, str, str], Sequence[float]]
"""(setting, method or "method|variant", metric) to the score under each seed."""


def results(experiment: str, scores: Scores) -> Results:
    """A folder with these scores."""
    rows = []
    for (setting, row, metric), values in scores.items():
        method, _, variant = row.partition("|")
        rows += [(experiment, setting, method, variant or "main", seed, metric, v) for seed, v in enumerate(values)]
    return Results(
        find_experiment(experiment),
        Path(_FOLDER.name),
        pd.DataFrame(rows, columns=list(CELLS_COLUMNS)),
        pd.DataFrame(columns=list(TIMINGS_COLUMNS)),
        pd.DataFrame(columns=list(WARNINGS_COLUMNS)),
        pd.DataFrame(columns=list(FINDINGS_COLUMNS)),
        {"overrides": {}, "data": "", "versions": {"eber": "0.1.0"}},
    )


def evidence(experiment: str, scores: Scores) -> Evidence:
    """What such a folder would give."""
    return measure(results(experiment, scores), "2026-01-31")


def around(mean: float, n: int = 5, spread: float = 0.002) -> list[float]:
    """Scores with that mean, which scatter a little."""
    return [mean + spread * (k - (n - 1) / 2) * (-1) ** k for k in range(n)]


def table(setting: str, metric: str, **means: float) -> dict[tuple[str, str, str], list[float]]:
    """Scores of methods by name (V_REx for V-REx); spreads differ, so that no two differences are constant."""
    return {
        (setting, method.replace("V_REx", "V-REx"), metric): around(mean, spread=0.001 * (k + 1))
        for k, (method, mean) in enumerate(means.items())
    }


def keep_arrays(monkeypatch: pytest.MonkeyPatch, arrays: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    """Have every folder hold these arrays of each method, under every seed."""
    monkeypatch.setattr(Results, "arrays", lambda self, method, seed, setting=None: dict(arrays[method]))


def rights(*rows: str) -> NDArray[np.bool_]:
    """Whether each row is right: 110 for right, right, wrong."""
    return np.array([letter == "1" for letter in "".join(rows)])
