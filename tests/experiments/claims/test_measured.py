"""What is computed on the spot: Theorem 1, Algorithm 1 to the letter, the cost, and the paper's p-values."""

from __future__ import annotations

import math
from typing import cast

import pytest

from eber.datasets.motivating import MotivatingExample
from eber.estimators import EBERClassifier
from eber.experiments.claims import measured
from eber.experiments.claims.claim import Verdict
from eber.experiments.claims.evidence import Evidence

NONE = cast(Evidence, None)


def test_theorem_1_is_an_identity() -> None:
    assert measured.theorem_is_an_identity(NONE).verdict is Verdict.CONFIRMED


def test_algorithm_1_to_the_letter_is_no_lower_bound() -> None:
    """No lower bound of the log-probability of a label exceeds zero; its estimate climbs without end.

    The stratified reading of the same form, on the same draw, stays below.
    """
    literal, stratified = measured.literal_bound(), measured.literal_bound("stratified")
    assert all(map(math.isfinite, literal))
    assert literal[0] < 0 < 100 < literal[-1]
    assert max(stratified) < 0
    assert measured.algorithm_1_maximises_a_lower_bound(NONE).verdict is Verdict.NOT_CONFIRMED


def test_the_objective_is_a_lower_bound() -> None:
    assert measured.objective_is_a_lower_bound(NONE).verdict is Verdict.CONFIRMED


def test_the_environments_of_proposition_2_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would not."""
    assert measured.so_many_environments_suffice(NONE).verdict is Verdict.CONFIRMED
    monkeypatch.setattr(MotivatingExample, "sufficient_environments", lambda *_: 2)
    assert measured.so_many_environments_suffice(NONE).verdict is Verdict.NOT_CONFIRMED


@pytest.mark.parametrize(("eber", "verdict"), [(2.0, Verdict.CONFIRMED), (1.1, Verdict.NOT_CONFIRMED)])
def test_eber_costs_more_than_erm(eber: float, verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_seconds", lambda p, kind: eber if kind is EBERClassifier else 1.0)
    assert measured.eber_costs_more(NONE).verdict is verdict


@pytest.mark.parametrize(
    ("many", "wide", "verdict"),
    [(5.0, 1.1, Verdict.CONFIRMED), (3.1, 1.1, Verdict.CONDITIONAL), (1.5, 2.0, Verdict.NOT_CONFIRMED)],
)
def test_the_cost_is_that_of_environments_where_a_row_gets_dearer(
    many: float, wide: float, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "_seconds", lambda p: wide if p.d == 100 else many if p.m_train == 36 else 1.0)
    found = measured.cost_grows_with_environments(NONE)
    assert found.verdict is verdict
    assert f"{many:.1f} times from m = 12 to 36" in found.ours


@pytest.mark.parametrize(("seeds", "verdict"), [(5, Verdict.CONDITIONAL), (3, Verdict.NOT_CONFIRMED)])
def test_the_seeds_behind_p_values_are_those_that_all_tables_admit(seeds: int, verdict: Verdict) -> None:
    others = tuple({3, 4, 5, 6} - {seeds})
    assert measured.seeds_behind_p_values(["Colored MNIST"], seeds, others)(NONE).verdict is verdict
