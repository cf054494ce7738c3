"""How environments differ in calibration, and what a few labels of a new one say.

In environment e the probabilities p(y|x) of a classifier that has not seen it become

    p'(k|x) = exp(u_k) / sum_j exp(u_j),      u = s log p(.|x) + b,      s = exp(a),

with slope s and one intercept for each of the K classes. Over environments a ~ N(mu, tau_a²) and b_k ~ N(0, tau_b²),
estimated from what is said about training environments while they are left out: empirical Bayes, by EM with Laplace's
approximation in each environment. Labels of a new environment give a posterior in the same form, and the distribution
without labels says how far a probability may be off there.

A classifier that has p(y|x,e) for m training environments may let each of them speak louder or softer,

    u = s log p(.|x) + b + sum_e w_e d_e(x),      d_e(x) = log p(.|x,e) - log p(.|x),      w_e ~ N(0, 0.3²),

a log-linear pool; d is called `deviations` here, (n, K, m), and there are none of them otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eber.tuning.left_out import SMALLEST

SLOPE_SD, INTERCEPT_SD = 0.3, 0.5
"""Spreads of log s and of b where nothing is known."""
TYPICAL_SLOPE_SD, TYPICAL_INTERCEPT_SD, TYPICAL_ENVIRONMENTS = 0.15, 0.2, 1.0
"""Where something is known, spreads that are added to it, as if so many further environments had shown them. Inside
the training environments of eleven tables ten labels then do less harm than with wider ones, at the same NLL; what is
narrower, or counts for more, holds back where environments do differ (docs/new-environments.md).
"""
ENVIRONMENT_SD = 0.3
"""Spread of the weights w of the environments' own predictions."""
MIN_ENVIRONMENTS = 3
"""Below, nothing is said about how environments differ."""
MAX_VALUES = 4_000_000
"""Of derivatives that are held at a time."""
MAX_STEPS, MAX_ROUNDS, TOLERANCE = 50, 200, 1e-6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """A normal distribution of theta = (log s, b_1 ... b_K, w_1 ... w_m) in a new environment; m is often zero.

    Attributes
    ----------
    mean : (1 + K + m,)
    covariance : (1 + K + m, 1 + K + m)
    n_environments : int
        Training environments that were left out to estimate it; zero where the spreads are the fixed ones.
    n_labels : int
        Labels of the new environment that it has seen.
    before : (1 + K + m, 1 + K + m) or None
        The covariance before any label; None where it is still that.
    """

    mean: Array
    covariance: Array
    n_environments: int
    n_labels: int = 0
    before: Array | None = None

    @property
    def is_measured(self) -> bool:
        """Whether enough environments were left out to say how far off a probability may be in a new one."""
        return self.n_environments >= MIN_ENVIRONMENTS

    def apply(self, proba: Array, deviations: Array | None = None) -> Array:
        """p'(y|x) at the mean, (n, K) -> (n, K)."""
        p: Array = special.softmax(_logits(_log(proba), self.mean, self._heard(deviations, proba)), axis=1)
        return p

    def interval(self, proba: Array, level: float, deviations: Array | None = None) -> tuple[Array, Array]:
        """Where p'(k|x) lies with probability `level`, (n, K) each; by the delta method on the log-odds of class k."""
        n, K = proba.shape
        D = self._heard(deviations, proba)
        low, high = np.empty((n, K)), np.empty((n, K))
        rows_at_a_time = max(MAX_VALUES // (K * max(len(self.mean), K)), 1)
        for start in range(0, n, rows_at_a_time):
            rows = slice(start, start + rows_at_a_time)
            low[rows], high[rows] = self._interval(_log(proba[rows]), D[rows], level)
        return low, high

    def _interval(self, log_p: Array, D: Array, level: float) -> tuple[Array, Array]:
        p: Array = special.softmax(_logits(log_p, self.mean, D), axis=1)
        K = p.shape[1]
        of_logits = -p[:, None, :] / np.clip(1 - p, SMALLEST, None)[:, :, None]  # d log-odds_k / d u_j, (n, K, K)
        of_logits[:, np.arange(K), np.arange(K)] = 1.0
        gradient = of_logits @ _jacobian(log_p, self.mean, D)  # (n, K, 1 + K + m)
        log_odds = special.logit(np.clip(p, SMALLEST, 1 - SMALLEST))
        return self._around(log_odds, gradient, np.zeros_like(log_odds), level)

    def rate_interval(self, proba: Array, level: float, deviations: Array | None = None) -> tuple[Array, Array]:
        """Where the share of each class among these rows lies with probability `level`, (K,) each.

        The share that is observed scatters around it besides, by chance alone: that is part of the interval.
        """
        log_p, D = _log(proba), self._heard(deviations, proba)
        p: Array = special.softmax(_logits(log_p, self.mean, D), axis=1)
        rate = np.clip(p.mean(0), SMALLEST, 1 - SMALLEST)
        jacobian = _jacobian(log_p, self.mean, D)
        of_rate = p[:, :, None] * (jacobian - np.einsum("nj,nji->ni", p, jacobian)[:, None])  # dp_k / dtheta
        scale = rate * (1 - rate)
        by_chance = (p * (1 - p)).sum(0) / len(p) ** 2
        return self._around(special.logit(rate), of_rate.mean(0) / scale[:, None], by_chance / scale**2, level)

    def _around(self, log_odds: Array, gradient: Array, by_chance: Array, level: float) -> tuple[Array, Array]:
        """The interval around log-odds (..., K) with these derivatives by theta (..., K, 1 + K + m)."""
        variance = _quadratic(gradient, self.covariance)
        # A variance that was estimated from k environments has k - 1 degrees of freedom, and Student's quantiles.
        # Labels leave less of it, and what they leave depends the less on it: d log(after) / d log(before) is
        # after / before, and Satterthwaite's rule has k - 1 over its square.
        left = 1.0 if self.before is None else variance / np.maximum(_quadratic(gradient, self.before), SMALLEST)
        freedom = max(self.n_environments - 1, 1) / np.clip(left, SMALLEST, 1.0) ** 2
        half = special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance + by_chance)
        low: Array = special.expit(log_odds - half)
        high: Array = special.expit(log_odds + half)
        return low, high

    def after(self, proba: Array, y_index: NDArray[np.int64], deviations: Array | None = None) -> Calibration:
        """The posterior once labels of rows with these probabilities have been seen: its mode, and Laplace's spread."""
        D = self._heard(deviations, proba)
        mean, covariance = _posterior(_log(proba), y_index, self.mean, _inverse(self.covariance), D)
        before = self.covariance if self.before is None else self.before
        return Calibration(mean, covariance, self.n_environments, self.n_labels + len(y_index), before)

    def _heard(self, deviations: Array | None, proba: Array) -> Array:
        """The deviations that there are weights for, (n, K, m): all of them or none."""
        has_weights = len(self.mean) > 1 + proba.shape[1]
        return deviations if has_weights and deviations is not None else _no_deviations(proba)

    def with_environments(self, m: int) -> Calibration:
        """The same with weights of m environments' own predictions, of which nothing is known yet."""
        size = len(self.mean)

        def wider(covariance: Array) -> Array:
            return np.block([[covariance, np.zeros((size, m))], [np.zeros((m, size)), ENVIRONMENT_SD**2 * np.eye(m)]])

        return Calibration(
            np.concatenate([self.mean, np.zeros(m)]),
            wider(self.covariance),
            self.n_environments,
            self.n_labels,
            None if self.before is None else wider(self.before),
        )


def fixed_calibration(K: int) -> Calibration:
    """Spreads for K classes where no environment could be left out to estimate them."""
    return Calibration(np.zeros(1 + K), np.diag([SLOPE_SD**2] + [INTERCEPT_SD**2] * K), 0)


def restored_calibration(entry: Mapping[str, Any], K: int) -> Calibration:
    """A calibration of K classes from the plain data that it was saved as."""
    calibration = Calibration(**entry)
    size = len(calibration.mean)
    spreads = [calibration.covariance] + ([] if calibration.before is None else [calibration.before])
    sound = (
        size >= 1 + K
        and bool(np.isfinite(calibration.mean).all())
        and all(spread.shape == (size, size) and np.isfinite(spread).all() for spread in spreads)
        and all(np.allclose(spread, spread.T) and (np.linalg.eigvalsh(spread) > 0).all() for spread in spreads)
        and all(type(n) is int and n >= 0 for n in (calibration.n_environments, calibration.n_labels))
    )
    if not sound:
        raise ValueError("its calibration is none")
    return calibration


def estimate_calibration(proba: Array, y_index: NDArray[np.int64], environments: NDArray[Any]) -> Calibration:
    """The distribution over environments, from probabilities of rows whose environment was left out.

    Parameters
    ----------
    proba : (n, K)
        Rows that were never left out are NaN, and are not looked at.
    y_index, environments : (n,)
        With fewer than `MIN_ENVIRONMENTS` of them the spreads are the fixed ones.
    """
    known = ~np.isnan(proba).any(1)
    K = proba.shape[1]
    rows_of = [np.flatnonzero(known & (environments == name)) for name in np.unique(environments[known])]
    groups = [(_log(proba[rows]), y_index[rows]) for rows in rows_of]
    if len(groups) < MIN_ENVIRONMENTS:
        return replace(fixed_calibration(K), n_environments=len(groups))
    centre, slope_variance, intercept_variance = 0.0, SLOPE_SD**2, INTERCEPT_SD**2
    k = len(groups)
    modes: list[Array | None] = [None] * k
    for _ in range(MAX_ROUNDS):
        mean = np.array([centre] + [0.0] * K)
        precision = np.diag([1 / slope_variance] + [1 / intercept_variance] * K)
        found = [
            _posterior(log_p, y, mean, precision, _no_deviations(log_p), start)
            for (log_p, y), start in zip(groups, modes, strict=True)
        ]
        modes = [mode for mode, _ in found]
        updated = _update(found, K)
        change = np.abs(np.subtract(updated, (centre, slope_variance, intercept_variance))).max()
        centre, slope_variance, intercept_variance = updated
        if change < TOLERANCE:
            break
    # The centre is itself known only from k environments.
    slope_variance *= 1 + 1 / (k + TYPICAL_ENVIRONMENTS)
    covariance = np.diag([slope_variance] + [intercept_variance] * K)
    return Calibration(np.array([centre] + [0.0] * K), covariance, k)


def _update(found: Sequence[tuple[Array, Array]], K: int) -> tuple[float, float, float]:
    """Centre of log s, and variances of log s and b, from the environments' posteriors and the typical spreads."""
    total = len(found) + TYPICAL_ENVIRONMENTS
    slopes = np.array([mode[0] for mode, _ in found])
    intercepts = np.array([mode[1:] for mode, _ in found]).reshape(-1, K)
    slope_spread = sum(covariance[0, 0] for _, covariance in found)
    intercept_spread = sum(np.trace(covariance[1:, 1:]) for _, covariance in found) / K
    centre = float(slopes.sum() / total)
    typical_slope = TYPICAL_ENVIRONMENTS * (TYPICAL_SLOPE_SD**2 + centre**2)
    slope = ((slopes - centre) ** 2).sum() + slope_spread + typical_slope
    intercept = (intercepts**2).sum() / K + intercept_spread + TYPICAL_ENVIRONMENTS * TYPICAL_INTERCEPT_SD**2
    return centre, float(slope / total), float(intercept / total)


def _posterior(
    log_p: Array,
    y_index: NDArray[np.int64],
    mean: Array,
    precision: Array,
    D: Array,
    start: Array | None = None,
) -> tuple[Array, Array]:
    """Mode and Laplace covariance of theta given labels, by Fisher scoring with halved steps; log_p is (n, K)."""
    theta = mean if start is None else start
    value = _log_posterior(log_p, y_index, theta, mean, precision, D)
    for _ in range(MAX_STEPS):
        gradient, information = _derivatives(log_p, y_index, theta, D)
        step = np.linalg.solve(information + precision, gradient - precision @ (theta - mean))
        for _ in range(MAX_STEPS):
            candidate = theta + step
            reached = _log_posterior(log_p, y_index, candidate, mean, precision, D)
            if reached >= value:
                break
            step = step / 2
        else:
            break
        gained = reached - value
        theta, value = candidate, reached
        if gained < 1e-10:
            break
    _, information = _derivatives(log_p, y_index, theta, D)
    return theta, _inverse(information + precision)


def _log_posterior(
    log_p: Array, y_index: NDArray[np.int64], theta: Array, mean: Array, precision: Array, D: Array
) -> float:
    u = _logits(log_p, theta, D)
    likelihood = (u[np.arange(len(u)), y_index] - special.logsumexp(u, axis=1)).sum()
    return float(likelihood - (theta - mean) @ precision @ (theta - mean) / 2)


def _derivatives(log_p: Array, y_index: NDArray[np.int64], theta: Array, D: Array) -> tuple[Array, Array]:
    """Gradient of the log-likelihood, (1 + K + m,), and Fisher's information."""
    p = special.softmax(_logits(log_p, theta, D), axis=1)
    jacobian = _jacobian(log_p, theta, D)
    averaged = np.einsum("nk,nki->ni", p, jacobian)
    gradient = jacobian[np.arange(len(p)), y_index].sum(0) - averaged.sum(0)
    weighted = (p[:, :, None] * jacobian).reshape(-1, len(theta))
    information = weighted.T @ jacobian.reshape(-1, len(theta)) - averaged.T @ averaged
    return gradient, information


def _jacobian(log_p: Array, theta: Array, D: Array) -> Array:
    """du / dtheta, (n, K, 1 + K + m)."""
    n, K = log_p.shape
    of_slope = np.exp(theta[0]) * log_p[:, :, None]
    return np.concatenate([of_slope, np.broadcast_to(np.eye(K), (n, K, K)), D], 2)


def _logits(log_p: Array, theta: Array, D: Array) -> Array:
    K = log_p.shape[1]
    u: Array = np.exp(theta[0]) * log_p + theta[1 : 1 + K] + D @ theta[1 + K :]
    return u


def _no_deviations(proba: Array) -> Array:
    return np.empty((*proba.shape, 0))


def _quadratic(gradient: Array, covariance: Array) -> Array:
    """Variance of a linear function of theta, (..., 1 + K + m) -> (...)."""
    variance: Array = ((gradient @ covariance) * gradient).sum(-1)
    return variance


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _log(proba: Array) -> Array:
    logs: Array = np.log(np.clip(proba, SMALLEST, None))
    return logs
