"""The parametric simulation: environments which differ in the branch of a latent z whose phase is seen well.

    m_j = Δ b_j + φ₀ + δ_j,             δ_j ~ N(0, σ_δ²)
    z | e_j ~ N(m_j, σ_z²)
    x₁ = cos z + ε₁,  x₂ = sin z + ε₂,   ε₁, ε₂ ~ N(0, σ_phase²)
    x₃ = ρ z + ε₃,                       ε₃ ~ N(0, σ_branch²)
    x_k = ε_k  for k = 4..d,             ε_k ~ N(0, σ_noise²)
    y | z ~ Bernoulli(σ(β₀ + β₁ sin(z/2)))

Adjacent branches have the same phase and opposite labels, so p(y|x,e) differs between environments although p(y|z) does
not. The best possible predictions are in :mod:`eber.datasets.parametric_oracle`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from eber.datasets.base import MultiEnvironmentData

INFORMATIVE_COLUMNS = 3  # x₁, x₂ and x₃; the columns after them are noise


@dataclass(frozen=True)
class ParametricParameters:
    """Parameters of the simulation, named as in the paper; the defaults are the paper's baseline.

    Parameters
    ----------
    m_train, m_validation, m_test : int
        Number of training, validation and test environments.
    n : int
        Rows in each environment.
    d : int
        Columns of X, at least 3.
    branches : tuple of int
        The values that b_j takes.
    Delta, phi_0 : float
        Distance between the centres of adjacent branches, and the phase that all branches share.
    sigma_delta, sigma_z : float
        Standard deviation of an environment's centre about its branch, and of z about the centre.
    sigma_phase, sigma_branch, sigma_noise : float
        Standard deviations of the noise of x₁ and x₂, of x₃, and of the other columns.
    rho : float
        Strength of the branch cue x₃.
    beta_0, beta_1 : float
        Intercept and slope of the label's logit in sin(z/2).
    """

    m_train: int = 6
    m_validation: int = 12
    m_test: int = 50
    n: int = 500
    d: int = 10
    branches: tuple[int, ...] = (-3, -2, -1, 0, 1, 2)
    Delta: float = 2 * np.pi
    phi_0: float = np.pi / 2
    sigma_delta: float = 0.05
    sigma_z: float = 0.35
    sigma_phase: float = 0.05
    rho: float = 0.1
    sigma_branch: float = 0.1
    sigma_noise: float = 1.0
    beta_0: float = 0.0
    beta_1: float = 4.0

    def __post_init__(self) -> None:
        for name, least in (("m_train", 1), ("m_validation", 1), ("m_test", 1), ("n", 1), ("d", INFORMATIVE_COLUMNS)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; the parametric simulation needs at least {least}.")
        for name in ("sigma_z", "sigma_phase", "sigma_branch"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a standard deviation and must be positive.")
        for name in ("sigma_delta", "sigma_noise"):
            if not getattr(self, name) >= 0:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it is a standard deviation and must not be negative."
                )
        if not self.branches or len(set(self.branches)) != len(self.branches):
            raise ValueError(f"branches is {self.branches}; give at least one branch, and each branch once.")

    def label_logit(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """β₀ + β₁ sin(z/2), the logit of p(y=1|z)."""
        return self.beta_0 + self.beta_1 * np.sin(z / 2)


@dataclass(frozen=True)
class ParametricDraw:
    """One draw of the simulation: three collections of environments that share none.

    Parameters
    ----------
    parameters : ParametricParameters
    train, validation, test : MultiEnvironmentData
        Labels 0 and 1; environments numbered on from 0 through the three collections; ``extra["z"]`` is the latent z.
    centres : array of shape (m_train,)
        The true centre m_j of each training environment, in the order of ``train.environment_names``.
    """

    parameters: ParametricParameters
    train: MultiEnvironmentData
    validation: MultiEnvironmentData
    test: MultiEnvironmentData
    centres: NDArray[np.float64]


def assign_branches(branches: tuple[int, ...], m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The branch b_j of each of m environments, sorted.

    The paper says which values b_j takes but not how often. Here each branch is taken equally often; where m is not a
    multiple of the number of branches, the environments left over take distinct branches drawn at random.

    Returns
    -------
    array of shape (m,), int64
    """
    rounds, left_over = divmod(m, len(branches))
    drawn = rng.choice(branches, size=left_over, replace=False)
    return np.sort(np.concatenate([np.tile(branches, rounds), drawn])).astype(np.int64)


def draw(parameters: ParametricParameters | None = None, random_state: int | None = None) -> ParametricDraw:
    """Draw training, validation and test environments, each collection from its own random stream.

    Within a stream the noise columns are drawn last, and ρ and the label's slope change no draw: settings that differ
    only in d, ρ, β₀ or β₁ share the same environments, z and noise, which makes their comparison sharper.

    Parameters
    ----------
    parameters : ParametricParameters, optional
        The baseline when not given.
    random_state : int, optional
        The same number gives the same draw.
    """
    parameters = parameters or ParametricParameters()
    seeds = np.random.SeedSequence(random_state).spawn(3)
    m_train, m_validation, m_test = parameters.m_train, parameters.m_validation, parameters.m_test
    train, centres = _draw_collection(parameters, "training", m_train, 0, seeds[0])
    validation, _ = _draw_collection(parameters, "validation", m_validation, m_train, seeds[1])
    test, _ = _draw_collection(parameters, "test", m_test, m_train + m_validation, seeds[2])
    return ParametricDraw(parameters, train, validation, test, centres)


def _draw_collection(
    parameters: ParametricParameters, part: str, m: int, first: int, seed: np.random.SeedSequence
) -> tuple[MultiEnvironmentData, NDArray[np.float64]]:
    """Draw m environments, numbered from `first`, and their centres."""
    p = parameters
    rng = np.random.default_rng(seed)
    b = assign_branches(p.branches, m, rng)
    centres = p.Delta * b + p.phi_0 + p.sigma_delta * rng.standard_normal(m)
    rows = m * p.n
    z = np.repeat(centres, p.n) + p.sigma_z * rng.standard_normal(rows)
    y = (rng.random(rows) < expit(p.label_logit(z))).astype(np.int64)
    means = np.stack([np.cos(z), np.sin(z), p.rho * z], axis=1)
    scales = np.array([p.sigma_phase, p.sigma_phase, p.sigma_branch])
    informative = means + scales * rng.standard_normal((rows, INFORMATIVE_COLUMNS))
    noise = p.sigma_noise * rng.standard_normal((rows, p.d - INFORMATIVE_COLUMNS))
    data = MultiEnvironmentData(
        X=np.concatenate([informative, noise], axis=1),
        y=y,
        environments=np.repeat(np.arange(first, first + m), p.n),
        feature_names=tuple(f"x{k}" for k in range(1, p.d + 1)),
        name=f"parametric simulation, {part} environments",
        extra={"z": z},
    )
    return data, centres
