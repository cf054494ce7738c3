"""How many seeds the paper's p-values can have come from: bounds that hold, and what they say of its tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from eber.experiments.paper_p_values import (
    HALF_DIGIT,
    PrintedTest,
    all_tables,
    feasible_seeds,
    is_feasible,
    p_value_band,
)


@pytest.mark.parametrize("n_seeds", [3, 5, 10])
def test_the_band_holds_every_p_value_of_scores_with_these_means_and_deviations(n_seeds: int) -> None:
    rng = np.random.default_rng(n_seeds)
    for _ in range(50):
        a, b = rng.normal(size=(2, n_seeds)) * rng.uniform(0.01, 0.1, (2, 1)) + rng.uniform(0.3, 0.6, (2, 1))
        mean, sds = float((b - a).mean()), (float(a.std(ddof=1)), float(b.std(ddof=1)))
        test = PrintedTest((0, 1), (mean, mean), ((sds[0], sds[0]), (sds[1], sds[1])))
        low, high = p_value_band(test, n_seeds)
        p = stats.ttest_1samp(b - a, 0, alternative="greater").pvalue
        assert low - 1e-12 <= p <= high + 1e-12


def _printed(value: float, roundings: int = 1) -> tuple[float, float]:
    return max(0.0, value - roundings * HALF_DIGIT), value + roundings * HALF_DIGIT


@pytest.mark.parametrize("n_seeds", [3, 5])
def test_printed_p_values_are_feasible_with_the_seeds_they_came_from(n_seeds: int) -> None:
    """Simulated tables of four methods, printed as the paper prints: their own number of seeds is never ruled out."""
    rng = np.random.default_rng(n_seeds)
    for _ in range(10):
        own = rng.normal(0.4, 0.03, n_seeds)
        others = own + rng.normal(0.05, 0.04, (4, n_seeds)) + rng.uniform(0, 0.1, (4, 1))
        raw = [stats.ttest_1samp(other - own, 0, alternative="greater").pvalue for other in others]
        corrected = stats.false_discovery_control(raw, method="by")
        tests = [
            PrintedTest(
                _printed(p),
                _printed(float((other - own).mean()), 2),
                (_printed(own.std(ddof=1)), _printed(other.std(ddof=1))),
            )
            for p, other in zip(corrected, others, strict=True)
        ]
        assert is_feasible(tests, n_seeds)


def test_the_parametric_tables_were_made_with_three_seeds_and_the_data_tables_with_five() -> None:
    tables = all_tables()
    for name in ("parametric, baseline", "parametric, n=1000"):
        assert feasible_seeds(*tables[name], seeds=(2, 3, 4, 5)) == [3]
    assert feasible_seeds(*tables["Colored MNIST"], seeds=(3, 4, 5, 6)) == [5]
    assert 5 in feasible_seeds(*tables["sepsis"], seeds=(3, 5))
