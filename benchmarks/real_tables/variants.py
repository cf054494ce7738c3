"""EBER with one thing changed at a time, to see what environments buy and by which part of the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from eber.datasets.base import MultiEnvironmentData
from eber.model_selection import Fold
from eber.tuning.grids import BOOSTING, Candidate

BOOSTED_MIXTURE = "Boosted mixture"


@dataclass(frozen=True)
class Variant:
    """EBER with other parameters, or told other environments.

    Parameters
    ----------
    parameters : mapping
        Of `EBERClassifier`.
    environments : {"true", "shuffled", "clusters"}
        What it is told: the environments themselves; their names dealt out among all rows at random; or as many
        clusters of x (k-means). Folds are of the true environments in any case.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    environments: Literal["true", "shuffled", "clusters"] = "true"


VARIANTS = {
    "EBER without tie": Variant({"tie_weight": 0.0}),
    "EBER without environment loss": Variant({"env_loss_weight": 0.0}),
    "EBER, latent dimension 4": Variant({"latent_dim": 4}),
    "EBER, 3 pseudo-environments": Variant({"pseudo_environments": 3}),
    "EBER, environments shuffled": Variant(environments="shuffled"),
    "EBER, clusters of x": Variant(environments="clusters"),
}


def environments_told(train: MultiEnvironmentData, variant: Variant, seed: int) -> MultiEnvironmentData:
    """The training rows with the environments that a variant is told."""
    if variant.environments == "true":
        return train
    if variant.environments == "shuffled":
        return replace(train, environments=np.random.default_rng(seed).permutation(train.environments))
    m = len(train.environment_names)
    return replace(train, environments=KMeans(m, n_init=3, random_state=seed).fit_predict(train.X).astype(str))


def boosted_mixture(
    train: MultiEnvironmentData, X_test: NDArray[np.float64], folds: list[Fold], candidates: Sequence[Candidate]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p(y|x) = sum_e p(e|x) p(y|x,e) with both by boosting: EBER's marginal rule on components that it does not train.

    p(y|x,e) is one model with e as a categorical column; p(e|x) has the gentlest setting, whatever p(y|x,e) has.

    Returns
    -------
    (C, n, K) of left-out training rows, (C, n_test, K) of held-out rows
    """
    K, n = len(np.unique(train.y)), len(train.y)
    left_out, everything = np.full((len(candidates), n, K), np.nan), np.arange(n)
    for rows, others in folds:
        left_out[:, others] = _mixtures(train.select(rows), train.X[others], candidates)
    return left_out, _mixtures(train.select(everything), X_test, candidates)


def _mixtures(
    train: MultiEnvironmentData, X: NDArray[np.float64], candidates: Sequence[Candidate]
) -> NDArray[np.float64]:
    """(C, rows of X, K)."""
    names, index = np.unique(train.environments, return_inverse=True)
    p_e = HistGradientBoostingClassifier(**BOOSTING[0], random_state=0).fit(train.X, index).predict_proba(X)  # (n, m)
    column = train.X.shape[1]
    mixtures = []
    for candidate in candidates:
        boosting = HistGradientBoostingClassifier(**candidate, categorical_features=[column], random_state=0)
        boosting.fit(np.column_stack([train.X, index]), train.y)
        given_e = [boosting.predict_proba(np.column_stack([X, np.full(len(X), e)])) for e in range(len(names))]
        mixtures.append(np.einsum("nm,mnk->nk", p_e, np.stack(given_e)))
    return np.stack(mixtures)


def environments_recognised(X: NDArray[np.float64], environments: NDArray[Any]) -> tuple[float, float]:
    """How often x tells a row's environment, by rows that a forest's trees have not seen; and by chance."""
    forest = RandomForestClassifier(200, min_samples_leaf=3, oob_score=True, random_state=0).fit(X, environments)
    _, counts = np.unique(environments, return_counts=True)
    return float(forest.oob_score_), float(counts.max() / counts.sum())
