"""How good predicted probabilities are: every metric takes labels, probabilities and the classes of their columns.

Each may be given weights of the rows, of which only ratios matter: a mean is then weighted, an area is that of weighted
rates, and a row of weight zero is not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# scikit-learn is imported inside the functions that need it: experiments are declared, listed and scheduled by
# metric name, and two seconds of import for a name is too much.

ECE_BINS = 10
ROW_SUM_TOLERANCE = 1e-3  # wide enough for float32 softmax over many classes, narrow enough to catch logits


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number that a table has a column for.

    Parameters
    ----------
    name : str
        What it is called in files and on the command line.
    label : str
        What it is called in tables.
    higher_is_better : bool or None
        None for a number that is neither good nor bad (a time, a chosen weight): nothing is then tested or set in bold.
    format_spec : str
        How a value is printed.
    full_name, meaning : str
        What the label stands for, and what the number says, in words for those who do not work with it every day;
        empty where the label says it all.
    noun : str
        What it is called in a sentence; the label when empty.
    """

    name: str
    label: str
    higher_is_better: bool | None
    format_spec: str = ".3f"
    full_name: str = ""
    meaning: str = ""
    noun: str = ""

    def format(self, value: float) -> str:
        """The value as text; a dash where there is none."""
        return "–" if math.isnan(value) else format(value, self.format_spec)

    @property
    def in_words(self) -> str:
        """What it is called in a sentence."""
        return self.noun or self.label

    @property
    def arrow(self) -> str:
        """Which way is better, for a column's head."""
        return {True: "↑", False: "↓", None: ""}[self.higher_is_better]

    @property
    def direction(self) -> str:
        """The same in words, for an axis."""
        return {True: "(higher is better)", False: "(lower is better)", None: ""}[self.higher_is_better]

    def is_better(self, a: float, b: float) -> bool:
        """Whether a is better than b."""
        return self.higher_is_better is not None and (a > b if self.higher_is_better else a < b)

    def best(self, values: Mapping[str, float]) -> set[str]:
        """Who has the best value, as printed; nobody where no way is better or there are no two to compare."""
        known = {name: value for name, value in values.items() if not math.isnan(value)}
        if self.higher_is_better is None or len(known) < 2:
            return set()
        top = (max if self.higher_is_better else min)(known.values())
        return {name for name, value in known.items() if self.format(value) == self.format(top)}


@dataclass(frozen=True, kw_only=True)
class Metric(Quantity):
    """A quantity that is computed from predicted probabilities.

    Parameters
    ----------
    function : callable
        (y_true of shape (n,), proba of shape (n, K), classes of shape (K,), weights of shape (n,) or None) -> float.
    """

    function: Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike | None], float]

    def __call__(
        self, y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None
    ) -> float:
        """Compute it."""
        return self.function(y_true, proba, classes, weights)


def negative_log_likelihood(
    y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """Mean of −log p(y|x).

    Probabilities are clipped to [ε, 1 − ε] with ε = 2.2e-16 (the precision of float64), as in scikit-learn, so that one
    row that was given probability zero costs 36 and not infinity.
    """
    from sklearn.metrics import log_loss

    index, p, w = _check(y_true, proba, classes, weights)
    return float(log_loss(index, p, labels=np.arange(p.shape[1]), sample_weight=w))


def accuracy(y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Share of rows whose most probable class is the true one; the first class wins a tie."""
    index, p, w = _check(y_true, proba, classes, weights)
    return float(np.average(p.argmax(axis=1) == index, weights=w))


def brier_score(y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Mean squared error of the probabilities.

    For two classes that of p(y=1|x), in [0, 1]; for more, summed over classes, in [0, 2]: scikit-learn's convention.
    """
    index, p, w = _check(y_true, proba, classes, weights)
    squared = (p - np.eye(p.shape[1])[index]) ** 2  # (n, K)
    return float(np.average(squared.sum(axis=1), weights=w) / (2 if p.shape[1] == 2 else 1))


def auroc(y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Area under the ROC curve; for more than two classes the mean over one-against-rest curves.

    NaN where it is not defined: when the rows are all of one class, or, for more than two, when a class is missing.
    """
    from sklearn.metrics import roc_auc_score

    index, p, w = _check(y_true, proba, classes, weights)
    present = np.unique(index)
    if len(present) < p.shape[1]:
        return math.nan
    if p.shape[1] == 2:
        return float(roc_auc_score(index, p[:, 1], sample_weight=w))
    return float(roc_auc_score(index, p, multi_class="ovr", sample_weight=w))


def auprc(y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Average precision of the second class; for more than two classes the mean over one-against-rest.

    NaN where it is not defined: when a class whose precision is asked for has no row.
    """
    from sklearn.metrics import average_precision_score

    index, p, w = _check(y_true, proba, classes, weights)
    wanted = [1] if p.shape[1] == 2 else list(range(p.shape[1]))
    if not np.isin(wanted, index).all():
        return math.nan
    return float(np.mean([average_precision_score(index == k, p[:, k], sample_weight=w) for k in wanted]))


@dataclass(frozen=True)
class Reliability:
    """A calibration curve: what was promised and what came, by bin of probability.

    Parameters
    ----------
    count : array of shape (bins,)
        Rows in each bin; their summed weight, where they have weights.
    promised : array of shape (bins,)
        Mean predicted probability; NaN in an empty bin.
    observed : array of shape (bins,)
        How often the event happened; NaN in an empty bin.
    """

    count: NDArray[np.int64] | NDArray[np.float64]
    promised: NDArray[np.float64]
    observed: NDArray[np.float64]

    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """95 % interval of the observed share in each bin (Clopper and Pearson 1934), two arrays (bins,)."""
        from scipy.stats import binomtest

        low, high = np.full((2, len(self.count)), np.nan)
        for i in np.flatnonzero(self.count):
            events = round(float(self.observed[i] * self.count[i]))
            bounds = binomtest(events, int(self.count[i])).proportion_ci()
            low[i], high[i] = bounds.low, bounds.high
        return low, high


def reliability(
    y_true: ArrayLike,
    proba: ArrayLike,
    classes: ArrayLike,
    bins: int = ECE_BINS,
    weights: ArrayLike | None = None,
) -> Reliability:
    """Calibration curve over bins of equal width, closed below; the last bin is closed above as well.

    Two classes: p(y=1|x) over [0, 1] against how often y = 1, "equally spaced probability bins" as the paper has it.
    This also sees errors that the confidence of the predicted class hides, where p = 0.2 and p = 0.8 share a bin.
    More classes: confidence of the predicted class against how often it is right.
    """
    index, p, w = _check(y_true, proba, classes, weights)
    if p.shape[1] == 2:
        probability, event = p[:, 1], index == 1
    else:
        probability, event = p.max(axis=1), p.argmax(axis=1) == index
    which = np.minimum((probability * bins).astype(np.int64), bins - 1)
    count = np.bincount(which, weights=w, minlength=bins)
    filled = np.where(count == 0, np.nan, count)
    promised, observed = (
        np.bincount(which, weights=values if w is None else values * w, minlength=bins) / filled
        for values in (probability, event)
    )
    return Reliability(count, promised, observed)


def expected_calibration_error(
    y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """Mean over rows of |observed − promised| in the row's bin, with ten bins as :func:`reliability` cuts them."""
    curve = reliability(y_true, proba, classes, weights=weights)
    return float(np.nansum(curve.count * np.abs(curve.observed - curve.promised)) / curve.count.sum())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="nll",
            label="NLL",
            higher_is_better=False,
            function=negative_log_likelihood,
            full_name="negative log-likelihood",
            meaning="How surprised a method is by what really happened, on average over rows: minus the logarithm of "
            "the probability that it gave to the true class. 0 is certainty that was always right, 0.69 is a coin for "
            "two classes, and being sure and wrong is what costs most.",
        ),
        Metric(
            name="accuracy",
            label="Accuracy",
            higher_is_better=True,
            function=accuracy,
            full_name="share of rows that are called right",
            meaning="The class with the highest probability is compared with the true one. Where one class is rare, "
            "calling every row the other class already looks accurate.",
        ),
        Metric(
            name="ece",
            label="ECE",
            higher_is_better=False,
            function=expected_calibration_error,
            full_name="expected calibration error",
            meaning="How far promised probabilities are from what came, on average: of rows that were promised about "
            "30 %, about 30 % should have the event. 0.05 is to be off by five percentage points.",
        ),
        Metric(
            name="brier",
            label="Brier",
            higher_is_better=False,
            function=brier_score,
            full_name="Brier score",
            meaning="Mean squared distance between the probability and what happened (1 or 0). 0 is perfect, and for "
            "two classes saying 50 % every time gives 0.25.",
        ),
        Metric(
            name="auroc",
            label="AUROC",
            higher_is_better=True,
            function=auroc,
            full_name="area under the receiver operating characteristic curve, also called c-statistic",
            meaning="The chance that a row with the event gets a higher probability than one without. 0.5 is no better "
            "than drawing lots, 1 is perfect order; it does not say whether the probabilities themselves are right.",
        ),
        Metric(
            name="auprc",
            label="AUPRC",
            higher_is_better=True,
            function=auprc,
            full_name="area under the precision-recall curve",
            meaning="The share of true alarms among all alarms, averaged over every possible alarm level. Drawing lots "
            "gives the share of rows with the event, so it can only be compared where that share is alike.",
        ),
    )
}


def find_metric(name: str) -> Metric:
    """The metric of that name."""
    if name not in METRICS:
        raise ValueError(f"There is no metric {name!r}; there are {', '.join(METRICS)}.")
    return METRICS[name]


def score(
    y_true: ArrayLike,
    proba: ArrayLike,
    classes: ArrayLike,
    names: Iterable[str],
    weights: ArrayLike | None = None,
) -> dict[str, float]:
    """Several metrics of the same predictions.

    Parameters
    ----------
    y_true : array of shape (n,)
        True labels.
    proba : array of shape (n, K)
        Rows sum to one.
    classes : array of shape (K,)
        The class of each column, as a classifier's `classes_`.
    names : iterable of str
        Keys of `METRICS`.
    weights : array of shape (n,), optional
        How much each row counts.

    Returns
    -------
    dict
        Name to value, in the order of `names`.
    """
    return {name: find_metric(name)(y_true, proba, classes, weights) for name in names}


def _check(
    y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Column of each row's true class, and the probabilities in float64 with rows that sum to one exactly.

    Of rows that have weights, those above zero, with their weights.
    """
    y: NDArray[Any] = np.asarray(y_true)
    p: NDArray[np.float64] = np.asarray(proba, dtype=np.float64)
    names: NDArray[Any] = np.asarray(classes)
    if len(y) == 0:
        raise ValueError("There are no rows to score.")
    if p.shape != (len(y), len(names)):
        raise ValueError(
            f"Probabilities have shape {p.shape}, but {len(y)} labels and {len(names)} classes need "
            f"({len(y)}, {len(names)})."
        )
    if len(names) < 2:
        raise ValueError(f"Scoring needs at least two classes; only {names.tolist()} was given.")
    bad = ~np.isfinite(p).all(axis=1) | (p < 0).any(axis=1)
    bad |= np.abs(p.sum(axis=1) - 1) > ROW_SUM_TOLERANCE
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"Row {row} holds {p[row].tolist()}, which are not probabilities: finite, ≥ 0, sum 1.")
    hits = y[:, None] == names[None, :]  # (n, K)
    unknown = ~hits.any(axis=1)
    if unknown.any():
        row = int(unknown.argmax())
        raise ValueError(f"Row {row} has label {y[row]!r}, which is not among the classes {names.tolist()}.")
    index, p = hits.argmax(axis=1), p / p.sum(axis=1, keepdims=True)
    if weights is None:
        return index, p, None
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != y.shape or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise ValueError(f"Weights must be {len(y)} numbers from zero on, not all of them zero.")
    return index[w > 0], p[w > 0], w[w > 0]
