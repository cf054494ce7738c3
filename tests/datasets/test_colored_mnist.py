"""Colored MNIST: the idx format, the generative process, and the exact oracles."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from eber.datasets import colored_mnist as cm
from eber.datasets.idx import read_idx


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture(scope="module")
def digits_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny MNIST: in image k of a part, every pixel is k + 1, so that an image can be recognised."""
    folder = tmp_path_factory.mktemp("data") / "mnist"
    folder.mkdir()
    for part, n in [("train", 60), ("t10k", 40)]:
        images = np.broadcast_to(np.arange(1, n + 1, dtype=np.uint8)[:, None, None], (n, 28, 28))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(images)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(n, dtype=np.uint8) % 10))
    return folder.parent


@given(
    array=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)), packed=st.booleans()
)
@settings(max_examples=30, deadline=None)
def test_an_idx_file_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, array: NDArray[np.uint8], packed: bool
) -> None:
    path = tmp_path_factory.mktemp("idx") / "file"
    path.write_bytes(gzip.compress(idx_bytes(array)) if packed else idx_bytes(array))
    np.testing.assert_array_equal(read_idx(path, array.ndim), array)


@given(cut=st.integers(min_value=0, max_value=10_000), packed=st.booleans())
@settings(max_examples=40, deadline=None)
def test_an_idx_file_cut_off_anywhere_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int, packed: bool
) -> None:
    content = idx_bytes(np.random.default_rng(0).integers(0, 256, (4, 6, 6), dtype=np.uint8))
    content = gzip.compress(content) if packed else content
    path = tmp_path_factory.mktemp("idx") / "cut.gz"
    path.write_bytes(content[: cut % len(content)])
    with pytest.raises(ValueError, match=r"cut\.gz"):
        read_idx(path, 3)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(idx_bytes(np.zeros(20, dtype=np.uint8)))
    with pytest.raises(ValueError, match="magic number 0x00000801 instead of 0x00000803"):
        read_idx(path, 3)


def test_the_pooled_marginal_rule_and_the_test_rule_score_what_the_tables_imply() -> None:
    marginal = cm.expected_score(cm.label_rule(cm.POOLED_MIXTURE), cm.TEST_MIXTURE)
    own = cm.expected_score(cm.label_rule(cm.TEST_MIXTURE), cm.TEST_MIXTURE)
    assert marginal.accuracy == pytest.approx(0.7015, abs=5e-5)
    assert marginal.nll == pytest.approx(0.587, abs=5e-4)
    assert own.accuracy == pytest.approx(0.897, abs=5e-4)
    assert own.nll == pytest.approx(0.325, abs=5e-4)


@given(
    weights=hnp.arrays(np.float64, 4, elements=st.floats(0.01, 1)),
    rule=hnp.arrays(np.float64, (10, 2), elements=st.floats(0.01, 0.99)),
)
def test_no_rule_beats_the_environments_own(weights: NDArray[np.float64], rule: NDArray[np.float64]) -> None:
    mixture = weights / weights.sum()
    best = cm.expected_score(cm.label_rule(mixture), mixture)
    other = cm.expected_score(rule, mixture)
    assert other.accuracy <= best.accuracy + 1e-12
    assert other.nll >= best.nll - 1e-12


def test_impossible_combinations_cost_nothing() -> None:
    only_first = np.array([1.0, 0, 0, 0])
    rule = cm.label_rule(only_first)
    assert rule[9, cm.RED] == 0.5
    np.testing.assert_allclose(rule[:7], 0.05)
    assert cm.expected_score(rule, only_first).nll == pytest.approx(-0.95 * np.log(0.95) - 0.05 * np.log(0.05))


def test_a_mixture_must_be_a_distribution_over_four_prototypes() -> None:
    with pytest.raises(ValueError, match="four probabilities"):
        cm.label_rule([0.5, 0.5, 0.5, 0.5])


def test_draws_follow_the_tables(digits_dir: Path) -> None:
    train, test = cm.load_colored_mnist(digits_dir, random_state=1, n_train=3000, n_test=3000)
    assert {str(name) for name in train.environment_names} == set(cm.TRAIN_MIXTURES)
    # Each proportion below has a standard error of at most 0.013.
    for name, mixture in [*cm.TRAIN_MIXTURES.items(), ("test", cm.TEST_MIXTURE)]:
        part = test if name == "test" else train.select(train.environments == name)
        assert len(part) == 3000
        shares = np.bincount(part.extra["z"], minlength=5)[1:] / 3000
        np.testing.assert_allclose(shares, mixture, atol=0.05)
    for z in range(1, 5):
        rows = train.extra["z"] == z
        assert train.y[rows].mean() == pytest.approx(cm.P_LABEL_1[z - 1], abs=0.03)
        assert train.extra["colour"][rows].mean() == pytest.approx(cm.P_GREEN[z - 1], abs=0.03)
        digits = np.bincount(train.extra["digit"][rows], minlength=10) / rows.sum()
        np.testing.assert_allclose(digits, cm.P_DIGIT[z - 1], atol=0.04)
        assert not digits[cm.P_DIGIT[z - 1] == 0].any()


def test_prototypes_one_and_three_are_red_and_the_first_two_have_label_0(digits_dir: Path) -> None:
    train, _ = cm.load_colored_mnist(digits_dir, random_state=5, n_train=500, n_test=1)
    z, colour = train.extra["z"], train.extra["colour"]
    assert np.mean((colour == cm.RED) == np.isin(z, [1, 3])) == pytest.approx(0.95, abs=0.02)
    assert np.mean((train.y == 0) == np.isin(z, [1, 2])) == pytest.approx(0.95, abs=0.02)
    red = train.X[:, 0].any(axis=(1, 2))
    np.testing.assert_array_equal(red, colour == cm.RED)


def test_an_image_shows_its_digit_in_its_colour_only(digits_dir: Path) -> None:
    train, test = cm.load_colored_mnist(digits_dir, random_state=2, n_train=50, n_test=50)
    for data, part in [(train, "train"), (test, "t10k")]:
        assert data.X.shape[1:] == (2, 28, 28)
        assert data.X.dtype == np.float32
        assert data.identifiers is not None
        index = np.array([int(name.removeprefix(f"{part}-")) for name in data.identifiers])
        rows = np.arange(len(data))
        np.testing.assert_array_equal(index % 10, data.extra["digit"])
        np.testing.assert_allclose(data.X[rows, data.extra["colour"], 0, 0], (index + 1) / 255, rtol=1e-6)
        assert not data.X[rows, 1 - data.extra["colour"]].any()


def test_the_seed_decides_the_draw(digits_dir: Path) -> None:
    first, again, other = (
        cm.load_colored_mnist(digits_dir, random_state=seed, n_train=20, n_test=20)[0] for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.y, other.y) or not np.array_equal(first.X, other.X)


def test_labels_must_match_the_images(digits_dir: Path, tmp_path: Path) -> None:
    for file in (digits_dir / "mnist").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(10, dtype=np.uint8)))
    with pytest.raises(ValueError, match=r"60 images, but .*train-labels-idx1-ubyte has 10 labels"):
        cm.load_colored_mnist(tmp_path, random_state=0)


def test_missing_files_are_named_with_the_way_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte.*eber data fetch mnist"):
        cm.load_colored_mnist(tmp_path, random_state=0)


def test_the_real_digits_give_the_expected_accuracy_of_the_marginal_rule(data_dir: Path) -> None:
    train, test = cm.load_colored_mnist(data_dir, random_state=0, n_train=500)
    assert train.X.shape == (3000, 2, 28, 28)
    assert test.X.shape == (10_000, 2, 28, 28)
    p = cm.label_rule(cm.POOLED_MIXTURE)[test.extra["digit"], test.extra["colour"]]
    # 0.7015 with a standard error of 0.0046.
    assert np.mean((p > 0.5) == test.y) == pytest.approx(0.7015, abs=0.015)
