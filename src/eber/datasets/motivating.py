"""The motivating example: why the training environments have to be weighted by p(e|x), and not equally.

    π_e ~ Beta(a, b)
    z | e ~ Bernoulli(π_e)
    p(x|z=1) = 1 + α(2x - 1),  p(x|z=0) = 1 - α(2x - 1)  on [0, 1]
    p(y=1|z=1) = 1 - ρ_y,      p(y=1|z=0) = ρ_y

With f_x(π) = π p(x|z=1) / (π p(x|z=1) + (1 - π) p(x|z=0)), the posterior p(z=1|x,e) is f_x(π_e), and the population's
p(z=1|x) is f_x(μ), μ = E[π_e]. Averaging the f_x(π_j) of observed environments with the weights p(e_j|x) gives f_x of
the mean of the π_j, which converges to it; averaging them equally does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 2**15  # posteriors computed at once: 256 KB, which stays in cache
MIN_PI = 1e-300  # a Beta draw can round to zero, and the odds against it must not overflow


@dataclass(frozen=True)
class MotivatingExample:
    """The model, with the paper's parameters as defaults.

    Parameters
    ----------
    alpha : float
        How much x says about z, 0 < α < 1.
    rho_y : float
        Probability that the label differs from z, 0 < ρ_y < 1/2.
    a, b : float
        Parameters of the Beta distribution of π_e.
    """

    alpha: float = 0.85
    rho_y: float = 0.1
    a: float = 0.5
    b: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha is {self.alpha}; it must lie strictly between 0 and 1.")
        if not 0 < self.rho_y < 0.5:
            raise ValueError(f"rho_y is {self.rho_y}; it must lie strictly between 0 and 1/2.")
        if not (self.a > 0 and self.b > 0):
            raise ValueError(f"a and b are {self.a} and {self.b}; both must be positive.")

    @property
    def mu(self) -> float:
        """E[π_e]."""
        return self.a / (self.a + self.b)

    def draw_environments(self, size: int | tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        """The parameters π_e of environments drawn from the population."""
        return rng.beta(self.a, self.b, size)

    def p_x_given_z(self, x: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """p(x|z=0) and p(x|z=1)."""
        tilt = self.alpha * (2 * np.asarray(x, dtype=np.float64) - 1)
        return 1 - tilt, 1 + tilt

    def p_z_given_x(self, x: ArrayLike, pi: ArrayLike) -> NDArray[np.float64]:
        """f_x(π), which is p(z=1|x,e) at π = π_e and the population's p(z=1|x) at π = μ; x and π broadcast."""
        p_x_0, p_x_1 = self.p_x_given_z(x)
        pi = np.asarray(pi, dtype=np.float64)
        return pi * p_x_1 / (pi * p_x_1 + (1 - pi) * p_x_0)

    def p_e_given_x(self, x: NDArray[np.float64], pi: NDArray[np.float64]) -> NDArray[np.float64]:
        """The conditional weights p(e_j|x) of the observed environments.

        Parameters
        ----------
        x : array of shape (n,)
            Where the weights are taken.
        pi : array of shape (m,)
            The parameters of the observed environments.

        Returns
        -------
        array of shape (n, m)
        """
        p_x_0, p_x_1 = (density[:, None] for density in self.p_x_given_z(x))
        p_x_given_e = pi * p_x_1 + (1 - pi) * p_x_0
        return p_x_given_e / p_x_given_e.sum(axis=1, keepdims=True)

    def p_z_by_conditional_weights(self, x: NDArray[np.float64], pi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ_j p(e_j|x) p(z=1|x,e_j), which is f_x at the mean of the π_j; (n,) from (n,) and (m,)."""
        return self.p_z_given_x(x, pi.mean())

    def p_z_by_uniform_weights(self, x: NDArray[np.float64], pi: NDArray[np.float64]) -> NDArray[np.float64]:
        """(1/m) Σ_j p(z=1|x,e_j); (n,) from (n,) and (m,)."""
        return self._prefix_sums(x, pi, [len(pi)])[0] / len(pi)

    def p_y_given_x(self, p_z: NDArray[np.float64]) -> NDArray[np.float64]:
        """p(y=1|x) = ρ_y + (1 - 2ρ_y) p(z=1|x)."""
        return self.rho_y + (1 - 2 * self.rho_y) * p_z

    def sufficient_environments(self, epsilon: float, delta: float) -> int:
        """Proposition 2: with this many environments, conditional weights err by at most ε in p(y=1|x) at every x, with
        probability at least 1 - δ: m >= (1 - 2ρ_y)² κ² log(2/δ) / (2ε²), κ = (1 + α)/(1 - α).
        """
        if not (epsilon > 0 and 0 < delta < 1):
            raise ValueError(
                f"epsilon is {epsilon} and delta {delta}; epsilon must be positive, delta between 0 and 1."
            )
        kappa = (1 + self.alpha) / (1 - self.alpha)
        return int(np.ceil(((1 - 2 * self.rho_y) * kappa / epsilon) ** 2 / 2 * np.log(2 / delta)))

    def uniform_limit(self, x: NDArray[np.float64], draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Proposition 3: E[f_x(π_e)], the limit of p(z=1|x) by uniform weights, from that many draws of π_e; (n,)."""
        return self.p_z_by_uniform_weights(x, self.draw_environments(draws, rng))

    def convergence(
        self, x: NDArray[np.float64], m: tuple[int, ...], repetitions: int, draws: int, rng: np.random.Generator
    ) -> Convergence:
        """Errors of both weightings against the number of environments.

        In each repetition the first m of one sequence of environments are observed, for each m in turn.

        Parameters
        ----------
        x : array of shape (n,)
            Where errors are taken.
        m : tuple of int
            Numbers of environments, increasing.
        repetitions : int
            How many sequences are drawn.
        draws : int
            Draws of π_e for the limit of uniform weights.
        rng : numpy.random.Generator
            Source of all draws.
        """
        counts = np.asarray(m)
        if counts[0] < 1 or np.any(np.diff(counts) <= 0):
            raise ValueError(f"m is {m}; the numbers of environments must be positive and increasing.")
        target = self.p_y_given_x(self.p_z_given_x(x, self.mu))
        conditional, uniform = np.empty((repetitions, len(m))), np.empty((repetitions, len(m)))
        for repetition in range(repetitions):
            pi = self.draw_environments(m[-1], rng)
            mu_hat = np.cumsum(pi)[counts - 1] / counts
            p_z_conditional = self.p_z_given_x(x, mu_hat[:, None])  # (len(m), n)
            p_z_uniform = self._prefix_sums(x, pi, m) / counts[:, None]  # (len(m), n)
            conditional[repetition] = np.abs(self.p_y_given_x(p_z_conditional) - target).max(axis=1)
            uniform[repetition] = np.abs(self.p_y_given_x(p_z_uniform) - target).max(axis=1)
        limit = np.abs(self.p_y_given_x(self.uniform_limit(x, draws, rng)) - target).max()
        return Convergence(counts, conditional, uniform, float(limit))

    def _prefix_sums(
        self, x: NDArray[np.float64], pi: NDArray[np.float64], ends: tuple[int, ...] | list[int]
    ) -> NDArray[np.float64]:
        """Sums of f_x(π_j) over j < end, for each end; (len(ends), n).

        Written as 1 / (1 + p(x|z=0)/p(x|z=1) · (1 - π)/π), which is three passes over a block.
        """
        p_x_0, p_x_1 = self.p_x_given_z(x)
        ratio = p_x_0 / p_x_1
        odds_against = (1 - pi) / np.maximum(pi, MIN_PI)
        step = max(1, BLOCK // len(x))
        buffer = np.empty((step, len(x)))
        total, sums, start = np.zeros(len(x)), [], 0
        for end in ends:
            while start < end:
                stop = min(start + step, end)
                block = np.multiply(odds_against[start:stop, None], ratio, out=buffer[: stop - start])
                block += 1.0
                np.reciprocal(block, out=block)
                total += block.sum(axis=0)
                start = stop
            sums.append(total.copy())
        return np.stack(sums)


@dataclass(frozen=True, eq=False)
class Convergence:
    """Errors in p(y=1|x) against the number m of observed environments.

    The error is the largest over x, which is the one that Proposition 2 bounds. A mean over x has the same rate and the
    same kind of limit, but no statement in the paper is about it.

    Parameters
    ----------
    m : array of shape (M,)
    conditional, uniform : array of shape (repetitions, M)
        Errors by conditional and by uniform weights.
    uniform_limit : float
        The error to which uniform weights converge.
    """

    m: NDArray[np.int64]
    conditional: NDArray[np.float64]
    uniform: NDArray[np.float64]
    uniform_limit: float


@dataclass(frozen=True, eq=False)
class MotivatingResult:
    """What the paper's Figure 3 shows.

    Parameters
    ----------
    pi : array of shape (m,)
        The observed environments, sorted.
    x_weights : array of shape (3,)
        Where the conditional weights are taken.
    weights : array of shape (3, m)
        p(e_j|x).
    x : array of shape (n,)
        The grid of the curves.
    population, conditional, uniform : array of shape (n,)
        p(z=1|x) in the population, by conditional weights and by uniform weights.
    convergence : Convergence
    """

    pi: NDArray[np.float64]
    x_weights: NDArray[np.float64]
    weights: NDArray[np.float64]
    x: NDArray[np.float64]
    population: NDArray[np.float64]
    conditional: NDArray[np.float64]
    uniform: NDArray[np.float64]
    convergence: Convergence


def run_motivating(
    example: MotivatingExample | None = None,
    m: int = 30,
    x_weights: tuple[float, ...] = (0.15, 0.5, 0.85),
    m_convergence: tuple[int, ...] = (20, 50, 100, 200, 500, 1000, 2000, 5000),
    repetitions: int = 500,
    draws: int = 200_000,
    grid_points: int = 500,
    random_state: int | None = None,
) -> MotivatingResult:
    """Compute Figure 3; the defaults are the paper's, with `grid_points` values of x from 0.001 to 0.999."""
    example = example or MotivatingExample()
    observed, repeated = (np.random.default_rng(seed) for seed in np.random.SeedSequence(random_state).spawn(2))
    pi = np.sort(example.draw_environments(m, observed))
    at = np.asarray(x_weights, dtype=np.float64)
    x = np.linspace(0.001, 0.999, grid_points)
    return MotivatingResult(
        pi=pi,
        x_weights=at,
        weights=example.p_e_given_x(at, pi),
        x=x,
        population=example.p_z_given_x(x, example.mu),
        conditional=example.p_z_by_conditional_weights(x, pi),
        uniform=example.p_z_by_uniform_weights(x, pi),
        convergence=example.convergence(x, m_convergence, repetitions, draws, repeated),
    )
