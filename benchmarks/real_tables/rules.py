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
from eber.evaluation.metrics import score
from eber.io.files import write_atomically
from eber.methods import NO_MODEL, POOL
from eber.tables.training import TrainingTable
from eber.tuning.grids import NETWORK
from eber.tuning.left_out import losses, widest_average
from eber.tuning.pool import left_out_weights

SHOWN = ("nll", "auroc", "ece", "accuracy")
LINES = "scores.jsonl"
POOL_WITH_ERM, POOL_WITHOUT_NETWORK, EQUAL_POOL = "Pool, ERM for EBER", "Pool without a network", "Pool, equal weights"
DEFAULT_WIDTH = {"EBER": "EBER, default width", "ERM": "ERM, default width"}
"""What variants are compared with: they were not tried with a wider network."""
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


def probabilities(
    folder: Path, name: str, table: TrainingTable, held_out: str
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """p(y|x) of the held-out rows, and of training rows while they were left out, by every row of the tables whose fits
    are there; columns as the sorted classes.
    """
    y, environments = training_labels(table, held_out)
    n_held, K = len(table.y) - len(y), int(y.max()) + 1
    found = {NO_MODEL: np.tile(np.bincount(y, minlength=K) / len(y), (n_held, 1))}
    left_out: dict[str, NDArray[np.float64]] = {}
    for method in (*METHODS, *VARIANTS, BOOSTED_MIXTURE):
        path = path_of(folder, name, held_out, method)
        if not path.exists():
            continue
        fits = read_fits(path)
        if method in VARIANTS:
            fits = _of_default_width(fits)
        left_out[method], found[method] = chosen(fits, y, environments)
        if method in DEFAULT_WIDTH:
            row = DEFAULT_WIDTH[method]
            left_out[row], found[row] = chosen(_of_default_width(fits), y, environments)
    for pool, members in POOLS.items():
        if set(members) <= set(found):
            weights = left_out_weights(np.stack([left_out[member] for member in members]), y, environments)
            for said in (left_out, found):
                said[pool] = np.einsum("j,jnk->nk", weights, np.stack([said[member] for member in members]))
    if set(POOL_MEMBERS) <= set(found):
        for said in (left_out, found):
            said[EQUAL_POOL] = np.mean([said[member] for member in POOL_MEMBERS], 0)
    return found, left_out


def training_labels(table: TrainingTable, held_out: str) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """The place of each training row's label among the sorted classes, and its environment."""
    train = table.environments != held_out
    return np.unique(table.y[train], return_inverse=True)[1], table.environments[train]


def _of_default_width(fits: Fits) -> Fits:
    return Fits(fits.left_out[: len(NETWORK)], fits.proba[: len(NETWORK)], fits.seconds)


def _left_out_nll(proba: NDArray[np.float64], y: NDArray[np.int64], environments: NDArray[np.str_]) -> float:
    """The mean over environments of the NLL of their rows while they were left out."""
    known = ~np.isnan(proba).any(1)
    units = [np.flatnonzero((environments == name) & known) for name in np.unique(environments[known])]
    return float(losses(proba[None], y, units).mean())


def scores(folder: Path, data_dir: Path, names: list[str]) -> pd.DataFrame:
    """A line for each table, held-out environment and row, also written to the folder."""
    lines = []
    for name in names:
        table = load(name, data_dir)
        for held_out in holdouts(name, table):
            held = table.environments == held_out
            classes = np.unique(table.y[~held])
            order = np.searchsorted(classes, table.classes)
            found, left_out = probabilities(folder, name, table, held_out)
            y, environments = training_labels(table, held_out)
            for row, proba in found.items():
                values = score(table.y[held], proba[:, order], table.classes, SHOWN)
                line = {"table": name, "held_out": held_out, "rows": int(held.sum()), "row": row, **values}
                inside = _left_out_nll(left_out[row], y, environments) if row in left_out else None
                lines.append(line | {"left_out_nll": inside})
    write_atomically(folder / LINES, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return pd.DataFrame(lines)
