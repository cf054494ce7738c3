"""Tables say what the scores say: means, spreads, tests, and the distance to the paper."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from eber.evaluation.wording import format_p
from eber.experiments.parametric import EXPERIMENT as PARAMETRIC
from eber.runs import Experiment
from eber.runs.progress import Progress
from eber.runs.results import Estimate, Results, Summary, load_results, summarise
from eber.runs.runner import run
from eber.runs.wording import caption, deviations, seeds_of, verdict
from tests.toy_experiment import TOY

SEEDS = 5


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All methods, both settings."""
    out = tmp_path_factory.mktemp("results")
    run(TOY, out=out, seeds=SEEDS, methods=TOY.all_methods, overrides={"repeats": "4"}, progress=Progress())
    return load_results(TOY, out)


@pytest.fixture(scope="module")
def summary(results: Results) -> Summary:
    """The baseline."""
    return summarise(results)[0]


def scores(results: Results, method: str, metric: str = "nll", setting: str = "baseline") -> np.ndarray:
    cells = results.cells
    chosen = cells[(cells.method == method) & (cells.metric == metric) & (cells.setting == setting)]
    return chosen[chosen.variant == "main"].sort_values("seed").value.to_numpy()


def with_scores(results: Results, experiment: Experiment = TOY, **values: list[float]) -> Summary:
    """A summary of made-up NLLs by method (V_REx for V-REx)."""
    rows = [
        ("toy", "baseline", method.replace("_", "-"), "main", seed, "nll", value)
        for method, seeds in values.items()
        for seed, value in enumerate(seeds)
    ]
    made_up = pd.DataFrame(rows, columns=results.cells.columns)
    (summary,) = summarise(
        dataclasses.replace(results, experiment=experiment, cells=made_up, timings=results.timings.iloc[:0])
    )
    return summary


def test_rows_are_oracles_then_methods_then_variants(summary: Summary) -> None:
    assert [(row.label, row.role) for row in summary.rows] == [
        ("Bayes-x", "oracle"),
        ("EBER", "method"),
        ("ERM", "method"),
        ("V-REx", "method"),
        ("EBER (uniform test weights)", "variant"),
        ("EBER-collapsed", "variant"),
    ]
    assert {row.n_seeds for row in summary.rows} == {SEEDS}


def test_means_and_spreads_are_those_of_the_seeds(results: Results, summary: Summary) -> None:
    for row in summary.rows[:4]:
        values = scores(results, row.label)
        assert row.estimates["nll"].mean == pytest.approx(values.mean())
        assert row.estimates["nll"].sd == pytest.approx(values.std(ddof=1))


def test_only_declared_columns_and_times_are_shown(summary: Summary) -> None:
    assert [column.name for column in summary.columns] == ["nll", "accuracy", "seconds"], "and no chosen_weight"


def test_tests_are_paired_one_sided_and_corrected_over_the_methods(results: Results, summary: Summary) -> None:
    raw = [
        stats.ttest_rel(scores(results, "EBER"), scores(results, other), alternative="less").pvalue
        for other in ("ERM", "V-REx")
    ]
    corrected = stats.false_discovery_control(raw, method="by")
    found = {row.label: row.comparison.p_corrected for row in summary.rows if row.comparison}
    assert found == pytest.approx(dict(zip(["ERM", "V-REx"], corrected, strict=True))), "no oracle, no variant"


def test_deviation_is_in_the_papers_standard_deviations(summary: Summary) -> None:
    eber = next(row for row in summary.rows if row.label == "EBER").estimates["nll"]
    assert eber.deviation == pytest.approx((eber.mean - 0.319) / 0.03)
    assert math.isnan(Estimate(1.0, 0.1).deviation)
    assert Estimate(0.501, 0.0, (0.5, 0.0)).deviation == pytest.approx(2), "a printed 0.000 is at most 0.0005"


def test_a_sentence_for_each_large_difference_and_for_no_other(summary: Summary) -> None:
    large = {
        (row.label, name)
        for row in summary.rows
        for name, estimate in row.estimates.items()
        if name != "seconds" and abs(estimate.deviation) > 2
    }
    sentences = deviations(summary)
    assert len(sentences) == len(large) > 0
    assert ("EBER", "nll") in large
    (sentence,) = (sentence for sentence in sentences if sentence.startswith("EBER: NLL"))
    assert sentence.endswith("below its 0.319 ± 0.030 in Table 1 (better).")
    assert "seconds" not in " ".join(sentences)


def test_a_setting_that_the_paper_has_not_is_compared_with_nothing(results: Results) -> None:
    other = summarise(results)[1]
    assert other.setting == "shift=0.1"
    assert deviations(other) == []
    assert "Paper" not in caption(other)


def test_best_is_by_direction_as_printed_and_among_methods_only(results: Results, summary: Summary) -> None:
    assert summary.best("nll") == {"EBER"}
    assert summary.best("accuracy") == {"EBER"}
    assert summary.best("seconds") == set()
    tied = with_scores(results, EBER=[0.2001, 0.2001], ERM=[0.2002, 0.2002], V_REx=[0.3, 0.3])
    assert tied.best("nll") == {"EBER", "ERM"}


def test_words_are_no_stronger_than_the_tests(results: Results) -> None:
    lucky = [0.20, 0.25, 0.21, 0.24]
    summary = with_scores(results, EBER=lucky, ERM=[0.5, 0.54, 0.52, 0.53], V_REx=[0.24, 0.21, 0.25, 0.20])
    assert verdict(summary) == (
        f"The NLL of EBER is significantly better than that of ERM (p {_p(summary, 'ERM')}), on 4 seeds only. "
        f"No significant advantage in NLL is shown over V-REx (level, p = {_p(summary, 'V-REx')})."
    )


def test_a_reference_that_is_clearly_behind_is_called_worse(results: Results) -> None:
    summary = with_scores(results, EBER=[0.9, 0.91, 0.92], ERM=[0.3, 0.32, 0.31], V_REx=[0.9, 0.8, 1.0])
    assert "The NLL of EBER is worse than that of ERM (advantage −0.6" in verdict(summary)
    assert "No significant advantage in NLL is shown over V-REx" in verdict(summary)


def test_the_caption_says_what_was_changed_and_which_weights_were_chosen(results: Results) -> None:
    rows = [("toy", "baseline", "IRM", "main", seed, "penalty_weight", w) for seed, w in enumerate([10.0, 1.0, 10.0])]
    cells = pd.concat([results.cells, pd.DataFrame(rows, columns=results.cells.columns)], ignore_index=True)
    changed = dataclasses.replace(results, cells=cells, run={**results.run, "overrides": {"n": "5"}})
    text = caption(summarise(changed)[0])
    assert "Changed for this run: n = 5." in text
    assert "Penalty weights chosen on training environments, by seed: IRM 10 (2 of 3), 1 (1 of 3)." in text


def _p(summary: Summary, label: str) -> str:
    comparison = next(row for row in summary.rows if row.label == label).comparison
    assert comparison is not None
    return format_p(comparison.p_corrected)


def test_one_seed_gives_means_but_no_test(results: Results) -> None:
    summary = with_scores(results, EBER=[0.2], ERM=[0.5])
    assert math.isnan(summary.rows[0].estimates["nll"].sd)
    assert verdict(summary) == "Not tested: ERM (one seed cannot show a spread; run at least two)."
    assert seeds_of(summary) == "1 seed"


def test_different_numbers_of_seeds_are_stated_row_by_row(results: Results) -> None:
    summary = with_scores(results, EBER=[0.2, 0.3], ERM=[0.5])
    assert seeds_of(summary) == "seeds, as many as each row has (EBER 2, ERM 1)"


def test_a_seed_without_a_score_is_not_passed_over(results: Results) -> None:
    summary = with_scores(results, EBER=[0.2, 0.3, 0.2], ERM=[0.5, math.nan, 0.6])
    erm = next(row for row in summary.rows if row.label == "ERM")
    assert math.isnan(erm.estimates["nll"].mean)
    assert "not finite for seeds [1]" in verdict(summary)
    assert summary.best("nll") == set()


def test_without_the_reference_method_there_are_means_only(results: Results) -> None:
    summary = with_scores(results, ERM=[0.5, 0.6], V_REx=[0.4, 0.3])
    assert verdict(summary) == ""
    assert summary.best("nll") == {"V-REx"}


def test_arrays_of_a_cell_are_found_under_the_overrides_of_the_run(results: Results) -> None:
    assert results.arrays("EBER", 3)["draws"].shape == (5,)
    assert results.arrays("EBER", 99) == {}
    assert results.seeds("EBER") == list(range(SEEDS))


def test_scores_are_read_back_exactly(results: Results) -> None:
    texts = pd.read_csv(results.folder / "cells.csv", dtype=str)["value"]
    assert [repr(value) for value in results.cells["value"].tolist()] == texts.tolist()


def test_a_folder_without_results_or_of_another_experiment_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no results"):
        load_results(TOY, tmp_path)
    with pytest.raises(ValueError, match="results of 'toy', not of 'other'"):
        load_results(dataclasses.replace(TOY, name="other"), results.folder)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0001, "< 0.001"),
        (0.015, "0.015"),
        (0.0494, "0.049"),
        (0.0497, "0.0497"),
        (0.0503, "0.0503"),
        (0.04998, "0.04998"),
        (0.05, "0.050"),
        (0.0506, "0.051"),
        (1.0, "1.000"),
        (math.nan, "–"),
    ],
)
def test_p_values_have_three_decimals_and_more_where_these_do_not_decide(p: float, text: str) -> None:
    assert format_p(p) == text


def test_a_difference_of_very_many_deviations_is_not_counted(results: Results) -> None:
    """166.8 of a deviation that was printed as 0.001 says nothing about the difference."""
    summary = with_scores(results, EBER=[0.9, 0.91], ERM=[0.1, 0.11])
    (eber,) = (sentence for sentence in deviations(summary) if sentence.startswith("EBER: NLL"))
    assert "is more than 10 of the paper's standard deviations above" in eber


def test_few_seeds_are_said_with_significance(results: Results) -> None:
    few = with_scores(results, EBER=[0.20, 0.21, 0.22], ERM=[0.5, 0.52, 0.51])
    many = with_scores(results, EBER=[0.20, 0.21, 0.22, 0.2, 0.21], ERM=[0.5, 0.52, 0.51, 0.5, 0.53])
    assert "on 3 seeds only" in verdict(few)
    assert "significantly better" in verdict(many)
    assert "seeds only" not in verdict(many)


def test_fits_side_by_side_have_no_time_and_the_caption_says_so(results: Results, summary: Summary) -> None:
    """A share of a joint fit would make penalised methods look faster than ERM."""
    joint = summarise(dataclasses.replace(results, experiment=dataclasses.replace(TOY, seeds_together=5)))[0]
    assert [column.name for column in joint.columns] == ["nll", "accuracy"]
    assert "No times: fits of several seeds" in caption(joint)
    assert "No times" not in caption(summary)


def test_the_caption_says_on_whose_rows_weights_were_chosen(results: Results) -> None:
    rows = [("toy", "baseline", "IRM", "main", 0, "penalty_weight", 10.0)]
    cells = pd.concat([results.cells, pd.DataFrame(rows, columns=results.cells.columns)], ignore_index=True)
    experiment = dataclasses.replace(TOY, weights_chosen_on=PARAMETRIC.weights_chosen_on)
    text = caption(summarise(dataclasses.replace(results, experiment=experiment, cells=cells))[0])
    assert "Penalty weights chosen on 12 validation environments, by seed: IRM 10." in text


def test_no_model_and_tuned_rows_leave_the_tests_of_the_methods_as_they_are(results: Results) -> None:
    """The family of the methods' tests is theirs alone; tuned rows are a family of their own, no model is in none."""
    rng = np.random.default_rng(3)
    eber = rng.normal(0.3, 0.02, 6)
    values = {"EBER": eber, "ERM": eber + rng.normal(0.02, 0.02, 6), "V_REx": eber + rng.normal(0.03, 0.02, 6)}
    further = {"No model": eber + 0.4, "EBER tuned": eber - 0.1, "ERM tuned": eber - 0.1 + rng.normal(0.02, 0.02, 6)}
    more = dataclasses.replace(TOY, floor=("No model",), tuned={"EBER": "EBER tuned", "ERM": "ERM tuned"})
    plain = with_scores(results, TOY, **{name: list(own) for name, own in values.items()})
    full = with_scores(results, more, **{name: list(own) for name, own in (values | further).items()})
    by_label = {row.label: row for row in full.rows}
    for row in plain.rows:
        assert by_label[row.label].comparison == row.comparison
    assert by_label["No model"].comparison is None
    comparison = by_label["ERM tuned"].comparison
    assert comparison is not None
    expected = stats.ttest_rel(further["EBER tuned"], further["ERM tuned"], alternative="less").pvalue
    assert comparison.p_corrected == pytest.approx(expected), "one test needs no correction"
    assert full.best("nll") == plain.best("nll"), "neither competes with the methods"
    assert [row.role for row in full.rows] == ["method"] * 3 + ["floor"] + ["tuned"] * 2
    assert "of EBER against each method and of EBER tuned against each tuned one" in caption(full)
    assert "EBER tuned against" not in caption(plain)
    assert verdict(full).startswith(verdict(plain))
    assert "ERM tuned" in verdict(full).removeprefix(verdict(plain))


@pytest.mark.parametrize(("floor", "said"), [(0.25, True), (0.35, False)])
def test_that_no_model_at_all_is_better_is_said_where_the_verdict_is(
    results: Results, floor: float, said: bool
) -> None:
    experiment = dataclasses.replace(TOY, floor=("No model",))
    scores = {"EBER": [0.3, 0.31, 0.29], "ERM": [0.5, 0.52, 0.51], "No model": [floor] * 3}
    words = verdict(with_scores(results, experiment, **scores))
    assert words.endswith("No model has a better NLL than EBER (0.250).") is said
    assert ("No model" in words) is said
