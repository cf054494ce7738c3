"""What nobody can beat in the parametric simulation: its exact conditional distributions, integrated over z on a grid.

Up to terms in x alone, log p(x|z) is linear in (x₁, x₂, x₃, 1):

    log p(x|z) = x₁ cos(z)/σ_phase² + x₂ sin(z)/σ_phase² + x₃ ρz/σ_branch² - ρ²z²/(2σ_branch²) + const(x),

since cos² + sin² = 1. One matrix product therefore gives the log-density at all rows, environments and nodes.
The grid is uniform, so sums over nodes are the trapezoidal rule, whose error for a Gaussian of standard deviation s and
spacing h is 2 exp(-2π²s²/h²): with h = 0.8 s it is 1e-13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eber.datasets.parametric import INFORMATIVE_COLUMNS, ParametricParameters
from eber.method.posteriors import GridPosterior

SPACING = 0.8  # of the standard deviation of z given x, y and e
HALF_WIDTH = 6.0  # of a training environment's window, in σ_z
POPULATION_HALF_WIDTH = 8.0  # of a branch's window, in the standard deviation of z given the branch
BLOCK = 2**16  # numbers held at once for each pass: 512 KB, which stays in cache
MIN_EXPONENT = -700.0  # exp of anything smaller is a denormal, which is slow, or zero, whose logarithm is not finite


@dataclass(frozen=True, eq=False)
class ParametricOracle:
    """Exact conditional distributions of the parametric simulation, for rows X as they were drawn (not standardised).

    The windows in z hold every row that the simulation produces; an x whose phase is more than about 5 σ_z from φ₀ has
    its posterior beyond them.

    Parameters
    ----------
    parameters : ParametricParameters
        The true parameters.
    centres : array of shape (m,)
        The true centres m_j of the training environments, which are taken to be equally probable.
    """

    parameters: ParametricParameters
    centres: NDArray[np.float64]

    def bayes_x(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """p(y|x) over the population of environments: no rule that sees x alone has a smaller expected NLL.

        The branch is uniform and δ is integrated out: z | branch ~ N(Δb + φ₀, σ_z² + σ_δ²).

        Returns
        -------
        array of shape (n, 2)
            Columns y = 0, 1.
        """
        windows = self._population
        p_y_given_z = np.exp(windows.log_p_y_given_z).reshape(2, -1).T  # (branches W, 2)
        proba = np.empty((len(X), 2))
        for rows, log_joint in _blocks(X, windows.coefficients.reshape(4, -1)):
            joint = _exp(log_joint - log_joint.max(axis=1, keepdims=True))
            proba[rows] = joint @ p_y_given_z
        return proba / proba.sum(axis=1, keepdims=True)

    def environment_proba(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """p(e_j|x) for the training environments, given their true centres.

        Returns
        -------
        array of shape (n, m)
            Never exactly zero, so that logarithms of it are finite.
        """
        windows = self._training
        m, W = windows.index.shape
        log_p_x_given_e = np.empty((len(X), m))
        for rows, log_joint in _blocks(X, windows.coefficients.reshape(4, -1)):
            log_p_x_given_e[rows] = _log_sum_exp(log_joint.reshape(-1, m, W))
        proba = _exp(log_p_x_given_e - log_p_x_given_e.max(axis=1, keepdims=True))
        return proba / proba.sum(axis=1, keepdims=True)

    def posteriors(self, X: NDArray[np.floating]) -> GridPosterior:
        """p(z|x,y,e_j) for both labels and all training environments.

        The answer holds 2 n m W numbers (W is about 200), so many rows are better asked for in parts.

        Returns
        -------
        GridPosterior
            ``log_q`` of shape (n, 2, m, W), with labels 0, 1 on the second axis.
        """
        windows = self._training
        m, W = windows.index.shape
        log_q = np.empty((len(X), 2, m, W))
        for rows, log_joint in _blocks(X, self._training_with_labels):
            log_joint = log_joint.reshape(-1, 2, m, W)
            np.subtract(log_joint, _log_sum_exp(log_joint)[..., None], out=log_q[rows])
        return GridPosterior(z=windows.z[:, None], index=windows.index, log_q=log_q)

    @cached_property
    def _population(self) -> _Windows:
        p = self.parameters
        centres = p.Delta * np.asarray(p.branches, dtype=np.float64) + p.phi_0
        return _windows(p, centres, np.hypot(p.sigma_z, p.sigma_delta), POPULATION_HALF_WIDTH)

    @cached_property
    def _training(self) -> _Windows:
        return _windows(self.parameters, self.centres, self.parameters.sigma_z, HALF_WIDTH)

    @cached_property
    def _training_with_labels(self) -> NDArray[np.float64]:
        """Coefficients of log p(x,y,z|e_j), (4, 2 m W): the label changes the constant only."""
        windows = self._training
        coefficients = np.repeat(windows.coefficients[:, None], 2, axis=1)  # (4, 2, m, W)
        coefficients[3] += windows.log_p_y_given_z
        return coefficients.reshape(4, -1)


@dataclass(frozen=True, eq=False)
class _Windows:
    """For each of m Gaussians p(z|e_j), W consecutive nodes of one uniform grid around its centre."""

    z: NDArray[np.float64]  # (Q,) the nodes in any window
    index: NDArray[np.int64]  # (m, W) into z
    coefficients: NDArray[np.float64]  # (4, m, W): log p(x,z|e_j) = (x₁, x₂, x₃, 1) @ coefficients, up to const(x)
    log_p_y_given_z: NDArray[np.float64]  # (2, m, W)


def _windows(p: ParametricParameters, centres: NDArray[np.float64], sd: float, half_width: float) -> _Windows:
    spacing = SPACING / np.sqrt(1 / p.sigma_phase**2 + (p.rho / p.sigma_branch) ** 2 + 1 / sd**2)
    reach = int(np.ceil(half_width * sd / spacing))
    lattice = np.rint(centres / spacing).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)  # (m, W)
    nodes, index = np.unique(lattice, return_inverse=True)
    z = lattice * spacing
    constant = -((p.rho * z / p.sigma_branch) ** 2) / 2 - ((z - centres[:, None]) / sd) ** 2 / 2
    coefficients = np.stack(
        [np.cos(z) / p.sigma_phase**2, np.sin(z) / p.sigma_phase**2, p.rho * z / p.sigma_branch**2, constant]
    )
    logit = p.label_logit(z)
    log_p_y_given_z = -np.logaddexp(0.0, np.stack([logit, -logit]))
    return _Windows(nodes * spacing, index.reshape(lattice.shape), coefficients, log_p_y_given_z)


def _blocks(X: NDArray[np.floating], coefficients: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """(x₁, x₂, x₃, 1) @ coefficients for as many rows at a time as BLOCK allows."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] < INFORMATIVE_COLUMNS:
        raise ValueError(f"X has shape {X.shape}; the oracle reads x1, x2 and x3 from the first three of its columns.")
    inputs = np.ones((len(X), 4))
    inputs[:, :3] = X[:, :INFORMATIVE_COLUMNS]
    step = max(1, BLOCK // coefficients.shape[1])
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        yield rows, inputs[rows] @ coefficients


def _exp(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(a) in place, a <= 0, without denormals."""
    np.maximum(a, MIN_EXPONENT, out=a)
    return np.exp(a, out=a)


def _log_sum_exp(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-sum-exp over the last axis."""
    largest = a.max(axis=-1)
    return np.log(_exp(a - largest[..., None]).sum(axis=-1)) + largest
