"""Signs of a bad fit, computed once after training, each with advice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize, special
from torch import Tensor

from eber.method.aggregates import at_label
from eber.method.distributions import soft_bound, standard_normal_draws
from eber.method.inference import entropy, evenly, in_chunks
from eber.method.model import EBERNetworks

MIN_ROWS, MAX_ROWS, MAX_ELEMENTS = 256, 2048, 1 << 21
"""Diagnostics look at no more training rows than this, and with many environments at fewer, so that arrays stay within
MAX_ELEMENTS; the rows are drawn evenly."""
COLLAPSE_DRAWS = 16
COLLAPSED_LATENT, UNINFORMED_LATENT = 0.95, 0.75
"""NLL of labels given z, as a share of their entropy: above the first, z says nothing; above the second, little."""
MIN_SPREAD, MIN_SPREAD_UNINFORMED = 0.15, 0.6
"""Of mu over environments, in units of sigma. Environments that are alike overlap in good fits too, and z then still
tells the label; where it says little about that as well, more is asked for."""

NAMES = {
    "mean_environment_entropy": "entropy of the mean p(e|x)",
    "environment_cross_entropy": "cross-entropy of p(e|x)",
    "environment_temperature": "temperature of p(e|x)",
    "environment_label_nll": "NLL of f0",
    "latent_label_nll": "NLL of labels given z",
    "environment_spread": "spread of mu over environments in units of sigma",
    "sigma_at_bounds": "share of log sigma at its bounds",
}
"""Key of each diagnostic to what people read. Keys stay as they are: programs and saved models go by them."""


@dataclass(frozen=True)
class Diagnostic:
    """One figure of a fit, the threshold it is held against, and what to do when it is crossed.

    Attributes
    ----------
    key : str
        Which one it is, of `NAMES`.
    value, threshold : float
    alarming : bool
        Whether the value is on the wrong side of the threshold.
    advice : str
        What it means and what to try.
    """

    key: str
    value: float
    threshold: float
    alarming: bool
    advice: str

    @property
    def name(self) -> str:
        """What people read."""
        return NAMES[self.key]

    @classmethod
    def from_saved(cls, key: str | None = None, name: str | None = None, **figures: Any) -> Diagnostic:
        """One of a saved model; the first models had the name in the place of the key."""
        if key is None:
            key = {text: key for key, text in NAMES.items()}.get(str(name))
        if key not in NAMES:
            raise ValueError(f"there is no diagnostic {key or name!r}")
        return cls(key, **figures)

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.3g} (threshold {self.threshold:.3g}): {self.advice}"


def _high(key: str, value: float, threshold: float, advice: str) -> Diagnostic:
    return Diagnostic(key, value, threshold, bool(value > threshold), advice)


def _low(key: str, value: float, threshold: float, advice: str) -> Diagnostic:
    return Diagnostic(key, value, threshold, bool(value < threshold), advice)


def best_temperature(log_p: NDArray[np.float64], e: NDArray[np.int64]) -> tuple[float, float]:
    """The factor a for which softmax(a · log p(e|x)) has the least cross-entropy, and what it gains in nats a row."""

    def cross_entropy(log_a: float) -> float:
        scaled = special.log_softmax(math.exp(log_a) * log_p, axis=1)
        return float(-scaled[np.arange(len(e)), e].mean())

    bounds = (math.log(0.02), math.log(50))
    found = optimize.minimize_scalar(cross_entropy, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return math.exp(found.x), cross_entropy(0.0) - float(found.fun)


def diagnose(
    module: EBERNetworks, x: Tensor, y: Tensor, e: Tensor, learned_weights: bool, weight: Tensor | None = None
) -> list[Diagnostic]:
    """Diagnostics of a fitted model on at most `MAX_ROWS` of its training rows, worked out in float64.

    Those of p(e|x) are left out when there is one environment or when the weights were supplied; those of the
    components when the posteriors were. Rows with weights, (n,), are looked at as often as they weigh.
    """
    outputs = 2 * module.latent_dim * module.n_classes * module.n_environments
    n_rows = min(MAX_ROWS, max(MIN_ROWS, MAX_ELEMENTS // outputs))
    if weight is not None:
        rows = rows_by_weight(weight, n_rows)
        x, y, e = x[rows], y[rows], e[rows]
    elif (rows_looked_at := evenly(len(x), n_rows)) is not None:
        x, y, e = x[rows_looked_at], y[rows_looked_at], e[rows_looked_at]
    x, y, e = x.double(), y.long(), e.long()
    found: list[Diagnostic] = []
    with torch.no_grad():
        log_h = in_chunks(module.log_p_e_given_x, x, module.h)
        if learned_weights and module.n_environments > 1:
            found += _environment_signs(module.log_p_observed_given_x(log_h).T.numpy(), e.numpy())
        weights, _ = module.components_of(e, log_h)
        found += _label_signs(in_chunks(module.log_p_y_given_xe, x, module.f0), y, weights)
        if module.g is not None:
            found += _component_signs(module, in_chunks(module.g, x, module.g), y, weights.argmax(0))
    return found


def rows_by_weight(weight: Tensor, n_rows: int) -> Tensor:
    """So many rows at even steps of their summed weight, (n,) -> (n_rows,): each about as often as it weighs."""
    reached = weight.double().cumsum(0)
    steps = (torch.arange(n_rows, dtype=torch.float64) + 0.5) / n_rows * reached[-1]
    return torch.searchsorted(reached, steps).clamp_(max=len(weight) - 1)


def _environment_signs(log_p: NDArray[np.float64], e: NDArray[np.int64]) -> list[Diagnostic]:
    shares = np.bincount(e, minlength=log_p.shape[1]) / len(e)
    of_shares, cross_entropy = float(entropy(shares)), float(-log_p[np.arange(len(e)), e].mean())
    temperature, gain = best_temperature(log_p, e)
    return [
        _low(
            "mean_environment_entropy",
            float(entropy(np.exp(log_p).mean(0))),
            0.5 * of_shares,
            "a few environments take far more weight than they have rows, so prediction hardly averages over "
            "environments. Use env_loss_weight=1, or the stratified objective instead of the decomposed one.",
        ),
        Diagnostic(
            "environment_cross_entropy",
            cross_entropy,
            of_shares,
            cross_entropy > of_shares - 1e-6,  # not learned at all, it is equal up to rounding
            "p(e|x) says no more about where a row comes from than the sizes of the environments do: its columns are "
            "experts, or nothing, but not environments. Do not read them as environments and do not adapt; use "
            "env_loss_weight > 0 if you want to, and check that environments differ in what x shows.",
        ),
        # A classifier that is nearly always right is always called undertrained by the factor alone, so it must matter.
        Diagnostic(
            "environment_temperature",
            temperature,
            1.5,
            temperature > 1.5 and gain > 0.05,
            f"p(e|x) is less sure than the data allow, by {gain:.2g} nats a row: it is undertrained. Train longer or "
            "raise environment_gain.",
        ),
    ]


def _label_signs(log_p_y_given_xe: Tensor, y: Tensor, weights: Tensor) -> list[Diagnostic]:
    observed = (weights * at_label(log_p_y_given_xe, y, 0)).sum(0)  # (B,)
    prevalence = torch.bincount(y).double().numpy() / len(y)
    return [
        _high(
            "environment_label_nll",
            float(-observed.mean()),
            float(entropy(prevalence)) + 0.1,
            "f0 has drifted from p(y|x,e): it predicts labels worse than their prevalence does. Train longer, "
            "raise tie_weight, or lower learning_rate.",
        )
    ]


def _collapse_sign(module: EBERNetworks, mu: Tensor, sigma: Tensor, y: Tensor, e: Tensor) -> Diagnostic:
    """How well z, drawn from q(z;x,y,e) of the row's own label and environment, gives that label back.

    Where the posterior has collapsed, z holds nothing of x and y, and p(y|z) can do no better than the prevalence.
    """
    own = e.expand(len(mu), 1, -1)
    mu, sigma = at_label(mu, y, 1).gather(1, own), at_label(sigma, y, 1).gather(1, own)  # (L, 1, B) each
    noise, _ = standard_normal_draws(COLLAPSE_DRAWS, module.latent_dim, torch.Generator().manual_seed(0))  # (L, Q)
    z = mu + sigma * noise[:, :, None]  # (L, Q, B)
    nll = -at_label(module.log_p_y_given_z(z), y, 0).mean()
    prevalence = torch.bincount(y).double().numpy() / len(y)
    return _high(
        "latent_label_nll",
        float(nll),
        COLLAPSED_LATENT * float(entropy(prevalence)),
        "the posterior has collapsed: the latent says hardly more about the label than its prevalence does, and so "
        "will predictions. Train longer, lower learning_rate, or check that x says anything about y.",
    )


def _component_signs(module: EBERNetworks, theta: Tensor, y: Tensor, e: Tensor) -> list[Diagnostic]:
    """From the outputs of g, (2L, K, m, B), and the component that stands for each row's environment."""
    mu, log_sigma = soft_bound(theta, module.bounds).split(module.latent_dim)  # (L, K, m, B) each
    sigma = log_sigma.exp()
    signs = [_collapse_sign(module, mu, sigma, y, e)]
    if module.n_environments > 1:
        spread = mu.std(2, correction=0) / sigma.mean(2)  # (L, K, B)
        uninformed = signs[0].value > UNINFORMED_LATENT / COLLAPSED_LATENT * signs[0].threshold
        signs.append(
            _low(
                "environment_spread",
                float(spread.amax(0).mean()),
                MIN_SPREAD_UNINFORMED if uninformed else MIN_SPREAD,
                "the latent hardly changes from one environment to another: the training was too short for these data, "
                "or the rows too few. Train longer (--epochs, or without --quick; in Python epochs), or collect more "
                "rows.",
            )
        )
    if module.bounds is not None:
        bound = float(module.bounds[-1])
        at_bound = (log_sigma.abs() > 0.95 * bound).double().mean()
        signs.append(
            _high(
                "sigma_at_bounds",
                float(at_bound),
                0.1,
                "components have become points or have become flat. Standardise the features, train for fewer epochs, "
                "or lower learning_rate.",
            )
        )
    return signs
