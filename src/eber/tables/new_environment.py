"""What a model says in a new environment: recalibrated once labels were seen, and with how far off it may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eber.tuning.calibration import INTERCEPT_SD, SLOPE_SD, Calibration
from eber.tuning.few_labels import MIN_LABELS, EnvironmentGain

LEVEL = 0.9
"""Probability with which a new environment lies between `low` and `high`."""
TWO_OF_THREE = 0.967
"""Standard deviations within which two of three draws from a normal distribution lie."""

Array = NDArray[np.float64]


def recalibrated(calibration: Calibration | None, proba: Array, deviations: Array | None) -> Array:
    """The probabilities that are given out: the classifier's own, (n, K), until labels of the environment were seen."""
    if calibration is None or not calibration.n_labels:
        return proba
    return calibration.apply(proba, deviations)


def interval(calibration: Calibration, proba: Array, deviations: Array | None, level: float) -> tuple[Array, Array]:
    """Where each probability lies in a new environment with probability `level`, (n, K) each.

    Before any label the classifier's own probability may lie outside, where it was too sure of itself in most left-out
    environments; the interval then reaches up to it.
    """
    low, high = calibration.interval(proba, level, deviations)
    given = recalibrated(calibration, proba, deviations)
    return np.minimum(low, given), np.maximum(high, given)


def interval_columns(
    calibration: Calibration, proba: Array, deviations: Array | None, level: float, classes: NDArray[Any], positive: str
) -> Iterator[tuple[str, Array]]:
    """`low` and `high`: of the positive one of two classes, of the predicted one of several."""
    low, high = interval(calibration, proba, deviations, level)
    if len(classes) == 2:
        shown = np.full(len(proba), [str(label) for label in classes].index(positive) if positive else 1)
    else:
        shown = recalibrated(calibration, proba, deviations).argmax(1)
    yield "low", np.take_along_axis(low, shown[:, None], 1)[:, 0]
    yield "high", np.take_along_axis(high, shown[:, None], 1)[:, 0]


def say_spread(calibration: Calibration) -> list[str]:
    """How environments differ, for the model card; `calibration` is before any label."""
    if not calibration.is_measured:
        return [
            "Not known: that needs leave-one-environment-out predictions of at least three environments, and there are "
            f"{calibration.n_environments}. Labels of a new environment are weighed by fixed spreads ({FIXED})."
        ]
    centre, slope_sd, intercept_sd = (
        float(calibration.mean[0]),
        float(np.sqrt(calibration.covariance[0, 0])),
        float(np.sqrt(calibration.covariance[1, 1])),
    )
    low, high = np.exp(centre - TWO_OF_THREE * slope_sd), np.exp(centre + TWO_OF_THREE * slope_sd)
    shift = TWO_OF_THREE * np.sqrt(2) * intercept_sd  # of the log-odds of one class against another
    rare, common = special.expit(special.logit(0.2) - shift), special.expit(special.logit(0.2) + shift)
    return [
        f"In each of {calibration.n_environments} environments that a fit had not seen, p(y|x) was turned into "
        "softmax(s log p(y|x) + b) with the slope s and the intercepts b that suit this environment best.",
        f"Slope: about {np.exp(centre):.2f}, in two of three environments between {low:.2f} and {high:.2f}. Below 1 "
        "the model is too sure of itself in a new environment, above 1 not sure enough.",
        f"Intercepts: in two of three environments the log-odds of one class against another were off by at most "
        f"{shift:.2f}; by as much, a probability of 0.20 becomes {rare:.2f} or {common:.2f}.",
    ]


FIXED = f"log s ~ N(0, {SLOPE_SD}²), b ~ N(0, {INTERCEPT_SD}²)"


def say_learned(
    calibration: Calibration, gain: EnvironmentGain | None, whose: str, label: str, classes: NDArray[Any], positive: str
) -> list[str]:
    """What labels have changed, in sentences; `whose` they are begins the first."""
    slope, b = float(np.exp(calibration.mean[0])), calibration.mean[1 : 1 + len(classes)]
    names = [str(name) for name in classes]
    if len(names) == 2:
        event = names.index(positive) if positive else 1
        shift = f"intercept {b[event] - b[1 - event]:+.2f} on the log-odds of {label} = {names[event]}"
    else:
        pairs = zip(names, b - b.mean(), strict=True)
        shift = "intercepts " + ", ".join(f"{name} {value:+.2f}" for name, value in pairs)
    sentences = [f"{whose}: slope {slope:.2f}, {shift}."]
    if calibration.is_measured:
        sentences.append(
            f"How far labels may move it was learned from {calibration.n_environments} training environments, each "
            "predicted while it was left out."
        )
    else:
        sentences.append(
            f"The model does not know how environments differ, so that fixed spreads were used ({FIXED}) and there are "
            "no columns low and high: that needs leave-one-environment-out scores (no --no-scores) of at least three "
            "environments."
        )
    return [*sentences, *_say_gain(gain)]


def _say_gain(gain: EnvironmentGain | None) -> Sequence[str]:
    if gain is None:
        return []
    what = "The training environments' own predictions p(y|x,e)"
    if np.isnan(gain.mean):
        return [f"{what} were not tried: they need at least {MIN_LABELS} labels."]
    change = f"{'lowered' if gain.mean > 0 else 'raised'} NLL by {abs(gain.mean):.3f} (standard error "
    figures = f"over labelled rows that were left out they {change}{gain.standard_error:.3f})"
    return [f"{what} are used as well: {figures}." if gain.is_clear else f"{what} are not used: {figures}."]
