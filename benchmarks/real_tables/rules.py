"""Scores of every row of the tables from arrays of fits: settings and weights are chosen as `compare` chooses them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.real_tables.fits import METHODS, Fits, path_of, read_fits
from benchmarks.real_tables.tables import holdouts, load
from benchmarks.real_tables.variants import BOOSTED_MIXTURE, VARIANTS
from eber.compare.methods import POOL_MEMBERS
from eber.evaluation.metrics import METRICS, score
from eber.io.files import write_atomically
from eber.methods import NO_MODEL, POOL
from eber.tables.training import TrainingTable
from eber.tuning.left_out import widest_average
from eber.tuning.pool import left_out_weights

SHOWN = ("nll", "auroc", "ece", "accuracy")
LINES = "scores.jsonl"
POOL_WITH_ERM, POOL_WITHOUT_NETWORK, EQUAL_POOL = "Pool, ERM for EBER", "Pool without a network", "Pool, equal weights"
POOLS = {
    POOL: POOL_MEMBERS,
    POOL_WITH_ERM: tuple("ERM" if member == "EBER" else member for member in POOL_MEMBERS),
    POOL_WITHOUT_NETWORK: tuple(member for member in POOL_MEMBERS if member != "EBER"),
}


def chosen(
    fits: Fits, y: NDArray[np.int64], environments: NDArray[np.str_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the kept settings say together: (n, K) of left-out training rows, (n_test, K) of held-out rows."""
    was_left_out = ~np.isnan(fits.left_out).all((0, 2))
    units = [np.flatnonzero(environments == name) for name in np.unique(environments[was_left_out])]
    kept = widest_average(fits.left_out, y, units)
    return fits.left_out[kept].mean(0), fits.proba[kept].mean(0)


def probabilities(folder: Path, name: str, table: TrainingTable, held_out: str) -> dict[str, NDArray[np.float64]]:
    """p(y|x) of the held-out rows by every row of the tables whose fits are there; columns as the sorted classes."""
    held = table.environments == held_out
    classes, environments = np.unique(table.y[~held]), table.environments[~held]
    y = np.searchsorted(classes, table.y[~held])
    found = {NO_MODEL: np.tile(np.bincount(y) / len(y), (int(held.sum()), 1))}
    left_out: dict[str, NDArray[np.float64]] = {}
    for method in (*METHODS, *VARIANTS, BOOSTED_MIXTURE):
        path = path_of(folder, name, held_out, method)
        if path.exists():
            left_out[method], found[method] = chosen(read_fits(path), y, environments)
    for pool, members in POOLS.items():
        if set(members) <= set(found):
            weights = left_out_weights(np.stack([left_out[member] for member in members]), y, environments)
            found[pool] = np.einsum("j,jnk->nk", weights, np.stack([found[member] for member in members]))
    if set(POOL_MEMBERS) <= set(found):
        found[EQUAL_POOL] = np.mean([found[member] for member in POOL_MEMBERS], 0)
    return found


def scores(folder: Path, data_dir: Path, names: list[str]) -> pd.DataFrame:
    """A line for each table, held-out environment and row, also written to the folder."""
    lines = []
    for name in names:
        table = load(name, data_dir)
        for held_out in holdouts(name, table):
            held = table.environments == held_out
            classes = np.unique(table.y[~held])
            order = np.searchsorted(classes, table.classes)
            for row, proba in probabilities(folder, name, table, held_out).items():
                values = score(table.y[held], proba[:, order], table.classes, {m: METRICS[m] for m in SHOWN})
                lines.append({"table": name, "held_out": held_out, "rows": int(held.sum()), "row": row, **values})
    write_atomically(folder / LINES, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return pd.DataFrame(lines)
