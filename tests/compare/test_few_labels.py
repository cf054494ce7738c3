"""What labels would have been worth in held-out environments, and whether rates lay where they were said to lie."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eber.compare.few_labels import (
    DRAWS,
    HARMFUL,
    RateCheck,
    calibrations_of_others,
    label_gains,
    rate_checks,
    share_inside,
)
from eber.tuning.calibration import Calibration, estimate_calibration
from tests.tuning.test_recalibration import environments


def held_out(m: int, n: int, intercept_sd: float = 1.0, seed: int = 0) -> dict:
    p, y, e, _ = environments(m, n, 0.3, intercept_sd, seed)
    return {f"h{j}": (y[e == j], p[e == j]) for j in range(m)}


def test_an_environment_is_judged_by_how_the_others_differ() -> None:
    held = held_out(5, 80)
    priors = calibrations_of_others(held)
    others = [held[name] for name in ("h0", "h1", "h3", "h4")]
    y, p = (np.concatenate(parts) for parts in zip(*others, strict=True))
    by_hand = estimate_calibration(p, y, np.repeat(np.arange(4), 80))
    np.testing.assert_allclose(priors["h2"].mean, by_hand.mean, atol=1e-5)
    np.testing.assert_allclose(priors["h2"].covariance, by_hand.covariance, atol=1e-5)
    flipped = {**held, "h2": (1 - held["h2"][0], held["h2"][1])}
    np.testing.assert_array_equal(calibrations_of_others(flipped)["h2"].covariance, priors["h2"].covariance)
    assert calibrations_of_others(held_out(3, 80)) == {}


def test_labels_are_learned_from_some_rows_and_judged_by_the_others() -> None:
    """By hand, row after row; and rows whose labels were learned from have no part in the score."""
    held = held_out(6, 140)
    priors = calibrations_of_others(held)
    gains = label_gains(held, priors)
    assert [gain.n_labels for gain in gains] == [10, 30, 100]
    changes = np.empty((6, DRAWS))
    before = []
    for i, (name, (y, p)) in enumerate(held.items()):
        for draw in range(DRAWS):
            order = np.random.default_rng([draw, len(y)]).permutation(len(y))
            seen, rest = order[:30].tolist(), order[30:].tolist()
            after = priors[name].after(p[seen], y[seen])
            losses = [[-np.log(q[0, y[r]]) for q in (p[[r]], after.apply(p[[r]]))] for r in rest]
            plain, adapted = np.mean(losses, 0)
            changes[i, draw] = adapted - plain
            before.append(plain)
    gain = gains[1]
    assert gain.before == pytest.approx(np.mean(before))
    assert gain.after - gain.before == pytest.approx(changes.mean())
    interval = stats.ttest_1samp(changes.mean(1), 0).confidence_interval(0.95)
    assert (gain.low, gain.high) == pytest.approx((interval.low, interval.high))
    assert gain.better == (changes.mean(1) < 0).sum()
    assert gain.harmed == pytest.approx((changes > HARMFUL).mean())
    assert gains[2].after < gains[2].before - 0.02, "environments differ much, and labels say how"


def test_environments_too_small_to_be_judged_are_left_out() -> None:
    held = held_out(5, 35)
    assert [gain.n_labels for gain in label_gains(held, calibrations_of_others(held))] == []
    large = {**held, **{f"g{j}": value for j, value in enumerate(held_out(2, 60, seed=1).values())}}
    gains = label_gains(large, calibrations_of_others(large))
    assert [(gain.n_labels, gain.n_environments) for gain in gains] == [(10, 2), (30, 2)]


def test_the_check_says_how_wide_it_is_itself() -> None:
    checks = [RateCheck(f"h{j}", 50, 0.3, 0.2, 0.4, 0.3 if j else 0.9) for j in range(8)]
    inside, low, high = share_inside(checks)
    # Clopper and Pearson's limits are quantiles of beta distributions.
    assert inside == 7
    assert low == pytest.approx(stats.beta.ppf(0.025, 7, 2))
    assert high == pytest.approx(stats.beta.ppf(0.975, 8, 1))


def test_an_interval_reaches_to_what_was_said() -> None:
    held = {"a": (np.array([0, 1] * 20), np.tile([0.01, 0.99], (40, 1)))}
    sure = Calibration(np.array([-2.0, 0.0, 0.0]), np.diag([1e-4, 1e-4, 1e-4]), 8)
    (check,) = rate_checks(held, {"a": sure}, 1, 0.9)
    assert check.high == pytest.approx(0.99)
