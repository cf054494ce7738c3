"""The result of one held-out fold: fit one method without its environments, and score it on them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.blocks import Block
from eber.compare.fit_method import fit_method
from eber.compare.importance import column_importance
from eber.compare.methods import POOL_MEMBERS, Effort
from eber.compare.shared_fits import SECONDS, left_out_of
from eber.estimators import EBERClassifier
from eber.estimators.explanation import Explanation
from eber.evaluation.metrics import METRICS, score
from eber.exceptions import AdaptationWarning
from eber.method.inference import entropy
from eber.runs.cell import ADAPTED, MAIN, CellResult
from eber.runs.fitting import Steps
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import TrainingTable
from eber.tuning.pool import left_out_weights

MAX_SHOWN_LATENTS = 400
"""Rows of a fold whose latent coordinates are kept for the picture."""


def evaluate_fold(
    table: TrainingTable,
    held: NDArray[np.bool_],
    method: str,
    seed: int,
    effort: Effort,
    said: Mapping[Block, CellResult] = MappingProxyType({}),
) -> Steps[CellResult]:
    """Scores, times and what the report draws, of one method on held-out rows.

    Its fits are handed to :mod:`eber.runs.joint_fits`. Preprocessing is learned from the training rows alone.

    Parameters
    ----------
    table : TrainingTable
    held : array of shape (n,)
        Whether a row is held out.
    said : mapping
        Block to what fits without it said (`eber.compare.shared_fits`), by which settings are chosen; without any the
        search is made for this fold alone.
    """
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    preprocessing = Preprocessing.fit(table.columns.select(train), table.schema)
    X, X_test = (preprocessing.transform(table.columns.select(rows)) for rows in (train, test))
    of_train, of_test = (None if table.weights is None else table.weights[rows] for rows in (train, test))
    left_out = left_out_of(table, held, said) if said else None
    fitted = yield from fit_method(
        method, X, table.y[train], table.environments[train], seed, effort, of_train, left_out
    )
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
    shared = sum(float(result.arrays[SECONDS]) for result in said.values())
    return CellResult(scores, {MAIN: fitted.seconds + shared}, arrays)


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
