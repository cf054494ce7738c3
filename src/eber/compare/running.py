"""The comparison as an experiment: a fold is a setting, and the ledger keeps what is finished."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.methods import Effort, fit_method
from eber.estimators import EBERClassifier
from eber.estimators.explanation import Explanation
from eber.evaluation.metrics import METRICS, score
from eber.exceptions import AdaptationWarning
from eber.method.inference import entropy
from eber.methods import default_methods
from eber.runs.cell import ADAPTED, MAIN, Cell, CellResult
from eber.runs.fitting import Steps
from eber.runs.spec import Experiment
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable, fingerprint, read_training_table

NAME = "compare"
MAX_SHOWN_LATENTS = 400
"""Rows of a fold whose latent coordinates are kept for the picture."""


def comparison(
    folds: Mapping[str, Sequence[str]],
    *,
    label: str,
    environment: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    effort: Effort = Effort(),  # noqa: B008 (frozen)
    metric: str = "nll",
) -> Experiment:
    """The comparison of all methods on one table, declared."""
    return Experiment(
        name=NAME,
        title=f"Predicting {label} in a new {environment}",
        description="Each environment is held out in turn, and every method learns from the others.",
        parameters={
            "label": label,
            "environment": environment,
            "drop": json.dumps(list(drop)),
            "features": json.dumps(None if features is None else list(features)),
            "steps": effort.steps,
            "penalty_weights": effort.penalty_weights,
            "selection": effort.selection,
            "held_out": "[]",
        },
        settings={fold: {"held_out": json.dumps(list(members))} for fold, members in folds.items()},
        methods=default_methods(),
        fits_any_method=True,
        metrics=tuple(METRICS),
        primary_metric=metric,
        reference_method=default_methods()[0],
        run_cell=run_cell,
        seeds_together=5,
        fingerprint=fingerprint,
        data_travels=True,
    )


def run_cell(cell: Cell) -> Steps[CellResult]:
    """Fit one method without one fold's environments, and score it on them."""
    p = cell.parameters
    assert cell.data_dir is not None
    table = _read(cell.data_dir, p["label"], p["environment"], p["drop"], p["features"], cell.data)
    held = np.isin(table.environments, json.loads(p["held_out"]))
    effort = Effort(p["steps"], tuple(p["penalty_weights"]), p["selection"])
    return evaluate_fold(table, held, cell.method, cell.seed, effort)


def evaluate_fold(
    table: TrainingTable, held: NDArray[np.bool_], method: str, seed: int, effort: Effort
) -> Steps[CellResult]:
    """Scores, times and what the report draws, of one method on held-out rows.

    Its fits are handed to :mod:`eber.runs.joint_fits`. Preprocessing is learned from the training rows alone.

    Parameters
    ----------
    table : TrainingTable
    held : array of shape (n,)
        Whether a row is held out.
    """
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    preprocessing = Preprocessing.fit(table.columns.select(train), table.schema)
    X, X_test = (preprocessing.transform(table.columns.select(rows)) for rows in (train, test))
    fitted = yield from fit_method(method, X, table.y[train], table.environments[train], seed, effort)
    classifier = fitted.classifier
    explanation = classifier.explain(X_test) if isinstance(classifier, EBERClassifier) else None
    proba = classifier.predict_proba(X_test) if explanation is None else explanation.p_y_given_x
    y = table.y[test]
    scores = {MAIN: score(y, proba, classifier.classes_, METRICS)}
    if fitted.penalty_weight is not None:
        scores[MAIN]["penalty_weight"] = fitted.penalty_weight
    arrays: dict[str, NDArray[Any]] = {
        "proba": proba.astype(np.float32),
        "label": np.searchsorted(classifier.classes_, y),
    }
    if explanation is not None:
        adapted, more = _look_inside(classifier, explanation, y, seed)
        scores[ADAPTED] = adapted
        arrays |= more
    return CellResult(scores, {MAIN: fitted.seconds}, arrays)


def _look_inside(
    classifier: EBERClassifier, explanation: Explanation, y: NDArray[Any], seed: int
) -> tuple[dict[str, float], dict[str, NDArray[Any]]]:
    """What EBER says beyond probabilities: p(e|x), latents, the split of uncertainty, and what adaptation gains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)  # whether to trust it is kept as a number
        adapted = classifier.adapt(explanation)
    proba = explanation.adapted(adapted.member_adaptations()).p_y_given_x
    scores = score(y, proba, classifier.classes_, METRICS)
    scores["trusted"] = float(adapted.adaptation_.trusted)
    split, p_e = explanation.uncertainty, explanation.p_e_given_x
    rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:MAX_SHOWN_LATENTS])
    return scores, {
        "environments": classifier.environments_.astype(str),
        "p_e": p_e.mean(0),
        "environment_entropy": entropy(p_e).mean(keepdims=True),
        "mixture": adapted.environment_mixture(),
        "within": split["within_environments"].to_numpy(np.float32),
        "between": split["between_environments"].to_numpy(np.float32),
        "latent": explanation.mean_z[rows].astype(np.float32),
        "latent_rows": rows,
    }


@lru_cache(maxsize=1)
def _read(path: Path, label: str, environment: str, drop: str, features: str, data: str) -> TrainingTable:
    """The table, read once by each worker; `data` is its fingerprint, so that another content is another entry."""
    return read_training_table(
        path, label=label, environment=environment, drop=json.loads(drop), features=json.loads(features)
    )
