"""Colored MNIST with latent prototypes: the environment changes only how often each prototype occurs.

    z ~ p(z|e),   y ~ p(y|z),   d ~ p(d|z),   c ~ p(c|z),   x ~ p(x|d,c)

with prototypes z in {1, 2, 3, 4}, label y, digit d and colour c (Appendix "Colored MNIST"). Since z, y, d and c are
discrete, p(y|d,c) is known exactly for every mixture over z: `label_rule` and `expected_score` give the best that a
classifier can do that reads digit and colour perfectly.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.checks import dataset_folder, first_present
from eber.datasets.idx import read_idx

# Row z - 1 of each table belongs to prototype z.
P_LABEL_1 = np.array([0.05, 0.05, 0.95, 0.95])
P_GREEN = np.array([0.05, 0.95, 0.05, 0.95])
P_DIGIT = np.array(
    [
        [0.30, 0.22, 0.22, 0.10, 0.08, 0.06, 0.02, 0.00, 0.00, 0.00],
        [0.00, 0.00, 0.02, 0.06, 0.08, 0.10, 0.22, 0.22, 0.22, 0.08],
        [0.08, 0.00, 0.00, 0.08, 0.02, 0.22, 0.08, 0.22, 0.08, 0.22],
        [0.08, 0.22, 0.22, 0.02, 0.22, 0.00, 0.10, 0.00, 0.14, 0.00],
    ]
)
TRAIN_MIXTURES = {
    "e1": np.array([0.49, 0.01, 0.01, 0.49]),
    "e2": np.array([0.45, 0.05, 0.05, 0.45]),
    "e3": np.array([0.40, 0.10, 0.10, 0.40]),
    "e4": np.array([0.30, 0.20, 0.20, 0.30]),
    "e5": np.array([0.20, 0.30, 0.30, 0.20]),
    "e6": np.array([0.10, 0.40, 0.40, 0.10]),
}
TEST_MIXTURE = np.array([0.01, 0.49, 0.49, 0.01])
# Equal numbers are drawn from each training environment.
POOLED_MIXTURE = np.mean(list(TRAIN_MIXTURES.values()), axis=0)
RED, GREEN = 0, 1


class Score(NamedTuple):
    """Expected accuracy and negative log-likelihood."""

    accuracy: float
    nll: float


def label_rule(mixture: ArrayLike) -> NDArray[np.float64]:
    """p(y=1|d,c) in an environment with the given p(z).

    Parameters
    ----------
    mixture : array of shape (4,)
        p(z). `POOLED_MIXTURE` gives the marginal rule over the training environments, `TEST_MIXTURE` the test
        environment's own rule.

    Returns
    -------
    array of shape (10, 2)
        Digit by colour (red, green). One half where the mixture never produces the combination.
    """
    joint = _joint(mixture)  # (label, digit, colour)
    total = joint.sum(axis=0)
    return np.divide(joint[1], total, out=np.full_like(total, 0.5), where=total > 0)


def expected_score(rule: ArrayLike, mixture: ArrayLike) -> Score:
    """What a rule scores in an environment, exactly.

    Parameters
    ----------
    rule : array of shape (10, 2)
        p(y=1|d,c) as the rule has it.
    mixture : array of shape (4,)
        p(z) of the environment in which it is used.
    """
    rule = np.asarray(rule, dtype=np.float64)
    joint = _joint(mixture)
    predicted = rule > 0.5
    accuracy = np.where(predicted, joint[1], joint[0]).sum()
    with np.errstate(divide="ignore"):
        log_loss = -np.log(np.stack([1 - rule, rule]))
    # Combinations that never occur cost nothing, even under a rule that excludes them.
    nll = np.multiply(joint, log_loss, out=np.zeros_like(joint), where=joint > 0).sum()
    return Score(float(accuracy), float(nll))


def load_colored_mnist(
    data_dir: str | Path, *, random_state: int, n_train: int = 5000, n_test: int = 10_000
) -> tuple[MultiEnvironmentData, MultiEnvironmentData]:
    """Draw the six training environments and the test environment.

    Each image is drawn, with replacement, from those of its digit: training images from MNIST's training set, test
    images from its test set. There are two channels, red and green, as no image has any blue: a third channel would
    be zero everywhere.

    Parameters
    ----------
    data_dir : path
        Folder with the four idx files, gzipped or not, or with a folder ``mnist`` that has them.
    random_state : int
        Seed of the whole draw.
    n_train : int
        Images in each training environment.
    n_test : int
        Images in the test environment.

    Returns
    -------
    train, test : MultiEnvironmentData
        X of shape (n, 2, 28, 28), float32 in [0, 1]. `extra` holds ``digit``, ``colour`` (0 red, 1 green) and ``z``;
        `identifiers` name the MNIST image.
    """
    folder = dataset_folder(data_dir, "mnist")
    rng = np.random.default_rng(random_state)
    train_images, train_digits = _read_digits(folder, "train")
    parts = [
        _draw(rng, name, mixture, n_train, train_images, train_digits, "train")
        for name, mixture in TRAIN_MIXTURES.items()
    ]
    train = MultiEnvironmentData(
        X=np.concatenate([part.X for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        environments=np.concatenate([part.environments for part in parts]),
        identifiers=np.concatenate([part.identifiers for part in parts if part.identifiers is not None]),
        name="Colored MNIST",
        extra={key: np.concatenate([part.extra[key] for part in parts]) for key in parts[0].extra},
    )
    return train, _draw(rng, "test", TEST_MIXTURE, n_test, *_read_digits(folder, "t10k"), "t10k")


def _joint(mixture: ArrayLike) -> NDArray[np.float64]:
    """p(y, d, c), shape (2, 10, 2)."""
    p_z = np.asarray(mixture, dtype=np.float64)
    if p_z.shape != (4,) or np.any(p_z < 0) or not np.isclose(p_z.sum(), 1):
        raise ValueError(f"a mixture is four probabilities that sum to one, not {mixture!r}.")
    p_label = np.stack([1 - P_LABEL_1, P_LABEL_1], axis=1)
    p_colour = np.stack([1 - P_GREEN, P_GREEN], axis=1)
    return np.einsum("z,zy,zd,zc->ydc", p_z, p_label, P_DIGIT, p_colour)


def _read_digits(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    paths = [
        first_present(folder, [f"{part}-{kind}-ubyte.gz", f"{part}-{kind}-ubyte"], "mnist")
        for kind in ("images-idx3", "labels-idx1")
    ]
    images, digits = read_idx(paths[0], dimensions=3), read_idx(paths[1], dimensions=1)
    if images.shape[1:] != (28, 28):
        raise ValueError(f"{paths[0]} has images of {images.shape[1]} by {images.shape[2]} pixels, not 28 by 28.")
    if len(images) != len(digits):
        raise ValueError(f"{paths[0]} has {len(images)} images, but {paths[1]} has {len(digits)} labels.")
    if len(digits) and digits.max() > 9:
        raise ValueError(f"{paths[1]}, item {int(digits.argmax())}: the label {digits.max()} is not a digit.")
    absent = np.setdiff1d(np.arange(10), digits)
    if len(absent):
        raise ValueError(f"{paths[1]} has no digit {absent[0]}; all ten are needed.")
    return images, digits


def _draw(
    rng: np.random.Generator,
    environment: str,
    mixture: NDArray[np.float64],
    n: int,
    images: NDArray[np.uint8],
    digits: NDArray[np.uint8],
    part: str,
) -> MultiEnvironmentData:
    z = rng.choice(4, size=n, p=mixture)
    y = (rng.random(n) < P_LABEL_1[z]).astype(np.int64)
    colour = (rng.random(n) < P_GREEN[z]).astype(np.int64)
    digit = np.empty(n, dtype=np.int64)
    chosen = np.empty(n, dtype=np.int64)
    for prototype in range(4):
        rows = z == prototype
        digit[rows] = rng.choice(10, size=rows.sum(), p=P_DIGIT[prototype])
    for value in range(10):
        rows = digit == value
        chosen[rows] = rng.choice(np.flatnonzero(digits == value), size=rows.sum())
    X = np.zeros((n, 2, 28, 28), dtype=np.float32)
    X[np.arange(n), colour] = images[chosen] / np.float32(255)
    return MultiEnvironmentData(
        X=X,
        y=y,
        environments=np.full(n, environment),
        identifiers=np.array([f"{part}-{index}" for index in chosen]),
        name="Colored MNIST",
        extra={"digit": digit, "colour": colour, "z": z + 1},
    )
