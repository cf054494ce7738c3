"""What a comparison is about, kept beside its scores, so that a report can be written without the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eber.compare import methods
from eber.compare.folds import FoldPlan
from eber.compare.methods import Effort
from eber.compare.running import comparison
from eber.compare.suspicions import Suspicion
from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import write_atomically
from eber.io.text import natural_order
from eber.runs.own_folder import RUN_FILE
from eber.runs.results import Results, load_results
from eber.runs.runner import GIVE_COMMAND_AGAIN
from eber.runs.spec import Experiment
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.training import TrainingTable

RECORD_FILE = "comparison.json"
FIRST_LOOK = (
    "A first look (quick): training was short and no settings were searched. Compare without it before you decide."
)
RECORD_FORMAT, RECORD_VERSION = "eber-comparison", 4


@dataclass(frozen=True)
class ComparisonRecord:
    """What was compared.

    Parameters
    ----------
    table : str
        Name of the file.
    label, environment : str
    drop : list of str
    features : list of str or None
        As the user gave them.
    choices : mapping
        What the user said about kinds of columns, missing values and classes.
    reading : mapping
        How the table is read.
    steps, search_folds : int
        The effort of a fit.
    metric : str
        The one that methods are ranked by.
    n_rows : int
    classes : list of str
        Of two, the positive one last.
    environments : mapping
        Environment to the number of its rows of each class.
    kinds : mapping
        Feature to its kind.
    folds : mapping
        Fold to its environments.
    blocks : list of list of str
        Environments that are left out together while settings are tried.
    remarks, notes : list of str
        About folds, and about columns and rows.
    suspicions : list of Suspicion
        What may be wrong with the data.
    data : str
        Fingerprint of the bytes that the table was read from.
    passes : int, optional
        Passes over the training rows, where the user said how many.
    sample_of, sample_remark : str
        Where a sample was compared: the path of the table, and what is said of the sample. Empty otherwise.
    is_prepared : bool
        Whether that path is a prepared table's.
    """

    table: str
    label: str
    environment: str
    drop: Sequence[str]
    features: Sequence[str] | None
    choices: Mapping[str, Any]
    reading: Mapping[str, str]
    steps: int
    search_folds: int
    metric: str
    n_rows: int
    classes: Sequence[str]
    environments: Mapping[str, Mapping[str, int]]
    kinds: Mapping[str, str]
    folds: Mapping[str, Sequence[str]]
    blocks: Sequence[Sequence[str]]
    remarks: Sequence[str]
    notes: Sequence[str]
    suspicions: Sequence[Suspicion]
    data: str = ""
    passes: int | None = None
    sample_of: str = ""
    sample_remark: str = ""
    is_prepared: bool = False

    @property
    def weight(self) -> str:
        """The column that says how much each row counts; empty for none."""
        return self.choices.get("weight") or ""

    @property
    def effort(self) -> Effort:
        """How much work went into a fit."""
        return Effort(self.steps, self.search_folds, self.passes)

    @property
    def caution(self) -> str:
        """What stands above everything that a quick look, or one at a sample, has to say; empty otherwise."""
        return " ".join(filter(None, [self.sample_remark, FIRST_LOOK if self.effort == methods.QUICK else ""]))

    @property
    def experiment(self) -> Experiment:
        """The comparison, declared."""
        return comparison(
            self.folds,
            [tuple(block) for block in self.blocks],
            label=self.label,
            environment=self.environment,
            drop=self.drop,
            features=self.features,
            choices=ColumnChoices.from_json(self.choices),
            reading=Reading(**self.reading),
            effort=self.effort,
            metric=self.metric,
            data=self.data,
        )

    def results(self, folder: Path) -> Results:
        """The scores in an output folder, which must be of the table that this is about."""
        results = load_results(self.experiment, folder)
        if results.run["data"] != self.data:
            raise ValueError(
                f"{folder / RECORD_FILE} and {folder / RUN_FILE} are of different tables: a later comparison in this "
                f"folder was broken off. {GIVE_COMMAND_AGAIN}"
            )
        return results

    def save(self, folder: Path) -> None:
        """Write it into the output folder."""
        write_atomically(folder / RECORD_FILE, encode_checksummed(asdict(self), RECORD_FORMAT, RECORD_VERSION))

    @classmethod
    def load(cls, folder: Path) -> ComparisonRecord:
        """Read it from an output folder."""
        content = read_checksummed(folder / RECORD_FILE, RECORD_FORMAT, RECORD_VERSION, GIVE_COMMAND_AGAIN)
        suspicions = [Suspicion(**suspicion) for suspicion in content.pop("suspicions")]
        return cls(**content, suspicions=suspicions)


def record_comparison(
    table: TrainingTable,
    plan: FoldPlan,
    effort: Effort,
    metric: str,
    suspicions: Sequence[Suspicion],
    *,
    drop: Sequence[str],
    features: Sequence[str] | None,
    choices: ColumnChoices = NO_CHOICES,
    reading: Reading = NOTHING_SAID,
) -> ComparisonRecord:
    """What is about to be compared."""
    counts = {}
    for name in sorted(set(table.environments.tolist()), key=lambda name: natural_order(str(name))):
        own = table.environments == name
        labels, numbers = np.unique(table.y[own], return_counts=True)
        counts[str(name)] = {str(label): int(number) for label, number in zip(labels, numbers, strict=True)}
    content: dict[str, Any] = {
        "table": table.name,
        "label": table.schema.label,
        "environment": table.schema.environment,
        "drop": list(drop),
        "features": None if features is None else list(features),
        "choices": choices.to_json(),
        "reading": reading.given,
        "steps": effort.steps,
        "search_folds": effort.search_folds,
        "metric": metric,
        "n_rows": len(table),
        "classes": [str(label) for label in table.classes],
        "environments": counts,
        "kinds": {feature.name: feature.kind for feature in table.schema.features},
        "folds": {fold: list(members) for fold, members in plan.folds.items()},
        "blocks": [list(block) for block in plan.blocks],
        "remarks": list(plan.remarks),
        "notes": list(table.notes),
        "suspicions": list(suspicions),
        "data": table.fingerprint,
        "passes": effort.passes,
    }
    return ComparisonRecord(**content)
