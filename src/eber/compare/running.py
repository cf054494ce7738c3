"""The comparison as an experiment: a fold is a setting, and the ledger keeps what is finished."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.importance import column_importance
from eber.compare.methods import POOL_MEMBERS, Effort, fit_method
from eber.estimators import EBERClassifier
from eber.estimators.explanation import Explanation
from eber.evaluation.metrics import METRICS, score
from eber.exceptions import AdaptationWarning
from eber.method.inference import entropy
from eber.methods import POOL, default_methods
from eber.runs.cell import ADAPTED, MAIN, Cell, CellResult
from eber.runs.fitting import Steps
from eber.runs.spec import Experiment
from eber.tables.choices import NO_CHOICES, ColumnChoices
from eber.tables.files import open_table
from eber.tables.preprocessing import Preprocessing
from eber.tables.reading import NOTHING_SAID, Reading
from eber.tables.training import TrainingTable, read_training_table
from eber.tuning.grids import all_default_candidates
from eber.tuning.pool import left_out_weights

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
    choices: ColumnChoices = NO_CHOICES,
    reading: Reading = NOTHING_SAID,
    effort: Effort = Effort(),  # noqa: B008 (frozen)
    metric: str = "nll",
    data: str = "",
) -> Experiment:
    """The comparison of all methods on one table, declared.

    `reading` is how workers read the table, and `data` its fingerprint.
    """
    return Experiment(
        name=NAME,
        title=f"Predicting {label} in a new {environment}",
        description="Each environment is held out in turn, and every method learns from the others.",
        parameters={
            "label": label,
            "environment": environment,
            "drop": json.dumps(list(drop)),
            "features": json.dumps(None if features is None else list(features)),
            "choices": json.dumps(choices.to_json()),
            "reading": json.dumps(reading.given),
            "steps": effort.steps,
            "search_folds": effort.search_folds,
            "candidates": all_default_candidates() if effort.searches else "",
            "held_out": "[]",
            **({} if effort.passes is None else {"passes": effort.passes}),
        },
        settings={fold: {"held_out": json.dumps(list(members))} for fold, members in folds.items()},
        methods=default_methods(),
        fits_any_method=True,
        metrics=tuple(METRICS),
        primary_metric=metric,
        reference_method=default_methods()[0],
        run_cell=run_cell,
        seeds_together=5,
        built_on={POOL: POOL_MEMBERS} if effort.searches else {},
        circumstances="{} held out",
        fingerprint=partial(_require_content, data, reading),
        data_travels=True,
    )


def run_cell(cell: Cell) -> CellResult | Steps[CellResult]:
    """Fit one method without one fold's environments, and score it on them."""
    p = cell.parameters
    assert cell.data_dir is not None
    said = (p["drop"], p["features"], p["choices"], p["reading"])
    table = _read(cell.data_dir, p["label"], p["environment"], said, cell.data)
    held = np.isin(table.environments, json.loads(p["held_out"]))
    effort = Effort(p["steps"], p["search_folds"], p.get("passes"))
    if set(cell.parts) == set(POOL_MEMBERS):
        return pool_of(table, held, cell.parts)
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
    of_train, of_test = (None if table.weights is None else table.weights[rows] for rows in (train, test))
    fitted = yield from fit_method(method, X, table.y[train], table.environments[train], seed, effort, of_train)
    classifier = fitted.classifier
    explanation = classifier.explain(X_test) if isinstance(classifier, EBERClassifier) else None
    proba = classifier.predict_proba(X_test) if explanation is None else explanation.p_y_given_x
    y = table.y[test]
    # Metrics and charts speak of the last of two classes; the classifier's own order is by size or by letters.
    label, order = np.searchsorted(classifier.classes_, y), np.searchsorted(classifier.classes_, table.classes)
    proba = proba[:, order]
    scores = {MAIN: score(y, proba, table.classes, METRICS, of_test)}
    arrays: dict[str, NDArray[Any]] = {"proba": proba, "label": np.argsort(order)[label], **_row_weights(of_test)}
    if fitted.left_out is not None:
        arrays["settings"] = np.array([json.dumps(candidate) for candidate in fitted.settings])
        arrays["left_out"] = fitted.left_out
    if fitted.weights is not None:
        arrays |= _weights(fitted.weights)
    if explanation is not None:
        adapted, more = _look_inside(classifier, explanation, y, order, seed, of_test)
        scores[ADAPTED] = adapted
        arrays |= more
    arrays |= column_importance(classifier.predict_proba, X_test, label, preprocessing, of_test)
    return CellResult(scores, {MAIN: fitted.seconds}, arrays)


def pool_of(table: TrainingTable, held: NDArray[np.bool_], members: Mapping[str, CellResult]) -> CellResult:
    """The pool of methods whose searches are finished, from what they said: the same as a fit of it, and no fit at all.

    Parameters
    ----------
    members : mapping
        Method to the result of its cell of the same fold and seed.
    """
    classes = np.unique(table.y[~held])
    left_out = np.stack([members[name].arrays["left_out"] for name in POOL_MEMBERS])  # (J, n, K)
    of_train, of_test = (None if table.weights is None else table.weights[rows] for rows in (~held, held))
    weights = left_out_weights(left_out, np.searchsorted(classes, table.y[~held]), table.environments[~held], of_train)
    proba = np.einsum("j,jnk->nk", weights, np.stack([members[name].arrays["proba"] for name in POOL_MEMBERS]))
    y = table.y[held]
    order = np.searchsorted(classes, table.classes)
    arrays = {"proba": proba, "label": np.argsort(order)[np.searchsorted(classes, y)], **_row_weights(of_test)}
    arrays |= _weights(dict(zip(POOL_MEMBERS, weights.tolist(), strict=True)))
    seconds = sum(member.seconds[MAIN] for member in members.values())
    return CellResult({MAIN: score(y, proba, table.classes, METRICS, of_test)}, {MAIN: seconds}, arrays)


def _row_weights(weights: NDArray[np.float64] | None) -> dict[str, NDArray[Any]]:
    return {} if weights is None else {"row_weights": weights}


def _weights(weights: Mapping[str, float]) -> dict[str, NDArray[Any]]:
    return {"members": np.array(list(weights)), "weights": np.array(list(weights.values()))}


def _look_inside(
    classifier: EBERClassifier,
    explanation: Explanation,
    y: NDArray[Any],
    order: NDArray[np.int64],
    seed: int,
    weights: NDArray[np.float64] | None,
) -> tuple[dict[str, float], dict[str, NDArray[Any]]]:
    """What EBER says beyond probabilities: p(e|x), latents, the split of uncertainty, and what adaptation gains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)  # whether to trust it is kept as a number
        adapted = classifier.adapt(explanation)
    proba = explanation.adapted(adapted.member_adaptations()).p_y_given_x[:, order]
    scores = score(y, proba, classifier.classes_[order], METRICS, weights)
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
def _read(path: Path, label: str, environment: str, said: tuple[str, str, str, str], data: str) -> TrainingTable:
    """The table, read once by each worker; `data` is its fingerprint, and other rows than those are refused.

    What the user said (columns to drop, features, choices, reading) comes as JSON.
    """
    drop, features, choices, reading = map(json.loads, said)
    table = read_training_table(
        path,
        label=label,
        environment=environment,
        drop=drop,
        features=features,
        choices=ColumnChoices.from_json(choices),
        reading=Reading(**reading),
    )
    if table.fingerprint != data:
        raise _changed(path)
    return table


def _require_content(data: str, reading: Reading, path: Path) -> str:
    """The fingerprint of a table, which must still be what it was when the comparison was planned."""
    if open_table(path, reading).fingerprint != data:
        raise _changed(path)
    return data


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} changed while the comparison ran: its content is not what the comparison was planned for. Give the "
        "command again once nobody writes to it."
    )
