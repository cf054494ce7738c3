"""How E[p(y|z)] under a Gaussian component is worked out: in closed form, at points, or by an expansion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from eber.method import aggregates
from eber.method.aggregates import Conditionals, Rule
from eber.method.distributions import MAX_QUADRATURE_DIM, expected_sigmoid, gauss_hermite, standard_normal_draws
from eber.method.model import EBERNetworks

QUADRATURE_NODES = {1: 32, 2: 16}
"""Nodes for each latent axis, by latent dimension."""
MONTE_CARLO_SAMPLES = 1000
"""From each component."""
EXPANSION_POINTS = 256
"""For each component whose expansion is not accurate enough."""
EXPANSION_TOLERANCE = 3e-6
"""Largest error in p(y|x) that the expansion of a single component may bring in, as far as its next term tells."""
MAX_LOGIT_SHIFT = {torch.float64: 250.0, torch.float32: 40.0}
"""So far may a point move a logit: beyond it a probability is zero or one, and its exponential, times K, overflows."""
MANY_CLASSES = 16
"""From so many on the expansion is worked out in float32: its rounding, about 1e-6, is below EXPANSION_TOLERANCE."""
BLOCK_COMPONENTS = 2500
"""Expanded at once in float32, so that what is written stays in the cache."""


def integration_rule(
    latent_dim: int, method: str, points: int | None, seed: int, *, samples: int = MONTE_CARLO_SAMPLES
) -> Rule:
    """Points (L, Q) and weights (Q,) for expectations over a standard normal.

    ``"quadrature"`` is Gauss-Hermite, and ``"auto"`` means it up to two latent dimensions (no sampling noise, the same
    answer every time); all else is Monte Carlo. `points` counts nodes for each latent axis, or samples; without it
    there are `samples`.
    """
    if method == "quadrature" and latent_dim > MAX_QUADRATURE_DIM:
        raise ValueError(
            f"prediction='quadrature' needs latent_dim <= {MAX_QUADRATURE_DIM}, got {latent_dim}; use 'monte_carlo'."
        )
    if method == "quadrature" or (method == "auto" and latent_dim <= MAX_QUADRATURE_DIM):
        return gauss_hermite(points or QUADRATURE_NODES[latent_dim], latent_dim)
    generator = torch.Generator().manual_seed(seed)
    return standard_normal_draws(points or samples, latent_dim, generator)


def automatic_method(n_classes: int, latent_dim: int, linear_decoder: bool, *, expand: bool = True) -> str:
    """What ``"auto"`` stands for; without `expand`, what it stood for before there was an expansion."""
    if linear_decoder and n_classes == 2:
        return "closed_form"
    if latent_dim <= MAX_QUADRATURE_DIM:
        return "quadrature"
    if not (linear_decoder and expand):
        return "monte_carlo"
    return "expansion" if n_classes < MANY_CLASSES else "expansion_float32"


@dataclass(frozen=True)
class Expansion:
    """The second-order expansion of softmax(W z + b) at a component's mean, and points where that is not enough.

    With p = softmax(W mu + b), u = W² sigma², r = W (sigma² W'p) (squares and products of vectors entry by entry),
    c = u - 2r and <.> the mean over p,

        E[softmax(W z + b)] = p (1 + (c - <c>) / 2) + terms of the fourth order and above in sigma.

    The fourth order is about p V² / 8, V = c + <r> being the variance of each logit against the mean logit. Where its
    largest entry times the component's weight p(k,e|x) exceeds EXPANSION_TOLERANCE, the expectation is taken at points
    and their mirror images, whose first, second and third moments are those of a standard normal: they too err only
    from the fourth order on, and by less.

    Attributes
    ----------
    half : (H, L)
        One of each pair of points; what is worked out is of the same type.
    """

    half: Tensor

    @classmethod
    def with_points(
        cls, latent_dim: int, points: int | None, seed: int, dtype: torch.dtype = torch.float64
    ) -> Expansion:
        """Scrambled Sobol points, made to have unit covariance; at least four for each latent dimension."""
        pairs = max((points or EXPANSION_POINTS) // 2, 2 * latent_dim)
        sobol = torch.quasirandom.SobolEngine(latent_dim, scramble=True, seed=seed)
        uniform = sobol.draw(pairs, dtype=torch.float64)
        normal = torch.special.ndtri(uniform.clamp_(1e-12, 1 - 1e-12))
        factor = torch.linalg.cholesky(normal.T @ normal / pairs)
        return cls(torch.linalg.solve_triangular(factor, normal.T, upper=False).T.contiguous().to(dtype))

    def average(self, decoder: nn.Linear, c: Conditionals) -> Tensor:
        """E[p(y|z)] under every component, (K', K, m, B)."""
        W, bias = decoder.weight.to(self.half), decoder.bias.to(self.half)  # (K', L), (K',)
        mu, log_sigma, weights = (
            c.mu.flatten(1),
            c.log_sigma.flatten(1),
            c.log_w.exp().flatten(),
        )  # (L, K·m·B), (K·m·B,)
        size = mu.shape[1] if self.half.dtype == torch.float64 else BLOCK_COMPONENTS
        blocks = zip(mu.split(size, 1), log_sigma.split(size, 1), weights.split(size), strict=True)
        expected = torch.cat([self._average(W, bias, *block) for block in blocks], 1)
        return expected.view(-1, *c.mu.shape[1:])

    def _average(self, W: Tensor, bias: Tensor, mu: Tensor, log_sigma: Tensor, weights: Tensor) -> Tensor:
        """The same of n components, mu and log_sigma (L, n), that weigh p(k,e|x), (n,): (K', n)."""
        variance = (2 * log_sigma).exp_()  # (L, n)
        p = torch.softmax(torch.addmm(bias[:, None], W, mu), 0)  # (K', n), as what follows
        r = W @ (W.T @ p).mul_(variance)
        shift = W.square() @ variance - 2 * r
        logit_variance = shift + (p * r).sum(0)
        expected = p * (1 + (shift - (p * shift).sum(0)) / 2).clamp_(min=0)
        expected /= expected.sum(0)
        fourth_order = (p * logit_variance.square_()).amax(0) / 8
        coarse = (weights * fourth_order > EXPANSION_TOLERANCE).nonzero()[:, 0]
        for some in coarse.split(max(1, aggregates.CHUNK_ELEMENTS // (len(self.half) * max(W.shape)))):
            expected[:, some] = self._at_points(W, p[:, some].T, variance[:, some].T.sqrt()).T
        return expected

    def _at_points(self, W: Tensor, p: Tensor, sigma: Tensor) -> Tensor:
        """The mean of softmax(log p ± W (sigma · point)) over the pairs of points: (n, K'), (n, L) -> (n, K')."""
        moved = (sigma[:, None] * self.half) @ W.T  # (n, H, K')
        odds = moved.clamp_(-MAX_LOGIT_SHIFT[p.dtype], MAX_LOGIT_SHIFT[p.dtype]).exp_()
        total = torch.zeros_like(p)
        for factor in (odds, odds.reciprocal()):  # a point and its mirror image
            total += ((factor @ p[:, :, None]).reciprocal_().mT @ factor)[:, 0]
        return total * p / (2 * len(self.half))


def linear_decoder(module: EBERNetworks) -> nn.Linear:
    """f1 where it is a linear map."""
    decoder, *further = module.f1
    if further or not isinstance(decoder, nn.Linear):
        raise ValueError("prediction='expansion' needs a linear decoder; use 'monte_carlo'.")
    return decoder


def average_components(
    module: EBERNetworks, c: Conditionals, p_k: Tensor, rules: Sequence[Rule] | Expansion | None
) -> Tensor:
    """E[p(y|z)] under q(z;x,e), the components q(z;x,k,e) averaged over p(k|x,e), `p_k` (K, m, B): (K', m, B).

    `rules` are the parts of an integration rule, or None for the closed form.
    """
    if rules is None:
        # Two classes and a linear f1: the difference of the logits is Gaussian, whatever the latent dimension.
        decoder = linear_decoder(module)
        slope, offset = decoder.weight[1] - decoder.weight[0], decoder.bias[1] - decoder.bias[0]  # (L,), ()
        slope = slope[:, None, None, None]
        mean = (slope * c.mu).sum(0).add_(offset)
        variance = (slope * c.log_sigma.exp()).square_().sum(0)
        # At most one: p(k|x,e) adds up to a little more or less in floating point.
        positive = (p_k * expected_sigmoid(mean, variance)).sum(0).clamp_(max=1)  # (m, B)
        return torch.stack([1 - positive, positive])
    if isinstance(rules, Expansion):
        return (p_k * rules.average(linear_decoder(module), c)).sum(1)
    total = torch.zeros(())
    for points, weights in rules:
        p_y_given_z = module.log_p_y_given_z(c.component_points(points)).exp()  # (K', Q, K, m, B)
        total = total + torch.einsum("q,jqkeb->jkeb", weights, p_y_given_z)
    return (p_k * total).sum(1)
