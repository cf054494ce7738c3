"""The leak audit: it finds copies and shared subjects, and keeps quiet about data that are merely coarse or shifted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.microbiome import load_microbiome, log_abundance
from eber.datasets.quasar import load_quasar
from eber.leaks.audit import LeakAudit, LeakWarning, leak_audit
from eber.leaks.near_rows import as_points, measure_nearness

Kind = Callable[[np.random.Generator], NDArray[np.float64]]

N, M = 240, 4  # rows in each environment, environments


def shifted(rng: np.random.Generator, d: int) -> NDArray[np.float64]:
    """M environments of N Gaussian rows, each with a mean of its own."""
    return (rng.normal(size=(M, N, d)) + 0.5 * rng.normal(size=(M, 1, d))).reshape(M * N, d)


def sets_of(X: NDArray[np.float64]) -> tuple[MultiEnvironmentData, MultiEnvironmentData]:
    """Training data, and the last environment held out."""
    data = MultiEnvironmentData(X, np.zeros(len(X)), np.repeat(np.arange(M), len(X) // M))
    return data.split(M - 1)


def audit(X: NDArray[np.float64]) -> LeakAudit:
    return leak_audit(*sets_of(X))


def rounded(rng: np.random.Generator) -> NDArray[np.float64]:
    return np.round(shifted(rng, 4), 1)


def binary(rng: np.random.Generator) -> NDArray[np.float64]:
    return (shifted(rng, 8) > 0).astype(float)


def heavy_tailed(rng: np.random.Generator) -> NDArray[np.float64]:
    return shifted(rng, 8) / np.sqrt(rng.chisquare(2, size=(M * N, 1)))


def clustered(rng: np.random.Generator) -> NDArray[np.float64]:
    centres, spread = 4 * rng.normal(size=(12, 10)), rng.uniform(0.05, 1, 12)
    kind = rng.integers(12, size=M * N)
    return centres[kind] + spread[kind, None] * rng.normal(size=(M * N, 10))


def mostly_zero(rng: np.random.Generator) -> NDArray[np.float64]:
    X = shifted(rng, 15)
    return np.where(X > 1, X, 0.0)


def repeated_subjects(rng: np.random.Generator) -> NDArray[np.float64]:
    """Every subject three times within its environment, with a little noise."""
    once = shifted(rng, 10).reshape(M, N, 10)[:, : N // 3]
    return (np.repeat(once, 3, axis=1) + 0.02 * rng.normal(size=(M, N, 10))).reshape(M * N, 10)


KINDS = [rounded, binary, heavy_tailed, clustered, mostly_zero, repeated_subjects]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_data_without_a_leak_raise_no_alarm(kind: Kind) -> None:
    """Twelve data sets of each kind; the rate of alarms is measured in tests/trust/test_statistics.py."""
    alarms = sum(audit(kind(np.random.default_rng(seed))).found for seed in range(12))
    assert alarms == 0


@pytest.mark.parametrize("d", [2, 5, 20, 60])
def test_gaussian_environments_raise_no_alarm(d: int) -> None:
    assert not any(audit(shifted(np.random.default_rng(seed), d)).found for seed in range(10))


def test_p_values_are_not_too_small_without_a_leak() -> None:
    p_values = np.concatenate([audit(shifted(np.random.default_rng(seed), 6)).p_values for seed in range(10)])
    for level in (0.01, 0.05, 0.1):
        assert np.mean(p_values <= level) <= level


@pytest.mark.parametrize("kind", [lambda rng: shifted(rng, 5), heavy_tailed, clustered, mostly_zero, repeated_subjects])
def test_a_single_copied_row_is_found(kind: Kind) -> None:
    rng = np.random.default_rng(3)
    X = kind(rng)
    original = int(np.flatnonzero(X.any(axis=1))[5])
    X[-7] = X[original]
    found = audit(X)
    np.testing.assert_array_equal(found.suspicious_pairs, [[original, N - 7]])
    assert [original, N - 7] in found.identical_pairs.tolist()


@pytest.mark.parametrize(("d", "noise"), [(5, 0.005), (20, 0.1), (60, 0.3)])
def test_noisy_copies_are_found_with_their_originals(d: int, noise: float) -> None:
    rng = np.random.default_rng(4)
    X = shifted(rng, d)
    copies, originals = np.arange(-20, 0), np.arange(0, 600, 30)
    X[copies] = X[originals] + noise * rng.normal(size=(20, d))
    found = audit(X)
    expected = np.column_stack([originals, np.arange(N - 20, N)])
    np.testing.assert_array_equal(found.suspicious_pairs, expected)
    assert len(found.identical_pairs) == 0


def test_a_held_out_environment_that_is_all_copies_is_found_whole() -> None:
    X = shifted(np.random.default_rng(5), 8)
    X[-N:] = X[:N]
    assert len(audit(X).leaked_rows) == N


def test_copies_are_found_though_training_has_several_of_them() -> None:
    rng = np.random.default_rng(6)
    X = shifted(rng, 10)
    for row in (0, 1, 3, -1):
        X[row] = X[2] + 0.01 * rng.normal(size=10)
    assert audit(X).leaked_rows.tolist() == [N - 1]


def test_copies_between_all_environments_are_found() -> None:
    """The same forty rows are in every environment, so that the other environments are no clean reference."""
    X = shifted(np.random.default_rng(7), 10).reshape(M, N, 10)
    X[:, :40] = X[0, :40]
    assert set(range(40)) <= set(audit(X.reshape(-1, 10)).leaked_rows.tolist())


def test_identical_rows_of_coarse_data_are_mentioned_but_not_counted() -> None:
    found = audit(binary(np.random.default_rng(8)))
    assert len(found.identical_pairs) > N // 2
    assert not found.found
    assert "not counted" in found.summary[0]


@pytest.mark.parametrize("decimals", [15, 1], ids=["finely measured", "rounded"])
@pytest.mark.parametrize("doubles", [1, 5])
def test_double_entries_in_every_environment_do_not_excuse_copies(decimals: int, doubles: int) -> None:
    """Each environment has twenty rows of each other, and some of its own rows twice."""
    rng = np.random.default_rng(16)
    own = np.round(rng.normal(size=(3, 300, 8)), decimals)
    parts = [
        np.concatenate([own[e], own[e, :doubles], *(own[f, 20 * e + 50 : 20 * e + 70] for f in range(3) if f != e)])
        for e in range(3)
    ]
    data = MultiEnvironmentData(
        np.concatenate(parts), np.zeros(3 * len(parts[0])), np.repeat(np.arange(3), len(parts[0]))
    )
    found = leak_audit(*data.split(2))
    assert len(found.identical_pairs) >= 80
    np.testing.assert_array_equal(found.leaked_rows, found.identical_pairs[:, 1])


def test_more_copies_than_environments_have_of_each_other_are_found_in_coarse_data() -> None:
    """Rows repeat by nature, but half of the held-out ones were taken from one training environment."""
    rng = np.random.default_rng(17)
    X = rng.integers(0, 4, size=(M, N, 5)).astype(float)
    assert not audit(X.reshape(M * N, 5)).found
    X[-1, : N // 2] = X[1, : N // 2]
    assert set(range(N // 2)) <= set(audit(X.reshape(M * N, 5)).leaked_rows.tolist())


def ages(rng: np.random.Generator) -> NDArray[np.float64]:
    """A measurement in two units, and yes or no."""
    age = np.round(60 + 12 * rng.normal(size=3 * 25), 1)
    return np.column_stack([age, 12 * age, rng.random((3 * 25, 2)) > 0.5])


def measured_together(rng: np.random.Generator) -> NDArray[np.float64]:
    """Three rows of ten have none of four measurements, and only yes or no in common."""
    X = rng.normal(size=(3 * 25, 5))
    X[:, 4] = X[:, 4] > 0
    X[rng.random(3 * 25) < 0.3, :4] = np.nan
    return X


@pytest.mark.parametrize("kind", [ages, measured_together], ids=lambda kind: kind.__name__)
def test_small_tables_in_which_a_few_rows_coincide_raise_no_alarm(kind: Kind) -> None:
    environments = np.repeat(np.arange(3), 25)
    audits = [
        leak_audit(*MultiEnvironmentData(kind(np.random.default_rng(seed)), np.zeros(75), environments).split(2))
        for seed in range(30)
    ]
    assert sum(len(found.identical_pairs) > 0 for found in audits) > 10
    assert not any(found.found for found in audits)


@given(
    scale=st.lists(st.sampled_from([-1e-6, 1e-3, 1.0, 1e5]), min_size=6, max_size=6),
    offset=st.sampled_from([0.0, 1e3]),
    seed=st.integers(0, 5),
)
@settings(max_examples=12, deadline=None)
def test_units_of_the_columns_do_not_matter(scale: list[float], offset: float, seed: int) -> None:
    X = shifted(np.random.default_rng(seed), 6)
    X[-5:] = X[:5] + 1e-4
    expected = audit(X)
    found = audit((X + offset) * np.array(scale))
    np.testing.assert_array_equal(found.suspicious_pairs, expected.suspicious_pairs)
    np.testing.assert_allclose(found.p_values, expected.p_values, rtol=1e-3, atol=1e-12)


def test_missing_values_equal_each_other() -> None:
    rng = np.random.default_rng(9)
    X = shifted(rng, 10)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[-1] = X[3]
    found = audit(X)
    assert found.identical_pairs.tolist() == found.suspicious_pairs.tolist() == [[3, N - 1]]


def test_rows_that_differ_only_in_what_is_missing_are_no_evidence() -> None:
    rng = np.random.default_rng(14)
    X = np.where(rng.random((M * N, 12)) < 0.5, np.nan, 1.0)
    assert not audit(X).found
    X[:, 0] = rng.integers(3, size=M * N)
    assert not audit(X).found


def test_rows_in_which_nothing_was_measured_are_no_evidence() -> None:
    """One such row in training and one held out are alike, but not because they are of one subject."""
    rng = np.random.default_rng(15)
    X = shifted(rng, 6)
    X[:, 1:] = np.where(rng.random((M * N, 5)) < 0.7, 0.0, X[:, 1:])
    X[:, 0] = np.where(X[:, 1:].any(axis=1) & (rng.random(M * N) < 0.7), 0.0, X[:, 0])
    X[[0, -1]] = 0.0
    assert (~X.any(axis=1)).sum() == 2
    assert not audit(X).found
    X[-1] = X[np.flatnonzero((X[:N] != 0).sum(1) > 2)[0]]
    assert audit(X).leaked_rows.tolist() == [N - 1]


def test_images_are_compared_too() -> None:
    rng = np.random.default_rng(10)
    X = rng.random((M * 100, 2, 14, 14)).astype(np.float32)
    X[-1] = X[0]
    data = MultiEnvironmentData(X, np.zeros(len(X)), np.repeat(np.arange(M), 100))
    assert leak_audit(*data.split(3)).suspicious_pairs.tolist() == [[0, 99]]


def test_shared_identifiers_are_found_and_missing_ones_ignored() -> None:
    rng = np.random.default_rng(11)
    train, held_out = (
        MultiEnvironmentData(
            rng.normal(size=(n, 3)), np.zeros(n), np.zeros(n), identifiers=np.array(names, dtype=object)
        )
        for n, names in [(5, ["a", "b", "b", None, "c"]), (4, ["b", None, "x", "b"])]
    )
    found = leak_audit(train, held_out)
    assert found.identifier_pairs.tolist() == [[1, 0], [1, 3]]
    assert found.shared_identifiers == ("b",)
    assert found.summary[0].startswith("2 of 4 held-out rows carry an identifier")


def test_a_finding_is_warned_of_and_silence_means_none() -> None:
    X = shifted(np.random.default_rng(12), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit(X).warn()
    X[-1] = X[0]
    with pytest.warns(LeakWarning, match=r"1 of 240 held-out rows are nearer .* leave them out"):
        audit(X).warn()


def test_sets_too_small_to_judge_are_only_checked_for_identifiers() -> None:
    tiny = MultiEnvironmentData(np.arange(6.0).reshape(3, 2), np.zeros(3), np.arange(3), identifiers=np.arange(3))
    found = leak_audit(tiny, tiny)
    assert len(found.identical_pairs) == 3
    assert len(found.identifier_pairs) == 3
    assert len(found.suspicious_pairs) == 0


def test_different_features_are_refused() -> None:
    with pytest.raises(ValueError, match="same features"):
        leak_audit(sets_of(shifted(np.random.default_rng(0), 3))[0], sets_of(shifted(np.random.default_rng(0), 4))[1])


def test_the_ratio_follows_its_law_for_uniform_points() -> None:
    """With k = 2 and points on a line, r is uniform: d_1/d_2 with D = 1."""
    rng = np.random.default_rng(13)
    rows, queries = as_points(rng.random((4000, 1)), rng.uniform(0.1, 0.9, (4000, 1)), None)
    found = measure_nearness(queries, rows, 2)
    assert found is not None
    np.testing.assert_allclose(np.quantile(found.ratios, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.03)


def test_the_subjects_that_zackular_and_baxter_share_are_found(data_dir: Path) -> None:
    """By identifier, all; from the features alone, on a logarithmic scale, some, and then the right ones."""
    data = load_microbiome(data_dir)
    assert data.identifiers is not None
    baxter = data.environments == "crc_baxter"
    train = data.select(np.isin(data.environments, ["crc_zeller", "crc_xiang", "crc_zackular"]))
    found = leak_audit(train, data.select(baxter), transform=log_abundance)
    assert len(found.identifier_pairs) == 56
    assert set(train.environments[found.identifier_pairs[:, 0]]) == {"crc_zackular"}
    assert len(found.suspicious_pairs) >= 20
    assert found.found_by_features == len(found.suspicious_pairs)
    assert train.identifiers is not None
    np.testing.assert_array_equal(
        train.identifiers[found.suspicious_pairs[:, 0]], data.identifiers[baxter][found.suspicious_pairs[:, 1]]
    )
    without = data.select(np.isin(data.environments, ["crc_zeller", "crc_xiang", "crc_zhao"]))
    assert not leak_audit(without, data.select(baxter), transform=log_abundance).found


def test_regions_of_the_sky_share_no_objects(data_dir: Path) -> None:
    assert not leak_audit(*load_quasar(data_dir).split("b_q1")).found
