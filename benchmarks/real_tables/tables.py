"""The tables, which of their rows are used and which of their environments are held out.

The rules were fixed before any score was seen:

- The four development tables are those on which choices were made; nothing was chosen on the other six, nor, but for
  one choice on seven of them (docs/new-environments.md), on the tables from packages.
- A table of more than `MAX_ROWS` rows is thinned: the same share of each environment's rows, drawn at random once.
- Of the environments that `eber compare` would hold out, sorted by their number of rows, three are held out of a
  development table and two of microbiomehd, quasar and the tables from packages, spread evenly from the smallest to
  the largest; of the others the largest alone.
- Variants are fitted without the second of these, or the only one.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.real_tables.package_tables import PACKAGE_TABLES
from eber.compare.folds import plan_folds
from eber.datasets.quasar import load_quasar
from eber.datasets.sepsis import load_sepsis
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, read_training_table

DEVELOPMENT = ("heart", "bike", "crime", "hotel")
CONFIRMATION = ("microbiomehd", "crc_shotgun", "wisdm", "sdss14", "quasar", "sepsis")
MAX_ROWS = 3000
HOLDOUTS = dict.fromkeys(DEVELOPMENT, 3) | dict.fromkeys(("microbiomehd", "quasar", *PACKAGE_TABLES), 2)
"""Environments held out, by table; of the others one, since processor time was short."""


@cache
def load(name: str, data_dir: Path) -> TrainingTable:
    """A table as `eber compare` reads it, thinned."""
    if name in PACKAGE_TABLES:
        return _training_table(PACKAGE_TABLES[name]())
    if name == "quasar":
        data = load_quasar(data_dir / "sdss")
    elif name == "sepsis":
        data = load_sepsis(data_dir / "sepsis")
    else:
        return _training_table(pd.read_parquet(data_dir / "tables" / f"{name}.parquet"))
    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    return _training_table(frame.assign(label=data.y, environment=data.environments))


def _training_table(frame: pd.DataFrame) -> TrainingTable:
    share = min(1.0, MAX_ROWS / len(frame))
    rng = np.random.default_rng(0)
    rows = [
        rng.permutation(own)[: math.ceil(share * len(own))]
        for _, own in sorted(frame.groupby("environment").indices.items())
    ]
    return read_training_table(frame.iloc[np.sort(np.concatenate(rows))], label="label", environment="environment")


def holdouts(name: str, table: TrainingTable) -> list[str]:
    """The environments that are held out, one at a time, from the smallest to the largest."""
    folds = [members[0] for members in plan_folds(table.y, table.environments).folds.values() if len(members) == 1]
    by_size = sorted(folds, key=lambda name: ((table.environments == name).sum(), name))
    if name not in HOLDOUTS:
        return by_size[-1:]
    return [by_size[position] for position in np.linspace(0, len(by_size) - 1, HOLDOUTS[name]).round().astype(int)]


def prepared(table: TrainingTable, held_out: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Training rows and held-out rows, both as the training rows alone say; whether a row is held out."""
    held = table.environments == held_out
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    preprocessing = Preprocessing.fit(table.columns.select(train), table.schema)
    X, X_test = (preprocessing.transform(table.columns.select(rows)) for rows in (train, test))
    return X, X_test, held


def variant_holdouts(name: str, table: TrainingTable) -> list[str]:
    """The one on which EBER's variants are compared."""
    return holdouts(name, table)[:2][-1:]
