"""The settings that a search tries where the user names none: one list for each kind of classifier."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from eber.estimators.base import EnvironmentClassifier
from eber.estimators.references import StoppedEarly

Candidate = dict[str, Any]
"""Values of parameters by name, as for `set_params`."""

WEIGHT_DECAYS = (0.0, 1.0, 3.0, 10.0)
NETWORK: tuple[Candidate, ...] = tuple({"weight_decay": decay} for decay in WEIGHT_DECAYS)
WIDE = {"hidden_dims": (64, 64)}
WIDE_NETWORK: tuple[Candidate, ...] = (WIDE,)
"""For tables with many rows and few columns, which the default network is too small for."""
LINEAR_NETWORK: tuple[Candidate, ...] = ({"featurizer": "linear", "weight_decay": 3.0},)
"""For tables with many columns and few rows, which the default network overfits."""
PIECES = {"column_pieces": 16}
PIECES_NETWORK: tuple[Candidate, ...] = (
    {**PIECES, **LINEAR_NETWORK[0]},
    *({**PIECES, **WIDE, "weight_decay": decay} for decay in (1.0, 3.0)),
)
"""For steps and thresholds, which trees follow and networks on plain columns are too smooth for."""
LOGISTIC: tuple[Candidate, ...] = tuple({"C": c} for c in (0.01, 0.1, 1.0, 10.0))
BOOSTING: tuple[Candidate, ...] = (
    {"max_iter": 80, "learning_rate": 0.06, "max_leaf_nodes": 12, "l2_regularization": 5.0},
    {"max_iter": 200, "learning_rate": 0.05, "max_leaf_nodes": 15, "l2_regularization": 1.0},
    {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 0.0},
    {"max_iter": 400, "learning_rate": 0.05, "max_leaf_nodes": 31, "l2_regularization": 0.0},
)
"""From gentle to strong; the third is scikit-learn's default."""
STOPPED_BOOSTING: tuple[Candidate, ...] = tuple(
    {"learning_rate": rate, "l2_regularization": l2} for rate in (0.03, 0.1) for l2 in (0.0, 5.0)
)
"""Where held-out rows choose the number of rounds."""
OTHERS_BOOSTING: tuple[Candidate, ...] = tuple(
    {"boosting__learning_rate": rate, "boosting__reg_lambda": l2} for rate in (0.03, 0.1) for l2 in (1.0, 5.0)
)
"""The same in the names of XGBoost and LightGBM."""
FOREST: tuple[Candidate, ...] = tuple(
    {"n_estimators": 100, "min_samples_leaf": leaf, "max_features": share}
    for share in ("sqrt", 0.5)
    for leaf in (1, 5, 20)
)
PENALISED: tuple[Candidate, ...] = (
    *({"weight_decay": decay} for decay in (0.0, 3.0)),
    LINEAR_NETWORK[0],
    PIECES_NETWORK[-1],
)
"""Tried with each penalty weight, so that a method with three weights has about as many candidates as one without."""


def penalised_candidates(parameter: str, weights: Sequence[float], others: Sequence[Candidate]) -> list[Candidate]:
    """Each penalty weight, with each of the other settings where there are some."""
    return [{parameter: weight, **other} for weight in weights for other in others or ({},)]


def in_words(candidate: Candidate) -> str:
    """A setting for a reader."""
    return ", ".join(f"{name}={value}" for name, value in candidate.items())


def all_default_candidates() -> str:
    """Every list here as one text, which changes whenever one of them does."""
    lists = {name: value for name, value in globals().items() if name.isupper()}
    return json.dumps(lists, sort_keys=True)


def default_candidates(estimator: Any) -> list[Candidate]:
    """The settings to try for a classifier, or for a pipeline that ends in one.

    Raises
    ------
    TypeError
        For a kind of classifier that has no list here.
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return [{f"{name}__{key}": value for key, value in candidate.items()} for candidate in default_candidates(last)]
    if isinstance(estimator, EnvironmentClassifier):
        return [*NETWORK, *((*WIDE_NETWORK, *LINEAR_NETWORK, *PIECES_NETWORK) if estimator.featurizer == "mlp" else ())]
    if isinstance(estimator, HistGradientBoostingClassifier) and estimator.early_stopping is True:
        return list(STOPPED_BOOSTING)
    for kind, grid in (
        (LogisticRegression, LOGISTIC),
        (HistGradientBoostingClassifier, BOOSTING),
        (RandomForestClassifier, FOREST),
        (StoppedEarly, OTHERS_BOOSTING),
    ):
        if isinstance(estimator, kind):
            return list(grid)
    raise TypeError(
        f"There is no default list of settings for {type(estimator).__name__}: name those to try, as in "
        "candidates=[{'C': 0.1}, {'C': 1.0}]; [{}] tries none but its own."
    )
