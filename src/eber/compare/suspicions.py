"""What is suspicious in a table, before any method has seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from eber.compare.folds import FoldPlan, first_few
from eber.datasets.base import MultiEnvironmentData
from eber.leaks.audit import leak_audit
from eber.leaks.near_rows import row_keys
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable

MAX_AUDIT_ROWS = 20_000
"""Larger tables are audited on a random sample of so many rows, which still shows a leak of more than a few rows."""
GIVES_ENVIRONMENT_AWAY = 0.5
"""Share of a column's variance that lies between environments."""
GIVES_LABEL_AWAY = 0.99
"""AUROC of a single column."""
MAX_IMBALANCE = 100
"""Rows of the largest environment for each row of the smallest."""
MAX_SHOWN_COLUMNS = 8

SuspicionKind = Literal["label_leak", "shared_rows", "usual_copies", "environment_leak", "small_environments"]


@dataclass(frozen=True)
class Suspicion:
    """One thing that may be wrong with a table.

    Parameters
    ----------
    kind : str
        "label_leak": a column alone tells a class. "shared_rows": rows or subjects of a fold are in others too.
        "usual_copies": they are, but no more than is usual in these data. "environment_leak": columns tell the
        environment. "small_environments": some are far smaller than the largest.
    sentence : str
        What was found and what to do about it.
    folds, environments, columns : sequence of str
        Those that it is about, where it is about such.
    """

    kind: SuspicionKind
    sentence: str
    folds: Sequence[str] = ()
    environments: Sequence[str] = ()
    columns: Sequence[str] = ()


def find_suspicions(table: TrainingTable, plan: FoldPlan) -> list[Suspicion]:
    """The gravest first; none when nothing was found."""
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X, names = preprocessing.transform(table.columns), preprocessing.names_out
    return [
        *_label_leaks(X, names, table.y),
        *_shared_rows(X, table, plan),
        *_environment_leaks(X, names, table.environments),
        *_imbalance(table.environments),
    ]


def _label_leaks(X: NDArray[np.float64], names: list[str], y: NDArray[np.generic]) -> list[Suspicion]:
    found = []
    for j, name in enumerate(names):
        ranks = rankdata(X[:, j])
        for label in np.unique(y):
            positive = y == label
            n, m = positive.sum(), (~positive).sum()
            area = (ranks[positive].sum() - n * (n + 1) / 2) / (n * m)
            if max(area, 1 - area) > GIVES_LABEL_AWAY:
                sentence = (
                    f"{name!r} alone tells class {str(label)!r} from the others (AUROC {max(area, 1 - area):.3f}). Is "
                    "it known before the label is? If not, leave it out (--drop on the command line)."
                )
                found.append(Suspicion("label_leak", sentence, columns=[name]))
                break
    return found


def _shared_rows(X: NDArray[np.float64], table: TrainingTable, plan: FoldPlan) -> list[Suspicion]:
    # Environments of one fold are held out together, so they count as one.
    fold_of = {member: fold for fold, members in plan.folds.items() for member in members}
    folds = np.array([fold_of.get(name, name) for name in table.environments])
    rows = np.arange(len(X))
    sampled = len(X) > MAX_AUDIT_ROWS
    if sampled:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:MAX_AUDIT_ROWS])
    identifiers = None if table.identifiers is None else table.identifiers[rows]
    data = MultiEnvironmentData(X[rows], table.y[rows], folds[rows], identifiers=identifiers, name=table.name)
    found = {}
    for fold in plan.folds:
        held = data.environments == fold
        if not held.any() or held.all():
            continue
        audit = leak_audit(data.select(~held), data.select(held))
        if audit.found:
            sample = f" (in a sample of {MAX_AUDIT_ROWS} rows)" if sampled else ""
            what = "" if len(audit.identifier_pairs) == 0 else f" Identifiers are those of column {table.subject!r}."
            sentence = f"{fold}{sample}: {' '.join(audit.summary)}{what} Its scores may be too good to be true."
            columns = [str(table.subject)] if len(audit.identifier_pairs) else []
            found[fold] = Suspicion("shared_rows", sentence, [fold], plan.folds[fold], columns)
    return [*found.values(), *_usual_copies(X, folds, [fold for fold in plan.folds if fold not in found])]


def _usual_copies(X: NDArray[np.float64], folds: NDArray[np.generic], innocent: list[str]) -> list[Suspicion]:
    """Rows that equal one of another fold, where that is not counted as a leak: all rows are looked at, no sample."""
    keys, index = np.unique(row_keys(X), return_inverse=True)
    names, fold = np.unique(folds, return_inverse=True)
    pairs = np.unique(index * len(names) + fold)
    elsewhere = np.bincount(pairs // len(names), minlength=len(keys))[index] > 1
    shares = {}
    for name in innocent:
        inside = folds == name
        if copied := int(elsewhere[inside].sum()):
            shares[name] = f"{name} {copied} of {inside.sum()}"
    if not shares:
        return []
    sentence = (
        f"Rows equal a row of another environment in every feature ({first_few(list(shares.values()))}); they are too "
        "few, or too usual in these data, to be counted as a leak. See whether they are entries of one subject."
    )
    return [Suspicion("usual_copies", sentence, folds=list(shares))]


def _environment_leaks(X: NDArray[np.float64], names: list[str], environments: NDArray[np.generic]) -> list[Suspicion]:
    """Columns whose variance lies mostly between environments."""
    _, index = np.unique(environments, return_inverse=True)
    counts = np.bincount(index)
    shares = {}
    for j, name in enumerate(names):
        column = X[:, j].astype(np.float64)
        total = column.var() * len(column)
        means = np.bincount(index, weights=column) / counts
        between = (counts * (means - column.mean()) ** 2).sum()
        if total > 0 and between / total > GIVES_ENVIRONMENT_AWAY:
            shares[name] = between / total
    order = sorted(shares, key=lambda name: -shares[name])
    if not order:
        return []
    shown = ", ".join(f"{name!r} ({shares[name]:.0%})" for name in order[:MAX_SHOWN_COLUMNS])
    more = f" and {len(order) - MAX_SHOWN_COLUMNS} more" if len(order) > MAX_SHOWN_COLUMNS else ""
    sentence = (
        f"These columns give the environment away (share of their variance between environments): {shown}{more}. A new "
        "environment will have values of them that no training environment had; see whether results hold without them."
    )
    return [Suspicion("environment_leak", sentence, columns=order)]


def _imbalance(environments: NDArray[np.generic]) -> list[Suspicion]:
    names, counts = np.unique(environments, return_counts=True)
    largest = counts.max()
    tiny = [str(name) for name in names[counts * MAX_IMBALANCE < largest]]
    if not tiny:
        return []
    sentence = f"{first_few(tiny)}: less than a {MAX_IMBALANCE}th of the rows of the largest environment."
    return [Suspicion("small_environments", sentence, environments=tiny)]
