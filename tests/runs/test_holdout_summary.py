"""Environments held out in turn are summed up with environments, not seeds, as the units."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from eber.leaks.findings import ADVICE
from eber.runs import Experiment
from eber.runs.collect import CELLS_COLUMNS, FINDINGS_COLUMNS, TIMINGS_COLUMNS, WARNINGS_COLUMNS
from eber.runs.holdout_summary import HoldoutRow, HoldoutSummary, summarise_holdouts
from eber.runs.holdout_wording import caution, holdout_caption, holdout_remarks
from eber.runs.results import NO_LEAK, Results, summarise
from eber.runs.wording import verdict
from tests.toy_experiment import TOY_HOLDOUTS

Scores = dict[str, dict[str, list[float]]]

# Environment to row to its scores, seed by seed.
SCORES: Scores = {
    "a": {"EBER": [0.2, 0.3, 0.4], "ERM": [0.5], "V-REx": [0.30004, 0.30004], "EBER/adapted": [0.1]},
    "b": {"EBER": [0.5], "ERM": [0.9, 1.1], "V-REx": [0.6], "EBER/adapted": [0.6]},
    "c": {"EBER": [0.9], "ERM": [1.3], "V-REx": [0.4], "EBER/adapted": [0.8]},
}


def results(
    scores: Scores, experiment: Experiment = TOY_HOLDOUTS, metric: str = "nll", leaks: dict[str, str] | None = None
) -> Results:
    """What a run would have left with these scores."""
    rows = []
    for environment, methods in scores.items():
        for row, values in methods.items():
            method, _, variant = row.partition("/")
            names = ("toy-holdouts", f"hold out {environment}", method, variant or "main")
            rows += [(*names, seed, metric, value) for seed, value in enumerate(values)]
        rows.append(("toy-holdouts", f"hold out {environment}", "EBER", "main", 0, "leaked_rows", 0.0))
    findings = [
        ("toy-holdouts", f"hold out {environment}", "EBER", 0, kind, 5, 9, f"5 of 9 held-out rows: {kind}.")
        for environment, kind in (leaks or {}).items()
    ]
    return Results(
        experiment,
        Path(),
        pd.DataFrame(rows, columns=list(CELLS_COLUMNS)),
        pd.DataFrame(columns=list(TIMINGS_COLUMNS)),
        pd.DataFrame(columns=list(WARNINGS_COLUMNS)),
        pd.DataFrame(findings, columns=list(FINDINGS_COLUMNS)),
        {"overrides": {}},
    )


def summary_of(found: Results) -> HoldoutSummary:
    """The one family that was run."""
    (summary,) = summarise_holdouts(found.experiment, summarise(found))
    return summary


def row(summary: HoldoutSummary, label: str) -> HoldoutRow:
    return next(row for row in summary.rows if row.label == label)


@pytest.fixture(scope="module")
def summary() -> HoldoutSummary:
    """Three wards."""
    return summary_of(results(SCORES))


def test_an_environment_counts_once_however_many_seeds_it_has(summary: HoldoutSummary) -> None:
    eber, erm = row(summary, "EBER"), row(summary, "ERM")
    assert eber.by_environment == pytest.approx({"a": 0.3, "b": 0.5, "c": 0.9})
    assert (eber.mean, erm.mean) == pytest.approx((17 / 30, 28 / 30)), "pooled over seeds it would be 0.46 and 0.95"
    assert (eber.sd, erm.sd) == pytest.approx((math.sqrt(14 / 150), math.sqrt(49 / 300)))
    assert summary.n_seeds == (1, 3)


def test_rows_say_where_a_method_is_best_and_where_it_is_worst(summary: HoldoutSummary) -> None:
    assert [(row.label, row.role) for row in summary.rows] == [
        ("EBER", "method"),
        ("ERM", "method"),
        ("V-REx", "method"),
        ("EBER (adapted)", "variant"),
    ]
    # In a, EBER and V-REx are printed alike; the adapted variant, better still in a, does not compete.
    assert [row.n_best for row in summary.rows] == [2, 0, 2, None]
    assert [row.worst for row in summary.rows] == ["c", "c", "b", "c"]
    assert summary.best == {"V-REx"}


def test_tests_are_paired_by_environment_one_sided_and_corrected_over_the_methods(summary: HoldoutSummary) -> None:
    eber = [0.3, 0.5, 0.9]
    others = {"ERM": [0.5, 1.0, 1.3], "V-REx": [0.30004, 0.6, 0.4]}
    raw = [stats.ttest_rel(eber, other, alternative="less").pvalue for other in others.values()]
    expected = dict(zip(others, stats.false_discovery_control(raw, method="by"), strict=True))
    found = {row.label: row.comparison for row in summary.rows if row.comparison}
    assert {label: comparison.p_corrected for label, comparison in found.items()} == pytest.approx(expected)
    assert {comparison.n_units for comparison in found.values()} == {3}
    for label, other in others.items():
        advantages = list(row(summary, label).advantages.values())
        assert advantages == pytest.approx(np.subtract(other, eber)), "lower NLL is better"
        assert row(summary, label).mean_advantage == pytest.approx(found[label].advantage)


def test_a_variant_is_shown_with_its_differences_but_not_tested(summary: HoldoutSummary) -> None:
    adapted = row(summary, "EBER (adapted)")
    assert adapted.advantages == pytest.approx({"a": -0.2, "b": 0.1, "c": -0.1})
    assert adapted.comparison is None
    assert row(summary, "EBER").advantages == {}


def test_higher_scores_are_better_where_the_metric_says_so() -> None:
    summary = summary_of(results(SCORES, replace(TOY_HOLDOUTS, primary_metric="accuracy"), metric="accuracy"))
    assert [row.n_best for row in summary.rows] == [0, 3, 0, None]
    assert [row.worst for row in summary.rows] == ["a", "a", "a", "a"]
    assert row(summary, "ERM").advantages["b"] == pytest.approx(-0.5)


def test_families_are_never_mixed_and_one_environment_is_no_family() -> None:
    one_region = {**SCORES, "north": SCORES["a"]}
    assert [summary.family for summary in _all(one_region)] == ["wards"]
    wards, regions = _all({**one_region, "south": SCORES["b"]})
    assert (wards.environments, regions.environments) == (("a", "b", "c"), ("north", "south"))
    assert row(regions, "EBER").mean == pytest.approx(0.4)
    assert _all({"a": SCORES["a"], "north": SCORES["b"]}) == []


def _all(scores: Scores) -> list[HoldoutSummary]:
    return summarise_holdouts(TOY_HOLDOUTS, summarise(results(scores)))


def test_settings_that_hold_out_nothing_in_turn_are_not_counted() -> None:
    found = results(SCORES)
    baseline = found.cells[found.cells["setting"] == "hold out c"].assign(setting="baseline")
    summary = summary_of(replace(found, cells=pd.concat([found.cells, baseline], ignore_index=True)))
    assert summary == summary_of(results(SCORES))


def test_an_environment_in_which_a_method_has_not_finished_counts_for_nobody() -> None:
    """Means over different environments could not be compared."""
    without = {**SCORES, "c": {label: values for label, values in SCORES["c"].items() if label != "ERM"}}
    summary = summary_of(results(without))
    assert (summary.environments, summary.missing) == (("a", "b"), ("c",))
    assert row(summary, "EBER").mean == pytest.approx(0.4)
    assert "Not counted, since not every method has finished there: c." in holdout_caption(summary)


def test_a_score_that_is_missing_is_not_passed_over() -> None:
    summary = summary_of(results({**SCORES, "b": {**SCORES["b"], "ERM": [1.0, math.nan]}}))
    erm = row(summary, "ERM")
    assert math.isnan(erm.mean)
    assert math.isnan(erm.sd)
    assert math.isnan(erm.mean_advantage)
    assert erm.worst == ""
    assert "ERM (scores are not finite for environments ['b'])" in verdict(summary)


def test_a_variant_that_lacks_an_environment_has_no_mean_but_leaves_the_others_theirs() -> None:
    without = {**SCORES, "c": {label: values for label, values in SCORES["c"].items() if label != "EBER/adapted"}}
    summary = summary_of(results(without))
    assert summary.environments == ("a", "b", "c")
    assert math.isnan(row(summary, "EBER (adapted)").mean)


def test_without_the_reference_method_there_are_means_only() -> None:
    without = {e: {label: rows[label] for label in ("ERM", "V-REx")} for e, rows in SCORES.items()}
    summary = summary_of(results(without))
    assert (verdict(summary), caution(summary)) == ("", "")
    assert all(row.advantages == {} and row.comparison is None for row in summary.rows)
    assert "p:" not in holdout_caption(summary)


def test_the_reference_alone_is_compared_with_its_variant() -> None:
    alone = {e: {label: rows[label] for label in ("EBER", "EBER/adapted")} for e, rows in SCORES.items()}
    summary = summary_of(results(alone))
    assert row(summary, "EBER (adapted)").advantages == pytest.approx({"a": -0.2, "b": 0.1, "c": -0.1})
    assert row(summary, "EBER").n_best == 0, "there is nobody to be better than"
    assert verdict(summary) == ""


def test_an_infinite_score_has_no_spread() -> None:
    summary = summary_of(results({**SCORES, "b": {**SCORES["b"], "ERM": [math.inf]}}))
    assert row(summary, "ERM").mean == math.inf
    assert math.isnan(row(summary, "ERM").sd)
    assert "ERM (scores are not finite for environments ['b'])" in verdict(summary)


def test_words_say_that_few_environments_show_little(summary: HoldoutSummary) -> None:
    assert verdict(summary).startswith("No significant advantage in NLL is shown over ERM (ahead, p = ")
    assert "V-REx (behind, p = 1.000)" in verdict(summary)
    assert "The units of these tests are the 3 environments, not seeds." in caution(summary)
    assert "there may still be one" in caution(summary)
    assert "paired by environment" in holdout_caption(summary)
    assert "of means over 1 to 3 seeds" in holdout_caption(summary)


def test_what_the_leak_audit_found_stands_with_the_environments_it_was_found_in(summary: HoldoutSummary) -> None:
    assert holdout_remarks(summary) == [f"a, b and c held out: {NO_LEAK}", "Ward c is <small>."]
    leaking = summary_of(results(SCORES, leaks={"b": "near_rows", "c": "usual_copies"}))
    assert holdout_remarks(leaking) == [
        f"a and c held out: {NO_LEAK}",
        f"b held out: Leak: 5 of 9 held-out rows: near_rows. {ADVICE}",
        "Ward c is <small>.",
    ], "copies that are usual in these data are no leak"
