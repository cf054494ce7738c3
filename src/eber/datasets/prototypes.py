"""Gaussian prototypes: a small simulation in which a new environment needs adaptation, with every rule in closed form.

    z | e ~ Categorical(mixture of e)
    x | z ~ N(mean of z, scale² I)
    p(y=1|z) as given

The defaults keep the labels and mixtures of the paper's Colored MNIST, and put the four prototypes at the corners of a
rectangle instead of drawing digits. The first coordinate plays the part of the colour, and the second tells the labels
apart: prototypes 1 and 2 are mostly label 0, 3 and 4 mostly label 1; 1 and 3 lie on the left, 2 and 4 on the right. In
the pooled training environments left mostly means label 0; the test environment reverses that. Expected NLL there:

    pooled rule p(y|x)                                        0.527
    rule of the training environment nearest to it            0.316
    its own rule p(y|x,e_test)                                0.273

The first is what the training environments say about each x alone. The second is what they say when they are reweighed
by unlabelled rows of the new environment, whose mixture lies beyond all of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from eber.datasets.base import MultiEnvironmentData


@dataclass(frozen=True)
class PrototypeParameters:
    """Parameters of the prototypes, their environments and the sample sizes.

    Parameters
    ----------
    means : tuple of J points of d coordinates
        Centre of each prototype; the default has four in the plane.
    scale : float
        Standard deviation of every coordinate about its centre.
    p_y1_given_z : tuple of J floats
        p(y=1|z) of each prototype.
    mixtures : tuple of m tuples of J floats
        p(z|e) of each training environment.
    test_mixture : tuple of J floats
        p(z|e_test).
    n, n_test : int
        Rows in each training environment, and in the test environment.
    """

    means: tuple[tuple[float, ...], ...] = ((-1.6, -1.0), (1.6, -1.0), (-1.6, 1.0), (1.6, 1.0))
    scale: float = 1.0
    p_y1_given_z: tuple[float, ...] = (0.05, 0.05, 0.95, 0.95)
    mixtures: tuple[tuple[float, ...], ...] = (
        (0.49, 0.01, 0.01, 0.49),
        (0.45, 0.05, 0.05, 0.45),
        (0.40, 0.10, 0.10, 0.40),
        (0.30, 0.20, 0.20, 0.30),
        (0.20, 0.30, 0.30, 0.20),
        (0.10, 0.40, 0.40, 0.10),
    )
    test_mixture: tuple[float, ...] = (0.01, 0.49, 0.49, 0.01)
    n: int = 1000
    n_test: int = 2000

    def __post_init__(self) -> None:
        prototypes = len(self.means)
        if len({len(mean) for mean in self.means}) != 1:
            raise ValueError(f"means is {self.means}; all prototypes need the same number of coordinates.")
        if not self.scale > 0:
            raise ValueError(f"scale is {self.scale}; it is a standard deviation and must be positive.")
        if len(self.p_y1_given_z) != prototypes or not all(0 <= p <= 1 for p in self.p_y1_given_z):
            raise ValueError(
                f"p_y1_given_z is {self.p_y1_given_z}; give one probability for each of {prototypes} means."
            )
        for name, mixture in [(f"mixtures[{j}]", row) for j, row in enumerate(self.mixtures)] + [
            ("test_mixture", self.test_mixture)
        ]:
            if len(mixture) != prototypes or min(mixture) < 0 or not np.isclose(sum(mixture), 1):
                raise ValueError(f"{name} is {mixture}; give one weight for each of {prototypes} means, summing to 1.")
        if self.n < 1 or self.n_test < 1:
            raise ValueError(f"n is {self.n} and n_test {self.n_test}; each environment needs at least one row.")

    def p_z_pooled(self) -> NDArray[np.float64]:
        """p(z) over the training environments, (J,): all have the same number of rows."""
        return np.mean(self.mixtures, axis=0)

    def log_p_x_given_z(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-densities, up to a constant; (n, J) from (n, d)."""
        scaled = (np.asarray(X, dtype=np.float64)[:, None, :] - np.asarray(self.means)) / self.scale  # (n, J, d)
        return -np.square(scaled).sum(axis=-1) / 2

    def label_proba(self, X: ArrayLike, p_z: ArrayLike) -> NDArray[np.float64]:
        """p(y|x) in an environment, or a pool of them, whose distribution over prototypes is p(z).

        Returns
        -------
        array of shape (n, 2)
            Columns y = 0, 1.
        """
        p_y1 = np.asarray(self.p_y1_given_z)
        with np.errstate(divide="ignore"):  # a prototype may be absent
            p_z_given_x = softmax(self.log_p_x_given_z(X) + np.log(np.asarray(p_z, dtype=np.float64)), axis=1)
        return p_z_given_x @ np.stack([1 - p_y1, p_y1], axis=1)

    def pooled_label_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The pooled rule p(y|x), the best that can be known from x alone; (n, 2)."""
        return self.label_proba(X, self.p_z_pooled())

    def own_label_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The test environment's own rule p(y|x,e_test); (n, 2)."""
        return self.label_proba(X, self.test_mixture)

    def environment_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """p(e|x) over the training environments; (n, m)."""
        log_p_x_given_e = logsumexp(self.log_p_x_given_z(X)[:, None, :], b=np.asarray(self.mixtures), axis=-1)
        return softmax(log_p_x_given_e, axis=1)


@dataclass(frozen=True)
class PrototypeDraw:
    """Training environments, numbered from 0, and the test environment, numbered after them; ``extra["z"]`` from 1."""

    parameters: PrototypeParameters
    train: MultiEnvironmentData
    test: MultiEnvironmentData


def draw(parameters: PrototypeParameters | None = None, random_state: int | None = None) -> PrototypeDraw:
    """Draw the training environments and the test environment, from independent random streams."""
    parameters = parameters or PrototypeParameters()
    p = parameters
    seeds = np.random.SeedSequence(random_state).spawn(2)
    train = _draw_environments(p, "training", p.mixtures, p.n, 0, seeds[0])
    test = _draw_environments(p, "test", (p.test_mixture,), p.n_test, len(p.mixtures), seeds[1])
    return PrototypeDraw(parameters, train, test)


def _draw_environments(
    p: PrototypeParameters,
    part: str,
    mixtures: tuple[tuple[float, ...], ...],
    n: int,
    first: int,
    seed: np.random.SeedSequence,
) -> MultiEnvironmentData:
    rng = np.random.default_rng(seed)
    prototype = np.concatenate([rng.choice(len(p.means), size=n, p=mixture) for mixture in mixtures])
    means = np.asarray(p.means, dtype=np.float64)
    return MultiEnvironmentData(
        X=means[prototype] + p.scale * rng.standard_normal((len(prototype), means.shape[1])),
        y=(rng.random(len(prototype)) < np.asarray(p.p_y1_given_z)[prototype]).astype(np.int64),
        environments=np.repeat(np.arange(first, first + len(mixtures)), n),
        feature_names=tuple(f"x{k}" for k in range(1, means.shape[1] + 1)),
        name=f"Gaussian prototypes, {part} environments",
        extra={"z": prototype + 1},
    )
