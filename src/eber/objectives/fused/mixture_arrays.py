"""The arrays of the mixture terms: what enters, what is worked on, and the gradients. Symbols as in `mixture.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor


class Sizes(NamedTuple):
    """Lengths of the axes: models, labels, environments, latent dimensions, rows."""

    S: int
    K: int
    m: int
    L: int
    B: int


@dataclass(frozen=True)
class MixtureInputs:
    """What the networks say about a batch, and what `Weighing` makes of it.

    Attributes
    ----------
    theta : (S, 2L, K, m, B)
        Means, then tau.
    lp_y, lp_e : (S, K, m, B), (S, m, B)
    observed : (S, m, B)
        Weights of the components that stand for the observed environment: one for its own.
    log_r, r : (S, m, B)
        log p(e|x,y) and p(e|x,y), filled in by `Weighing`.
    """

    theta: Tensor
    lp_y: Tensor
    lp_e: Tensor
    observed: Tensor
    log_r: Tensor
    r: Tensor

    @classmethod
    def in_arrays(cls, theta: Tensor, logs: Tensor, r: Tensor, observed: Tensor) -> MixtureInputs:
        """With lp_y, lp_e and log r as parts of one array, (S, K + 2, m, B)."""
        return cls(theta, logs[:, :-2], logs[:, -2], observed, logs[:, -1], r)

    @cached_property
    def mu(self) -> Tensor:
        """(S, L, K, m, B)."""
        return self.theta.chunk(2, 1)[0]

    @cached_property
    def tau(self) -> Tensor:
        """(S, L, K, m, B)."""
        return self.theta.chunk(2, 1)[1]


@dataclass(frozen=True)
class Draws:
    """C draws of z for each row, of which the bound uses the first D, and what the decoder says of them.

    Attributes
    ----------
    weights : (S, 2, C, B)
        Weight of each draw in the bound, p(e|x,y) or one over the number of sampled draws, and in the tie: one for the
        observed environment's; both times the weight of the row, where rows have weights.
    noise, from_mean : (S, L, C, B)
        Standard normal, and sigma times it.
    points : (S, L + 1, C, B)
        The draws of z made from it, on top of a row of ones.
    grad_points : (S, L + 1, C, B)
        The gradient of the weighted sum of log p(y|z), filled in by the decoder and overwritten.
    integrands : (S, 5K + 4, C, B)
        What all terms of the loss are weighted sums of, in the order of `integrand_rows`.
    n_in_bound : int
        D.
    """

    weights: Tensor
    noise: Tensor
    from_mean: Tensor
    points: Tensor
    grad_points: Tensor
    integrands: Tensor
    n_in_bound: int

    @classmethod
    def empty(cls, sizes: Sizes, n_draws: int, n_in_bound: int, like: Tensor) -> Draws:
        """Arrays for so many draws."""
        (S, K, _, L, B), C = sizes, n_draws
        noise, from_mean = like.new_empty(2, S, L, C, B)
        points, grad_points = like.new_ones(2, S, L + 1, C, B)
        integrands = like.new_zeros(S, 5 * K + 4, C, B)
        return cls(like.new_empty(S, 2, C, B), noise, from_mean, points, grad_points, integrands, n_in_bound)

    def part(self, first: int, n: int) -> Draws:
        """Views of n of the draws, all of them in the bound."""
        own = slice(first, first + n)
        weights, noise, from_mean = self.weights[:, :, own], self.noise[:, :, own], self.from_mean[:, :, own]
        points, grad_points = self.points[:, :, own], self.grad_points[:, :, own]
        return Draws(weights, noise, from_mean, points, grad_points, self.integrands[:, :, own], n)

    @cached_property
    def _noise_of_models(self) -> tuple[Tensor, ...]:
        return self.noise.unbind()

    def fill_noise(self, generators: Sequence[torch.Generator]) -> None:
        """Each model's from its own generator."""
        for of_model, generator in zip(self._noise_of_models, generators, strict=True):
            of_model.normal_(generator=generator)

    @cached_property
    def z(self) -> Tensor:
        """(S, L, C, B)."""
        return self.points[:, :-1]

    @cached_property
    def grad_z(self) -> Tensor:
        """(S, L, C, B)."""
        return self.grad_points[:, :-1]

    @cached_property
    def _integrand_parts(self) -> tuple[Tensor, ...]:
        K = (self.integrands.shape[1] - 4) // 5
        return torch.split(self.integrands, [2 * K, 2 * K, K + 2, 1, 1], 1)

    @cached_property
    def log_post(self) -> Tensor:
        """Log-softmax over labels of t and own, log q(k|z;x) and log q(k|z;x,e), (S, 2, K, C, B)."""
        parts: Tensor = self._integrand_parts[0].unflatten(1, (2, -1))
        return parts

    @cached_property
    def joints(self) -> Tensor:
        """t and own, up to the same constant, (S, 2, K, C, B)."""
        parts: Tensor = self._integrand_parts[1].unflatten(1, (2, -1))
        return parts

    @cached_property
    def logs(self) -> Tensor:
        """lp_y, lp_e and log r at the environment of each draw, (S, K + 2, C, B)."""
        return self._integrand_parts[2]

    @cached_property
    def log_lik(self) -> Tensor:
        """log p(y|z), filled in by the decoder, (S, C, B)."""
        return self._integrand_parts[3][:, 0]

    @cached_property
    def log_p_observed(self) -> Tensor:
        """log p(observed environment|x) where it is not lp_e of a draw's own, (S, C, B)."""
        return self._integrand_parts[4][:, 0]


@dataclass(frozen=True)
class Workspace:
    """The draws of the bound under every component (k, e); its first two are the only large arrays.

    Attributes
    ----------
    u : (S, L, D, K, m, B)
        (z - mu) / sigma.
    moments : (S, 1 + 2L, D, K, m, B)
        a = d L / d joint, at first the densities exp(joint), with a u and a u² beside it.
    inv_sigma : (S, L, K, m, B)
    top, mass : (S, K, 1, B), (S, D, K, B)
        Base-2 logarithm of what no density of a label exceeds, and sums over environments relative to it.
    grad_joints : (S, 2, K, C, B)
        Gradients of t and own.
    """

    u: Tensor
    moments: Tensor
    inv_sigma: Tensor
    top: Tensor
    mass: Tensor
    grad_joints: Tensor

    @classmethod
    def empty(cls, sizes: Sizes, n_draws: int, n_in_bound: int, like: Tensor) -> Workspace:
        """Arrays for so many draws."""
        (S, K, m, L, B), D, new = sizes, n_in_bound, like.new_empty
        u, moments = new(S, L, D, K, m, B), new(S, 1 + 2 * L, D, K, m, B)
        return cls(u, moments, new(S, L, K, m, B), new(S, K, 1, B), new(S, D, K, B), new(S, 2, K, n_draws, B))

    def part(self, n: int) -> Workspace:
        """Views for n draws; what does not depend on the draws is shared."""
        u, moments, mass, grad_joints = self.u[:, :, :n], self.moments[:, :, :n], self.mass[:, :n], self.grad_joints
        return Workspace(u, moments, self.inv_sigma, self.top, mass, grad_joints[:, :, :, :n])

    @cached_property
    def a(self) -> Tensor:
        """(S, D, K, m, B)."""
        return self.moments[:, 0]

    @cached_property
    def au(self) -> Tensor:
        """(S, L, D, K, m, B)."""
        return self.moments[:, 1 : 1 + self.u.shape[1]]

    @cached_property
    def au2(self) -> Tensor:
        """(S, L, D, K, m, B)."""
        return self.moments[:, 1 + self.u.shape[1] :]


@dataclass(frozen=True)
class MixtureGradients:
    """Gradient of the sum over rows of L + tie_weight · L_e of the observed e.

    Attributes
    ----------
    sums : (S, 1 + 2L, K, m, B)
        With respect to lp_y, to means and to *natural* logarithms of sigma.
    lp_e : (S, m, B)
    """

    sums: Tensor
    lp_e: Tensor

    @classmethod
    def empty(cls, sizes: Sizes, like: Tensor) -> MixtureGradients:
        """Arrays for them."""
        S, K, m, L, B = sizes
        return cls(like.new_empty(S, 1 + 2 * L, K, m, B), like.new_empty(S, m, B))

    @cached_property
    def lp_y(self) -> Tensor:
        """(S, K, m, B)."""
        return self.sums[:, 0]

    @cached_property
    def theta(self) -> Tensor:
        """(S, 2L, K, m, B)."""
        return self.sums[:, 1:]


def integrand_rows(K: int) -> dict[str, int]:
    """Where each of the integrands that the terms need stands in `Draws.integrands`."""
    return {
        "log_post": 0,
        "log_post_own": K,
        "log_joint": 2 * K,
        "log_joint_own": 3 * K,
        "lp_y": 4 * K,
        "lp_e": 5 * K,
        "log_r": 5 * K + 1,
        "log_lik": 5 * K + 2,
        "log_p_observed": 5 * K + 3,
    }


def contiguous(like: Tensor) -> Tensor:
    """An empty array of the same shape without gaps."""
    return torch.empty_like(like, memory_format=torch.contiguous_format)
