"""The unit of work, of saving and of resuming: one method under one seed in one setting."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

import eber
from eber.io.text import file_name
from eber.leaks.findings import LeakFinding

MAIN = "main"
"""The variant that is the method itself."""
ADAPTED = "adapted"
"""The variant of EBER whose mixture of environments was re-estimated from the held-out rows, without their labels."""
PENALTY_WEIGHT = "penalty_weight"
"""The name under which a cell keeps the weight that was chosen for it."""

LEAKED_ROWS = "leaked_rows"
"""The score that says how many held-out rows the leak audit found in the training data; absent without an audit."""


Part = tuple[str, str]
"""Setting and method of a cell that others are built on, of their seed or of the one that its groundwork names."""


def row_label(method: str, variant: str) -> str:
    """What a row of a table is called; the paper's figures are keyed by it."""
    return method if variant == MAIN else f"{method} ({variant})"


@dataclass(frozen=True)
class Cell:
    """One method under one seed in one setting.

    Parameters
    ----------
    experiment, setting, method : str
    seed : int
        Methods are compared seed by seed, so data must be drawn from the seed alone and not depend on the method.
    parameters : mapping
        Every parameter of the experiment, after the setting's and the user's overrides.
    data : str
        Fingerprint of the data files; empty for a simulation.
    data_dir : Path, optional
        Where the data files are. Not part of what the cell is: data may move.
    code : str
        Hash of the code of a method of the user's own; empty for the library's, whose version says as much.
    parts : mapping
        Setting and method to the finished result that the cell is built on. The run hands them over.
    circumstances : str
        The setting as a reader of progress and errors knows it, such as "Ashford held out".
    """

    experiment: str
    setting: str
    method: str
    seed: int
    parameters: Mapping[str, Any]
    data: str = ""
    data_dir: Path | None = field(default=None, compare=False)
    code: str = ""
    parts: Mapping[Part, CellResult] = field(default_factory=dict, compare=False)
    circumstances: str = field(default="", compare=False)

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from the other cells of a run."""
        return self.setting, self.method, self.seed

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the cell's result, as plain data."""
        return {
            "experiment": self.experiment,
            "setting": self.setting,
            "method": self.method,
            "seed": self.seed,
            "parameters": {
                key: list(value) if isinstance(value, tuple) else value for key, value in self.parameters.items()
            },
            "data": self.data,
            "version": eber.__version__,
            **({"code": self.code} if self.code else {}),
        }

    @property
    def file_stem(self) -> str:
        """Name of the cell's files: readable, and different wherever the identity is."""
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()
        words = (self.method, f"seed{self.seed}", self.setting)
        return "-".join([*(file_name(word, "_")[:40] for word in words), digest[:16]])

    def __str__(self) -> str:
        return f"{self.method}, seed {self.seed}, {self.circumstances or f'setting {self.setting}'}"


@dataclass(frozen=True)
class CellResult:
    """What a cell gives back.

    Parameters
    ----------
    scores : mapping
        Variant to metric to value; none of a cell that others are built on. The variant `MAIN` is the method itself;
        one fit may give others as well (the same model predicting with other weights). Metrics beyond the experiment's
        are kept in `cells.csv` only.
    seconds : mapping
        Variant to wall time.
    arrays : mapping
        Named arrays (predictions, figure data), kept beside the cell.
    findings : tuple of LeakFinding
        What the leak audit found, where the cell made one.
    """

    scores: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    findings: tuple[LeakFinding, ...] = ()
