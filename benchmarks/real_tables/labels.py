"""What a few labels of a held-out environment change, and whether its rate lay where it was said to lie.

Both are found from kept fits: how environments differ is estimated from what was said about training environments while
they were left out, as `eber fit` does; the held-out environment has no part in it but its labelled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.real_tables.rules import probabilities, training_labels
from benchmarks.real_tables.tables import holdouts, load
from eber.compare.few_labels import DRAWS, HARMFUL, LABELS, MIN_JUDGED
from eber.evaluation.metrics import score
from eber.methods import POOL
from eber.tuning.calibration import Calibration, estimate_calibration, fixed_calibration

ROWS = ("Logistic regression", "Gradient boosting", "Random forest", "EBER", POOL)
SEEN = (0, *LABELS)
LEVEL = 0.9


def label_lines(folder: Path, data_dir: Path, names: Sequence[str]) -> pd.DataFrame:
    """A line for each table, held-out environment, method, number of labels and draw."""
    lines = []
    for name in names:
        table = load(name, data_dir)
        for held_out in holdouts(name, table):
            y, environments = training_labels(table, held_out)
            held = table.environments == held_out
            classes = np.unique(table.y[~held])
            if not np.isin(table.y[held], classes).all():
                continue
            labels = np.searchsorted(classes, table.y[held])
            found, left_out = probabilities(folder, name, table, held_out)
            for row in ROWS:
                prior = estimate_calibration(left_out[row], y, environments)
                shown = 1 if len(classes) == 2 else int(np.bincount(y).argmax())
                for n_labels in SEEN:
                    for draw in range(DRAWS if n_labels else 1):
                        order = np.random.default_rng([draw, len(labels)]).permutation(len(labels))
                        if len(labels) - n_labels < MIN_JUDGED:
                            continue
                        line = {"table": name, "held_out": held_out, "row": row, "labels": n_labels}
                        lines.append(line | _judged(prior, found[row], labels, order, n_labels, shown))
    return pd.DataFrame(lines)


def _judged(
    prior: Calibration,
    proba: NDArray[np.float64],
    labels: NDArray[np.int64],
    order: NDArray[np.int64],
    n_labels: int,
    shown: int,
) -> dict[str, float]:
    """Changes in NLL and ECE of the rows without labels, and the interval of the share of one class among all rows."""
    seen, rest = order[:n_labels], order[n_labels:]
    K = proba.shape[1]
    posterior = prior.after(proba[seen], labels[seen]) if n_labels else prior
    fixed = fixed_calibration(K).after(proba[seen], labels[seen]) if n_labels else fixed_calibration(K)
    before, after, with_fixed = (
        score(labels[rest], p, np.arange(K), ("nll", "ece"))
        for p in (proba[rest], posterior.apply(proba[rest]), fixed.apply(proba[rest]))
    )
    said = proba if not n_labels else posterior.apply(proba)
    low, high = posterior.rate_interval(proba, LEVEL)
    low_k, high_k = min(low[shown], said[:, shown].mean()), max(high[shown], said[:, shown].mean())
    return {
        "nll": after["nll"] - before["nll"],
        "ece": after["ece"] - before["ece"],
        "fixed nll": with_fixed["nll"] - before["nll"],
        "inside": float(low_k <= (labels == shown).mean() <= high_k),
        "width": float(high_k - low_k),
    }


def labels_by_row(lines: pd.DataFrame) -> pd.DataFrame:
    """The table of docs/new-environments.md: methods and numbers of labels down, what changed across."""
    found = {}
    for row, n_labels in product(ROWS, SEEN):
        own = lines[(lines["row"] == row) & (lines["labels"] == n_labels)]
        if not len(own):
            continue
        by_table = own.groupby(["table", "held_out"])[["nll", "ece", "fixed nll"]].mean().groupby("table").mean()
        entry = {
            "change in NLL": f"{by_table['nll'].mean():+.3f} ({(by_table['nll'] < 0).sum()} of {len(by_table)})",
            "change in ECE": f"{by_table['ece'].mean():+.3f}",
            "worse by more than 0.01": f"{(own['nll'] > HARMFUL).mean():.2f}",
            "with fixed spreads": f"{by_table['fixed nll'].mean():+.3f}, {(own['fixed nll'] > HARMFUL).mean():.2f}",
        }
        if n_labels == 0:  # predictions without labels are left as they are
            entry = dict.fromkeys(entry, "–")
        inside = own.groupby(["table", "held_out"])["inside"].mean()
        entry["rate in its 90 % interval"] = f"{inside.mean():.2f} of {len(inside)}"
        entry["median width"] = f"{own['width'].median():.2f}"
        found[f"{row}, {n_labels} labels"] = entry
    return pd.DataFrame(found).T
