"""Which environments are held out together.

- Each environment with at least `MIN_ROWS` rows is held out alone.
- Smaller ones are held out together, as one fold, if they have `MIN_ROWS` rows between them; else they are only
  trained on.
- With more than `MAX_FOLDS` environments, whole environments are dealt into `MAX_FOLDS` folds of about equal size.
- A fold is left out when the rows that remain without it would lack one of the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.blocks import Block, plan_blocks
from eber.io.text import natural_order

MIN_ROWS = 20
MAX_FOLDS = 20
MAX_SHOWN = 5


@dataclass(frozen=True)
class FoldPlan:
    """What is held out, and what had to be treated otherwise.

    Parameters
    ----------
    folds : mapping
        Name of a fold to the environments held out in it.
    remarks : tuple of str
        Environments that are small, of one class, or cannot be held out, by name.
    blocks : tuple of tuple of str
        Environments that are left out together while settings are tried (`eber.compare.blocks`).
    """

    folds: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]
    blocks: tuple[Block, ...] = ()


def plan_folds(y: NDArray[Any], environments: NDArray[Any], max_folds: int = MAX_FOLDS) -> FoldPlan:
    """Deal environments into folds.

    Parameters
    ----------
    y, environments : arrays of shape (n,)
    max_folds : int
    """
    names, counts = np.unique(environments, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            f"All rows come from environment {str(names[0])!r}; holding out an environment needs at least two."
        )
    remarks: list[str] = []
    candidates: dict[str, tuple[str, ...]]
    if len(names) > max_folds:
        candidates = _deal(names, counts, max_folds)
        remarks.append(
            f"{len(names)} environments are held out in {len(candidates)} folds of whole environments, not one by one."
        )
    else:
        large = sorted((str(name) for name in names[counts >= MIN_ROWS]), key=natural_order)
        candidates = {name: (name,) for name in large}
        small = sorted((str(name) for name in names[counts < MIN_ROWS]), key=natural_order)
        if small and counts[counts < MIN_ROWS].sum() >= MIN_ROWS and len(small) < len(names):
            candidates[f"{len(small)} small environments"] = tuple(small)
            remarks.append(f"{first_few(small)}: fewer than {MIN_ROWS} rows each, held out together.")
        elif small:
            remarks.append(f"{first_few(small)}: fewer than {MIN_ROWS} rows, trained on but not held out.")
    folds = {}
    for fold, members in candidates.items():
        lost = _classes_lost(y, environments, members)
        if lost:
            remarks.append(
                f"{fold} cannot be held out: without it no row of class {first_few(lost)} is left to learn from."
            )
        else:
            folds[fold] = members
    one_class = [str(name) for name in names if len(np.unique(y[environments == name])) == 1]
    if one_class:
        remarks.append(f"{first_few(one_class)}: all rows are of one class.")
    undefined = [fold for fold, members in folds.items() if len(np.unique(y[np.isin(environments, members)])) == 1]
    if undefined:
        remarks.append(
            f"AUROC and AUPRC are not defined where all held-out rows are of one class: {first_few(undefined)}."
        )
    if not folds:
        raise ValueError(
            f"No environment can be held out. {' '.join(remarks)} Merge small environments, or collect more rows."
        )
    return FoldPlan(folds, tuple(remarks), plan_blocks(folds.values(), y, environments))


def first_few(names: list[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(names[:MAX_SHOWN]) + more


def _deal(names: NDArray[Any], counts: NDArray[np.int64], n_folds: int) -> dict[str, tuple[str, ...]]:
    """The largest environments first, each into the fold with the fewest rows so far."""
    members: list[list[str]] = [[] for _ in range(n_folds)]
    rows = np.zeros(n_folds, dtype=np.int64)
    for j in np.argsort(-counts, kind="stable"):
        smallest = int(rows.argmin())
        members[smallest].append(str(names[j]))
        rows[smallest] += counts[j]
    return {_fold_name(k, fold): tuple(sorted(fold, key=natural_order)) for k, fold in enumerate(members, start=1)}


def _fold_name(number: int, members: list[str]) -> str:
    return members[0] if len(members) == 1 else f"fold {number} ({len(members)} environments)"


def _classes_lost(y: NDArray[Any], environments: NDArray[Any], members: tuple[str, ...]) -> list[str]:
    held = np.isin(environments, members)
    return [str(label) for label in np.setdiff1d(np.unique(y), np.unique(y[~held]))]
