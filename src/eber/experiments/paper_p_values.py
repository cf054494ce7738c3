"""With how many seeds can the paper's p-values have come about?

The paper prints means and standard deviations over seeds and p-values of a one-sided t-test with Benjamini and
Yekutieli's correction, but not the number of seeds. For n seeds, two methods with means a and b and deviations s and t
have differences whose mean is b - a and whose deviation lies between |s - t| and s + t, whatever the pairing is worth.
That bounds the p-value of each test, and the corrected ones must come out of four such values together:

    corrected p of rank i = min over j >= i of v_j,     v_j = p_(j) · M · (1 + 1/2 + ... + 1/M) / j

with p_(1) <= ... <= p_(M). Whether there are p-values within their bounds that give the printed ones, as rounded, is a
linear programme for each order of the methods and each pattern of equal values.

Run it with: python -m eber.experiments.paper_p_values
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy import optimize, stats

from eber.experiments.data_paper import COLORED_MNIST, MICROBIOME, QUASAR, SEPSIS
from eber.experiments.parametric_paper import PAPER as PARAMETRIC
from eber.runs.spec import PaperTable

HALF_DIGIT = 0.0005
"""The paper prints three decimals."""
SEEDS = range(2, 21)

Band = tuple[float, float]
"""The least and the largest value that something can have."""


@dataclass(frozen=True)
class PrintedTest:
    """One printed p-value: the band of the corrected value, and of the mean difference and deviations behind it."""

    corrected: Band
    advantage: Band
    deviations: tuple[Band, Band]


def printed_tests(table: PaperTable, metric: str, higher_is_better: bool) -> list[PrintedTest]:
    """What the paper printed of EBER against each other method."""

    def band(value: float) -> Band:
        return max(0.0, value - HALF_DIGIT), value + HALF_DIGIT

    own_mean, own_sd = table.rows["EBER"][metric]
    tests = []
    for method, text in table.p_values.items():
        mean, sd = table.rows[method][metric]
        advantage = own_mean - mean if higher_is_better else mean - own_mean
        corrected = (0.0, 0.001) if text.startswith("<") else band(float(text))
        tests.append(
            PrintedTest(corrected, (advantage - 2 * HALF_DIGIT, advantage + 2 * HALF_DIGIT), (band(own_sd), band(sd)))
        )
    return tests


def p_value_band(test: PrintedTest, n_seeds: int) -> Band:
    """What the uncorrected p-value can be with so many seeds, over all correlations between the two methods."""
    (s_low, s_high), (t_low, t_high) = test.deviations
    narrowest = max(0.0, s_low - t_high, t_low - s_high)
    widest = s_high + t_high

    def p(advantage: float, deviation: float) -> float:
        t = math.copysign(math.inf, advantage) if deviation == 0 else advantage * math.sqrt(n_seeds) / deviation
        return float(stats.t.sf(t, n_seeds - 1))

    values = [p(advantage, deviation) for advantage, deviation in product(test.advantage, (narrowest, widest))]
    return min(values), max(values)


def is_feasible(tests: Sequence[PrintedTest], n_seeds: int) -> bool:
    """Whether p-values of so many seeds can have given what is printed."""
    bands = [p_value_band(test, n_seeds) for test in tests]
    return any(_order_is_feasible(order, tests, bands) for order in permutations(range(len(tests))))


def _order_is_feasible(order: Sequence[int], tests: Sequence[PrintedTest], bands: Sequence[Band]) -> bool:
    """Whether it can be with the methods' p-values in this order, the smallest first."""
    M = len(order)
    factors = [M * sum(1 / k for k in range(1, M + 1)) / j for j in range(1, M + 1)]  # v_j = factor · p_(j)
    lows = [tests[k].corrected[0] for k in order]
    if any(lows[i] > tests[order[j]].corrected[1] for i in range(M) for j in range(i, M)):
        return False  # corrected values rise with the rank
    # Unknowns: p_(1..M), then the corrected values A_(1..M).
    limits = [bands[k] for k in order] + [tests[k].corrected for k in order]
    below: list[np.ndarray] = []  # rows whose product with the unknowns is at most zero
    for i in range(M):
        for j in range(i, M):
            below.append(_row(2 * M, {M + i: 1.0, j: -factors[j]}))  # A_i <= v_j
        if i + 1 < M:
            below.append(_row(2 * M, {i: 1.0, i + 1: -1.0}))
    # A_i is v_i, or what A_(i+1) is; the last is its own v.
    for own in product((True, False), repeat=M - 1):
        equal = [
            _row(2 * M, {M + i: 1.0, i: -factors[i]} if at_own else {M + i: 1.0, M + i + 1: -1.0})
            for i, at_own in enumerate((*own, True))
        ]
        found = optimize.linprog(
            np.zeros(2 * M), np.array(below), np.zeros(len(below)), np.array(equal), np.zeros(M), limits
        )
        if found.status == 0:
            return True
    return False


def _row(width: int, entries: Mapping[int, float]) -> np.ndarray:
    row = np.zeros(width)
    for position, value in entries.items():
        row[position] = value
    return row


def feasible_seeds(table: PaperTable, metric: str, higher_is_better: bool, seeds: Iterable[int] = SEEDS) -> list[int]:
    """The numbers of seeds with which a table's p-values can have come about."""
    tests = printed_tests(table, metric, higher_is_better)
    return [n for n in seeds if is_feasible(tests, n)]


def all_tables() -> dict[str, tuple[PaperTable, str, bool]]:
    """Every table of the paper that prints p-values: the table, its tested metric and whether larger is better."""
    return {
        **{f"parametric, {setting}": (table, "nll", False) for setting, table in PARAMETRIC.items() if table.p_values},
        "Colored MNIST": (COLORED_MNIST, "nll", False),
        "quasars": (QUASAR, "nll", False),
        "microbiome": (MICROBIOME, "nll", False),
        "sepsis": (SEPSIS, "auroc", True),
    }


def main() -> None:
    """Print the numbers of seeds that each table admits."""
    for name, (table, metric, higher_is_better) in all_tables().items():
        found = feasible_seeds(table, metric, higher_is_better)
        print(f"{name:24} {', '.join(map(str, found)) or 'none'}")


if __name__ == "__main__":
    main()
