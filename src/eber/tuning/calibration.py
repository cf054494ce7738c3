"""How environments differ in calibration, and what a few labels of a new one say.

In environment e the probabilities p(y|x) of a classifier that has not seen it become

    p'(k|x) = exp(u_k) / sum_j exp(u_j),      u = s log p(.|x) + b,      s = exp(a),

with slope s and one intercept for each of the K classes. Over environments a ~ N(mu, tau_a²) and b_k ~ N(0, tau_b²),
estimated from what is said about training environments while they are left out: empirical Bayes, by EM with Laplace's
approximation in each environment. Labels of a new environment give a posterior in the same form, and the distribution
without labels says how far a probability may be off there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from eber.tuning.left_out import SMALLEST

SLOPE_SD, INTERCEPT_SD = 0.3, 0.5
"""Spreads of log s and of b where nothing is known; they count as one more environment where something is."""
FALLBACK_ENVIRONMENTS = 1.0
MAX_STEPS, MAX_ROUNDS, TOLERANCE = 50, 200, 1e-6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """A normal distribution of (log s, b_1 ... b_K) in a new environment.

    Attributes
    ----------
    mean : (1 + K,)
    covariance : (1 + K, 1 + K)
    n_environments : int
        Training environments that were left out to estimate it.
    n_labels : int
        Labels of the new environment that it has seen.
    """

    mean: Array
    covariance: Array
    n_environments: int
    n_labels: int = 0

    def apply(self, proba: Array) -> Array:
        """p'(y|x) at the mean, (n, K) -> (n, K)."""
        p: Array = special.softmax(_logits(_log(proba), self.mean), axis=1)
        return p

    def interval(self, proba: Array, level: float) -> tuple[Array, Array]:
        """Where p'(k|x) lies with probability `level`, (n, K) each; by the delta method on the log-odds of class k."""
        log_p, p = _log(proba), self.apply(proba)
        others = np.clip(1 - p, SMALLEST, None)
        gradient = -p[:, None, :] / others[:, :, None]  # d log-odds_k / d u_j, (n, K, K)
        K = p.shape[1]
        gradient[:, np.arange(K), np.arange(K)] = 1.0
        slope = (gradient * _slope_effect(log_p, self.mean)[:, None]).sum(2)
        gradient = np.concatenate([slope[:, :, None], gradient], 2)  # (n, K, 1 + K)
        spread = np.sqrt(np.einsum("nki,ij,nkj->nk", gradient, self.covariance, gradient))
        return self._around(special.logit(np.clip(p, SMALLEST, 1 - SMALLEST)), spread, level)

    def rate_interval(self, proba: Array, level: float) -> tuple[Array, Array]:
        """Where the share of each class among these rows lies with probability `level`, (K,) each.

        The share that is observed scatters around it besides, by chance alone: that is part of the interval.
        """
        log_p, p = _log(proba), self.apply(proba)
        rate = np.clip(p.mean(0), SMALLEST, 1 - SMALLEST)
        jacobian = np.einsum("nk,kj->nkj", p, np.eye(p.shape[1])) - p[:, :, None] * p[:, None, :]  # dp_k / du_j
        slope = (jacobian * _slope_effect(log_p, self.mean)[:, None]).sum(2)  # (n, K)
        gradient = np.concatenate([slope.mean(0)[:, None], jacobian.mean(0)], 1)  # (K, 1 + K)
        variance = np.einsum("ki,ij,kj->k", gradient, self.covariance, gradient) + (p * (1 - p)).sum(0) / len(p) ** 2
        return self._around(special.logit(rate), np.sqrt(variance) / (rate * (1 - rate)), level)

    def _around(self, log_odds: Array, spread: Array, level: float) -> tuple[Array, Array]:
        # Spreads that were estimated from k environments: Student's quantiles with k - 1 degrees of freedom.
        quantile = float(stats.t.ppf((1 + level) / 2, max(self.n_environments - 1, 1)))
        low: Array = special.expit(log_odds - quantile * spread)
        high: Array = special.expit(log_odds + quantile * spread)
        return low, high

    def after(self, proba: Array, y_index: NDArray[np.int64]) -> Calibration:
        """The posterior once labels of rows with these probabilities have been seen: its mode, and Laplace's spread."""
        mean, covariance = _posterior(_log(proba), y_index, self.mean, _inverse(self.covariance))
        return Calibration(mean, covariance, self.n_environments, self.n_labels + len(y_index))


def estimate_calibration(proba: Array, y_index: NDArray[np.int64], environments: NDArray[Any]) -> Calibration:
    """The distribution over environments, from probabilities of rows whose environment was left out.

    Parameters
    ----------
    proba : (n, K)
        Rows that were never left out are NaN, and are not looked at.
    y_index, environments : (n,)
    """
    known = ~np.isnan(proba).any(1)
    K = proba.shape[1]
    groups = [np.flatnonzero(known & (environments == name)) for name in np.unique(environments[known])]
    centre, slope_variance, intercept_variance = 0.0, SLOPE_SD**2, INTERCEPT_SD**2
    k = len(groups)
    for _ in range(MAX_ROUNDS):
        mean = np.array([centre] + [0.0] * K)
        precision = np.diag([1 / slope_variance] + [1 / intercept_variance] * K)
        found = [_posterior(_log(proba[rows]), y_index[rows], mean, precision) for rows in groups]
        updated = _update(found, K)
        change = np.abs(np.subtract(updated, (centre, slope_variance, intercept_variance))).max()
        centre, slope_variance, intercept_variance = updated
        if change < TOLERANCE:
            break
    # The centre is itself known only from k environments.
    slope_variance *= 1 + 1 / (k + FALLBACK_ENVIRONMENTS)
    covariance = np.diag([slope_variance] + [intercept_variance] * K)
    return Calibration(np.array([centre] + [0.0] * K), covariance, k)


def _update(found: Sequence[tuple[Array, Array]], K: int) -> tuple[float, float, float]:
    """Centre of log s, and variances of log s and b, from the environments' posteriors and the fallback."""
    total = len(found) + FALLBACK_ENVIRONMENTS
    slopes = np.array([mode[0] for mode, _ in found])
    intercepts = np.array([mode[1:] for mode, _ in found]).reshape(-1, K)
    slope_spread = sum(covariance[0, 0] for _, covariance in found)
    intercept_spread = sum(np.trace(covariance[1:, 1:]) for _, covariance in found) / K
    centre = float(slopes.sum() / total)
    slope = ((slopes - centre) ** 2).sum() + slope_spread + FALLBACK_ENVIRONMENTS * (SLOPE_SD**2 + centre**2)
    intercept = (intercepts**2).sum() / K + intercept_spread + FALLBACK_ENVIRONMENTS * INTERCEPT_SD**2
    return centre, float(slope / total), float(intercept / total)


def _posterior(log_p: Array, y_index: NDArray[np.int64], mean: Array, precision: Array) -> tuple[Array, Array]:
    """Mode and Laplace covariance of (log s, b) given labels, by Fisher scoring with halved steps; log_p is (n, K)."""
    theta, value = mean, _log_posterior(log_p, y_index, mean, mean, precision)
    for _ in range(MAX_STEPS):
        gradient, information = _derivatives(log_p, y_index, theta)
        step = np.linalg.solve(information + precision, gradient - precision @ (theta - mean))
        for _ in range(MAX_STEPS):
            candidate = theta + step
            reached = _log_posterior(log_p, y_index, candidate, mean, precision)
            if reached >= value:
                break
            step = step / 2
        else:
            break
        gained = reached - value
        theta, value = candidate, reached
        if gained < 1e-10:
            break
    _, information = _derivatives(log_p, y_index, theta)
    return theta, _inverse(information + precision)


def _log_posterior(log_p: Array, y_index: NDArray[np.int64], theta: Array, mean: Array, precision: Array) -> float:
    u = _logits(log_p, theta)
    likelihood = (u[np.arange(len(u)), y_index] - special.logsumexp(u, axis=1)).sum()
    return float(likelihood - (theta - mean) @ precision @ (theta - mean) / 2)


def _derivatives(log_p: Array, y_index: NDArray[np.int64], theta: Array) -> tuple[Array, Array]:
    """Gradient of the log-likelihood, (1 + K,), and Fisher's information."""
    n, K = log_p.shape
    p = special.softmax(_logits(log_p, theta), axis=1)
    # du / dtheta, (n, K, 1 + K)
    jacobian = np.concatenate([_slope_effect(log_p, theta)[:, :, None], np.tile(np.eye(K), (n, 1, 1))], 2)
    gradient = np.einsum("nk,nki->i", np.eye(K)[y_index] - p, jacobian)
    averaged = np.einsum("nk,nki->ni", p, jacobian)
    information = np.einsum("nk,nki,nkj->ij", p, jacobian, jacobian) - averaged.T @ averaged
    return gradient, information


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _log(proba: Array) -> Array:
    logs: Array = np.log(np.clip(proba, SMALLEST, None))
    return logs


def _logits(log_p: Array, theta: Array) -> Array:
    u: Array = np.exp(theta[0]) * log_p + theta[1:]
    return u


def _slope_effect(log_p: Array, theta: Array) -> Array:
    """du / da, (n, K)."""
    effect: Array = np.exp(theta[0]) * log_p
    return effect
