"""scikit-learn's fitted models as arrays: what answers without scikit-learn's own objects, and so without pickle.

A logistic regression is a matrix and a vector; boosted trees and forests are thresholds. Arrays do not change with the
version of scikit-learn, and whoever loads them runs no code of the folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from eber.exceptions import ModelFileError

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class LinearModel:
    """p(y|x) = softmax(W x + b); for two classes one row of W, and a sigmoid.

    Attributes
    ----------
    classes_ : (K,)
    coefficients : (K or 1, d)
    intercepts : (K or 1,)
    """

    classes_: NDArray[Any]
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def __post_init__(self) -> None:
        rows = _outputs(self.classes_)
        if self.coefficients.ndim != 2 or len(self.coefficients) != rows or self.intercepts.shape != (rows,):
            raise ValueError("its coefficients do not fit its classes")
        _require_numbers(self.coefficients, self.intercepts)

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        return int(self.coefficients.shape[1])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K)."""
        return _probabilities(_matrix(X, self.n_features_in_) @ self.coefficients.T + self.intercepts)


@dataclass(frozen=True)
class RateModel:
    """p(y|x) = p(y): the share of each class, whatever the row.

    Attributes
    ----------
    classes_, shares : (K,)
    """

    classes_: NDArray[Any]
    shares: NDArray[np.float64]
    n_features_in_: int

    def __post_init__(self) -> None:
        if self.shares.shape != self.classes_.shape or not np.isclose(self.shares.sum(), 1):
            raise ValueError("its shares do not fit its classes")
        _require_shares(self.shares)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K)."""
        return np.tile(self.shares, (len(_matrix(X, self.n_features_in_)), 1))


@dataclass(frozen=True)
class TreeModel:
    """Trees whose leaves add up to logits (boosting) or whose mean is p(y|x) (a forest).

    All nodes of all trees lie in one list; a leaf is its own child, and other children come after their parents.

    Attributes
    ----------
    classes_ : (K,)
    roots, columns : (T,)
        First node of each tree, and the output that it adds to; -1 for all outputs.
    features, left, right : (N,)
    thresholds : (N,)
        A row goes left where its feature is at most this.
    missing_left : (N,) bool
    values : (N, 1 or K)
    baseline : (K or 1,)
        What logits start from; of a forest, none.
    """

    classes_: NDArray[Any]
    roots: NDArray[np.int64]
    columns: NDArray[np.int64]
    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    values: NDArray[np.float64]
    baseline: NDArray[np.float64]
    n_features_in_: int

    def __post_init__(self) -> None:
        for array in (self.roots, self.columns, self.features, self.left, self.right):
            if array.dtype != np.int64 or array.ndim != 1:
                raise ValueError("its trees have nodes that are no whole numbers")
        N, node = len(self.features), np.arange(len(self.features))
        nodes = (self.thresholds, self.left, self.right, self.missing_left, self.values)
        leaf = (self.left == node) & (self.right == node)
        sound = (
            all(len(array) == N for array in nodes)
            and self.missing_left.dtype == np.bool_
            and self.thresholds.ndim == self.missing_left.ndim == self.baseline.ndim == 1
            and self.values.ndim == 2
            and _have_one_way(self.roots, self.left[~leaf], self.right[~leaf], N)  # so that every row reaches a leaf
            and bool(((self.features >= 0) & (self.features < self.n_features_in_)).all())
            and len(self.roots) == len(self.columns) > 0
            and self.thresholds.dtype == np.float64
            and not np.isnan(self.thresholds).any()
            and self.values.shape[1] == (1 if self.boosted else len(self.classes_))
            and len(self.baseline) in (0, _outputs(self.classes_))
            and bool(((self.columns >= -1) & (self.columns < max(len(self.baseline), 1))).all())
        )
        if not sound:
            raise ValueError("its trees are not whole")
        _require_numbers(self.values, self.baseline)
        if not self.boosted:
            _require_shares(self.values)

    @property
    def boosted(self) -> bool:
        """Whether leaves add up to logits."""
        return len(self.baseline) > 0

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """p(y|x), (n, K)."""
        X = _matrix(X, self.n_features_in_)
        if not self.boosted:
            # A forest compares in float32.
            X = X.astype(np.float32)
            total = np.zeros((len(X), len(self.classes_)))
            for root in self.roots:
                total += self.values[self._leaves(X, int(root))]
            mean: NDArray[np.float64] = total / len(self.roots)
            return mean
        logits = np.tile(self.baseline, (len(X), 1))
        for root, column in zip(self.roots, self.columns, strict=True):
            logits[:, column] += self.values[self._leaves(X, int(root)), 0]
        return _probabilities(logits)

    def _leaves(self, X: NDArray[Any], root: int) -> NDArray[np.int64]:
        """The leaf that each row falls into."""
        node, rows = np.full(len(X), root), np.arange(len(X))
        while True:
            x = X[rows, self.features[node]]
            goes_left = np.where(np.isnan(x), self.missing_left[node], x <= self.thresholds[node])
            child = np.where(goes_left, self.left[node], self.right[node])
            if np.array_equal(child, node):
                return node
            node = child


PlainModel = LinearModel | TreeModel | RateModel
PLAIN_KINDS = (LogisticRegression, HistGradientBoostingClassifier, RandomForestClassifier, DummyClassifier)
"""Classes of scikit-learn that there is a form as arrays of."""


def plain_model(fitted: Any) -> PlainModel:
    """A fitted model of scikit-learn as arrays.

    Raises
    ------
    ModelFileError
        For a kind that there is no such form of.
    """
    if isinstance(fitted, PlainModel):
        return fitted
    if type(fitted) is LogisticRegression:
        if len(fitted.classes_) > 2 and fitted.solver == "liblinear":
            raise ModelFileError("A logistic regression of several classes by liblinear cannot be saved: use lbfgs.")
        return LinearModel(fitted.classes_, fitted.coef_, fitted.intercept_)
    if type(fitted) is HistGradientBoostingClassifier:
        return _boosting(fitted)
    if type(fitted) is RandomForestClassifier:
        return _forest(fitted)
    if type(fitted) is DummyClassifier and fitted.strategy == "prior":
        return RateModel(fitted.classes_, np.asarray(fitted.class_prior_, dtype=np.float64), int(fitted.n_features_in_))
    raise ModelFileError(
        f"A fitted {type(fitted).__name__} cannot be saved without pickle; logistic regression, "
        "HistGradientBoostingClassifier, RandomForestClassifier and the classifiers of eber can."
    )


def _boosting(fitted: HistGradientBoostingClassifier) -> TreeModel:
    if fitted.is_categorical_ is not None and np.any(fitted.is_categorical_):
        raise ModelFileError("Boosting with categorical_features cannot be saved: encode categories as columns.")
    trees = [(tree.nodes, column) for stage in fitted._predictors for column, tree in enumerate(stage)]
    parts = []
    for nodes, _ in trees:
        leaf, node = nodes["is_leaf"].astype(bool), np.arange(len(nodes))
        parts.append(
            {
                "features": np.where(leaf, 0, nodes["feature_idx"]),
                "thresholds": np.where(leaf, 0.0, nodes["num_threshold"]),
                "left": np.where(leaf, node, nodes["left"]),
                "right": np.where(leaf, node, nodes["right"]),
                "missing_left": nodes["missing_go_to_left"].astype(bool),
                "values": nodes["value"][:, None],
            }
        )
    baseline = np.asarray(fitted._baseline_prediction, dtype=np.float64).reshape(-1)
    return _joined(fitted, parts, [column for _, column in trees], baseline)


def _forest(fitted: RandomForestClassifier) -> TreeModel:
    parts = []
    for estimator in fitted.estimators_:
        tree = estimator.tree_
        leaf, node = tree.children_left < 0, np.arange(tree.node_count)
        share = tree.value[:, 0, :]
        parts.append(
            {
                "features": np.where(leaf, 0, tree.feature),
                "thresholds": np.where(leaf, 0.0, tree.threshold),
                "left": np.where(leaf, node, tree.children_left),
                "right": np.where(leaf, node, tree.children_right),
                "missing_left": tree.missing_go_to_left.astype(bool),
                "values": share / share.sum(1, keepdims=True),
            }
        )
    return _joined(fitted, parts, [-1] * len(parts), np.empty(0))


def _joined(fitted: Any, trees: list[Arrays], columns: list[int], baseline: NDArray[np.float64]) -> TreeModel:
    """All nodes in one list, with children counted from its beginning."""
    sizes = [len(tree["features"]) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    for root, tree in zip(roots, trees, strict=True):
        tree["left"], tree["right"] = tree["left"] + root, tree["right"] + root
    nodes: dict[str, Any] = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    for name in ("features", "left", "right"):
        nodes[name] = nodes[name].astype(np.int64)
    return TreeModel(
        classes_=fitted.classes_,
        roots=roots,
        columns=np.array(columns, dtype=np.int64),
        baseline=baseline,
        n_features_in_=int(fitted.n_features_in_),
        **nodes,
    )


def _require_numbers(*arrays: NDArray[Any]) -> None:
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays):
        raise ValueError("its numbers are none")


def _have_one_way(roots: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64], n_nodes: int) -> bool:
    """Whether no node lies in two trees or is reached in two ways, as in a circle; few could take hours then."""
    reached = np.concatenate([roots, left, right])
    return bool(((reached >= 0) & (reached < n_nodes)).all()) and len(np.unique(reached)) == len(reached)


def _require_shares(values: NDArray[np.float64]) -> None:
    _require_numbers(values)
    if not ((values >= 0).all() and np.allclose(values.sum(-1), 1)):
        raise ValueError("its shares are no probabilities")


def _outputs(classes: NDArray[Any]) -> int:
    return 1 if len(classes) == 2 else len(classes)


def _probabilities(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, K), or (n, 1) for two classes -> (n, K)."""
    if logits.shape[1] == 1:
        positive = expit(logits[:, 0])
        return np.stack([1 - positive, positive], 1)
    p: NDArray[np.float64] = softmax(logits, axis=1)
    return p


def _matrix(X: Any, n_features: int) -> NDArray[np.float64]:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X has shape {X.shape}; this model was fitted on {n_features} features.")
    return X
