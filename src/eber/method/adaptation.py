"""Adaptation to the unlabelled rows of a new environment.

The mixture pi of training environments that best explains new rows maximises

    sum_i log sum_e pi_e p(e|x_i) / pi0_e,

with pi0_e the mean of p(e|x) over the training rows: p(e|x) / pi0_e is p(x|e) up to a factor that does not depend
on e. This is Laird's (1978) nonparametric maximum likelihood with the training environments as support. EM climbs it
surely but slowly where environments overlap, so each EM step competes with a Newton step.
Prediction then uses p(e|x) pi_e / pi0_e, renormalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special, stats

MAX_ITERATIONS = 200
RIDGE = 1e-10
"""Added to the diagonal of the scaled Hessian, which is singular when two environments look the same."""
HALVINGS = 10

MIN_ROWS_PER_ENVIRONMENT = 20
SIGNIFICANCE = 0.01
HELPED_SHARE = 0.75
"""Share of the left-out training environments in which adapting must have lowered NLL for it to be trusted."""
FLAT_SHARPNESS = 0.02
"""Below this p(e|x) says too little; Gaussian prototypes, which adaptation gets right, have 0.03 to 0.07."""


@dataclass(frozen=True)
class Adaptation:
    """An estimated mixture of the training environments, and how far to trust it.

    Attributes
    ----------
    mixture, training_mixture : (m,)
        pi and pi0.
    n_rows : int
        Rows the mixture was estimated from.
    log_likelihood_gain : float
        Gain over the training mixture, per row in nats.
    p_value : float
        Likelihood-ratio test of the training mixture against any other, chi-squared with m - 1 degrees of freedom.
    sharpness : float
        Share of the uncertainty about e that x removes, 1 - H(e|x) / H(e): 0 when p(e|x) says nothing.
    effective_rows : float
        n_rows times sharpness: about how many rows of known environment the estimate is worth.
    reasons : tuple of str
        Why it should not be trusted; empty when nothing speaks against it.
    """

    mixture: NDArray[np.float64]
    training_mixture: NDArray[np.float64]
    n_rows: int
    log_likelihood_gain: float
    p_value: float
    sharpness: float
    effective_rows: float
    reasons: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether nothing was found that speaks against it."""
        return not self.reasons

    def shrunk(self, strength: float) -> Adaptation:
        """The mixture moved from the training one towards the estimate: none of the way for 0, all of it for 1."""
        return replace(self, mixture=strength * self.mixture + (1 - strength) * self.training_mixture)

    @property
    def log_ratio(self) -> NDArray[np.float64]:
        """Log pi_e / pi0_e, what is added to log p(e|x), (m,)."""
        with np.errstate(divide="ignore"):
            ratio: NDArray[np.float64] = np.log(self.mixture) - np.log(self.training_mixture)
        return ratio


def estimate_mixture(
    log_p_e_given_x: NDArray[np.float64], training_mixture: NDArray[np.float64], tolerance: float = 1e-7
) -> NDArray[np.float64]:
    """The mixture of environments with the largest likelihood, (n, m) and (m,) -> (m,).

    It ends when the likelihood is within `tolerance` nats a row of its maximum: by concavity, max_e D_e - 1 bounds
    what is left to gain, with D_e the mean over rows of p(x|e) / p(x) (Lindsay 1983).
    """
    log_ratio = log_p_e_given_x - np.log(training_mixture)
    ratio = np.exp(log_ratio - log_ratio.max(1, keepdims=True))  # (n, m), proportional to p(x|e) in each row
    mixture: NDArray[np.float64] = training_mixture / training_mixture.sum()
    for _ in range(MAX_ITERATIONS):
        scaled = ratio / (ratio @ mixture)[:, None]  # p(x|e) / p(x)
        gradient = scaled.mean(0)  # D_e
        if gradient.max() - 1 < tolerance:
            break
        newton = _newton_target(scaled, gradient)
        steps = [mixture + 0.5**halvings * (newton - mixture) for halvings in range(HALVINGS)]
        mixture = max((mixture * gradient, *steps), key=lambda candidate: _penalised_log_likelihood(ratio, candidate))
        mixture = mixture / mixture.sum()
    return mixture


def _penalised_log_likelihood(ratio: NDArray[np.float64], mixture: NDArray[np.float64]) -> float:
    """Mean log-likelihood of weights that need not sum to one, less their sum: its maximum is the best mixture."""
    with np.errstate(divide="ignore"):
        return float(np.log(ratio @ mixture).mean() - mixture.sum())


def _newton_target(scaled: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    """The non-negative weights that maximise the second-order expansion at the mixture behind `scaled`.

    With H = mean of scaled scaled', the expansion is -v'Hv/2 + v'(2D - 1) up to a constant (Kim, Carbonetto, Stephens
    & Anitescu 2020), which a Cholesky factor of H turns into non-negative least squares.
    """
    hessian = scaled.T @ scaled / len(scaled)
    scale = np.sqrt(hessian.diagonal())
    scale[scale == 0] = 1.0  # an environment that no row can come from
    # Upper triangular; with the scale taken out the diagonal is one, whatever the environments' weights.
    factor = linalg.cholesky(hessian / np.outer(scale, scale) + RIDGE * np.eye(len(scale)))
    target = linalg.solve_triangular(factor, (2 * gradient - 1) / scale, trans="T")
    weights: NDArray[np.float64] = optimize.nnls(factor, target, maxiter=100 * len(scale))[0] / scale
    return weights


def adapt_mixture(
    log_p_e_given_x: NDArray[np.float64], training_mixture: NDArray[np.float64], doubts: tuple[str, ...] = ()
) -> Adaptation:
    """Estimate the mixture of new rows and judge it. `doubts` are reasons known before any row was seen."""
    n, m = log_p_e_given_x.shape
    mixture = estimate_mixture(log_p_e_given_x, training_mixture)
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture) - np.log(training_mixture)
    gain = float(special.logsumexp(log_p_e_given_x + log_weights, axis=1).mean())
    conditional = -(np.exp(log_p_e_given_x) * log_p_e_given_x).sum(1).mean()
    marginal = special.entr(training_mixture).sum()
    sharpness = float(np.clip(1 - conditional / marginal, 0.0, 1.0)) if m > 1 else 0.0
    p_value = float(stats.chi2.sf(2 * n * max(gain, 0.0), max(m - 1, 1)))
    reasons = list(doubts)
    if m == 1:
        reasons.append("there is one training environment, so there is nothing to reweight")
    if n < MIN_ROWS_PER_ENVIRONMENT * m:
        few = "1 row is few" if n == 1 else f"{n} rows are few"
        reasons.append(f"{few} for {m} environments; give at least {MIN_ROWS_PER_ENVIRONMENT * m}")
    if m > 1 and sharpness < FLAT_SHARPNESS:
        reasons.append(f"p(e|x) is almost flat (sharpness {sharpness:.3f}): x hardly tells environments apart")
    if m > 1 and p_value > SIGNIFICANCE:
        reasons.append(f"the likelihood is flat: the new rows fit the training mixture as well (p = {p_value:.2g})")
    return Adaptation(
        mixture=mixture,
        training_mixture=training_mixture,
        n_rows=n,
        log_likelihood_gain=gain,
        p_value=p_value,
        sharpness=sharpness,
        effective_rows=n * sharpness,
        reasons=tuple(reasons),
    )


@dataclass(frozen=True)
class AdaptationRecord:
    """What adapting did in training environments that a fit had not seen.

    Attributes
    ----------
    environments : tuple of str
    before, after : (k,)
        NLL in each of them, before and after adapting to its rows without their labels, with the strength that the
        others of them chose.
    strength : float
        How far to move from the training mixture to the estimated one: what all of them chose.
    """

    environments: tuple[str, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    strength: float = 1.0

    @property
    def helped(self) -> bool:
        """Whether adapting lowered NLL on average, and in three of four environments."""
        gain = self.before - self.after
        return bool(gain.mean() > 0 and (gain > 0).mean() >= HELPED_SHARE)

    def __str__(self) -> str:
        """In a sentence."""
        gain = self.before - self.after
        change = f"lowered it by {gain.mean():.3f}" if gain.mean() > 0 else f"raised it by {-gain.mean():.3f}"
        return (
            f"in {int((gain > 0).sum())} of {len(gain)} training environments that were left out adapting lowered NLL; "
            f"on average it {change}"
        )


def mean_adaptation(adaptations: Sequence[Adaptation]) -> Adaptation:
    """One estimate for several models of the same rows: means, the largest p-value, and every reason once."""

    def mean(name: str) -> Any:
        return np.mean([getattr(adaptation, name) for adaptation in adaptations], 0)

    return Adaptation(
        mixture=mean("mixture"),
        training_mixture=mean("training_mixture"),
        n_rows=adaptations[0].n_rows,
        log_likelihood_gain=float(mean("log_likelihood_gain")),
        p_value=max(adaptation.p_value for adaptation in adaptations),
        sharpness=float(mean("sharpness")),
        effective_rows=float(mean("effective_rows")),
        reasons=tuple(dict.fromkeys(reason for adaptation in adaptations for reason in adaptation.reasons)),
    )
