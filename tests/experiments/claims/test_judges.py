"""Each rule reaches each of its verdicts, on results made up for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from eber.experiments.claims import (
    agreement_judges,
    environment_judges,
    judges,
    simulation_judges,
    variant_judges,
)
from eber.experiments.claims.claim import Verdict
from eber.experiments.claims.evidence import Evidence, MissingEvidence
from eber.experiments.claims.measuring import measure
from eber.experiments.data_paper import QUASAR
from eber.experiments.motivating import CONDITIONAL, LIMIT, NUMBERS, UNIFORM, column
from eber.experiments.parametric import LONG, PLAIN_DECOMPOSED
from eber.experiments.parametric_paper import PAPER
from eber.methods import paper_methods
from eber.runs.results import Results
from tests.experiments.claims.made_up import around, evidence, keep_arrays, results, rights, table

C, W, N = Verdict.CONFIRMED, Verdict.CONDITIONAL, Verdict.NOT_CONFIRMED
OTHERS = {"ERM": 0.5, "IRM": 0.52, "V_REx": 0.51, "Fishr": 0.53}


@pytest.mark.parametrize(
    ("metric", "eber", "verdict"), [("nll", 0.3, C), ("nll", 0.4995, W), ("nll", 0.505, N), ("accuracy", 0.9, C)]
)
def test_best_needs_every_test_and_behind_one_is_not_confirmed(metric: str, eber: float, verdict: Verdict) -> None:
    found = judges.best("baseline", metric)(evidence("parametric", table("baseline", metric, EBER=eber, **OTHERS)))
    assert found.verdict is verdict
    assert f"{eber:.3f}" in found.ours
    if verdict is N:
        assert "behind ERM" in found.evidence


@pytest.mark.parametrize(("eber", "level"), [(0.5005, True), (0.6, False)])
def test_who_is_ahead_by_chance_alone_is_told_from_who_is_ahead(eber: float, level: bool) -> None:
    """The interval that is shown is that of the method whose figure is: the best of the others."""
    scores = {("baseline", "EBER", "nll"): around(eber, spread=0.01)}
    scores |= {("baseline", method, "nll"): around(mean) for method, mean in (("ERM", 0.55), ("IRM", 0.499))}
    scores |= {("baseline", method, "nll"): around(0.7) for method in ("V-REx", "Fishr")}
    found = judges.best("baseline", "nll")(evidence("parametric", scores))
    assert (found.verdict, found.level) == (N, level)
    assert ("behind IRM, by no more than chance may make (adv" in found.evidence) is level
    assert "advantage over IRM" in found.evidence


@pytest.mark.parametrize(("floor", "said"), [(0.2, "NLL 0.200 against 0.300"), (0.35, "")])
def test_that_no_model_at_all_is_better_is_said(floor: float, said: str) -> None:
    scores = table("latitude", "nll", EBER=0.3, **OTHERS)
    without = judges.best("latitude", "nll")(evidence("quasar", scores))
    found = judges.best("latitude", "nll")(evidence("quasar", {**scores, ("latitude", "No model", "nll"): [floor] * 5}))
    assert (found.verdict, found.no_model) == (without.verdict, said)
    assert found.evidence == without.evidence + (f"; no model at all is better ({said})" if said else "")


@pytest.mark.parametrize(("eber", "verdict"), [(0.3, C), (0.5095, W), (0.6, N)])
def test_significance_is_asked_for_the_methods_that_the_paper_names(eber: float, verdict: Verdict) -> None:
    made_up = evidence("parametric", table("baseline", "nll", EBER=eber, **{**OTHERS, "IRM": 0.1}))
    found = judges.significant("baseline", "nll", ("ERM", "V-REx", "Fishr"), ("IRM",))(made_up)
    assert found.verdict is verdict, "whatever comes of IRM"
    assert "IRM 1.000" in found.ours


@pytest.mark.parametrize(("difference", "spread", "verdict"), [(0.0, 0.001, C), (0.0, 0.01, W), (0.1, 0.01, N)])
def test_the_environment_loss_is_not_needed_where_the_interval_is_narrow_and_holds_zero(
    difference: float, spread: float, verdict: Verdict
) -> None:
    """An interval that is wide because seeds are few holds zero easily, and confirms nothing."""
    own = np.array([0.30, 0.31, 0.29, 0.30])
    scores = {
        ("latitude", "EBER", "nll"): own.tolist(),
        ("latitude", "EBER lambda_env=0", "nll"): (own + difference + spread * np.array([1, -1, 0, 0.5])).tolist(),
    }
    assert (
        environment_judges.no_environment_loss_needed("latitude", "nll")(evidence("quasar", scores)).verdict is verdict
    )


def test_methods_that_a_run_added_have_no_part_in_a_claim() -> None:
    """Neither is EBER behind for their sake, nor do its tests pay for theirs."""
    scores = {("latitude", method, "nll"): around(0.4) for method in ("ERM", "IRM", "V-REx", "Fishr")}
    scores |= {("latitude", "EBER", "nll"): around(0.3)}
    made_up = results("quasar", scores)
    more, _ = made_up.experiment.with_methods(["Random forest"])
    forest = made_up.cells[made_up.cells["method"] == "EBER"].assign(method="Random forest", value=0.1)
    with_more = replace(made_up, experiment=more, cells=pd.concat([made_up.cells, forest]))
    assert measure(with_more, "") == measure(made_up, "")


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [([0] * 200, [0] * 200, C), ([0] * 200, [1] * 200, W), ([0] * 150 + [1] * 50, [0] * 200, N)],
)
@pytest.mark.parametrize("row", ["EBER", PLAIN_DECOMPOSED])
def test_all_rows_to_one_environment(
    row: str, first: list[int], second: list[int], verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the form that is asked about, whatever other forms take rows for."""
    names, several = np.array(["b_q2", "b_q3"]), np.array([0, 1] * 100)

    def arrays(self: Results, method: str, seed: int, setting: str | None = None) -> dict[str, NDArray[Any]]:
        assigned = several if method != row else np.array((first, second)[seed])
        return {"assigned": assigned, "environments": names}

    monkeypatch.setattr(Results, "arrays", arrays)
    made_up = evidence("quasar", {("latitude", name, "nll"): [0.3, 0.31] for name in ("EBER", PLAIN_DECOMPOSED)})
    found = environment_judges.all_rows_to_one_environment("latitude", row)(made_up)
    assert found.verdict is verdict
    assert "it is b_q2 (" in found.evidence


@pytest.mark.parametrize(("without", "verdict"), [(0.4, C), (0.302, W), (0.2, N)])
def test_an_environment_loss_helps_where_the_score_is_worse_without(without: float, verdict: Verdict) -> None:
    scores = {("baseline", "EBER", "nll"): around(0.3, spread=0.01)}
    scores |= {("baseline", "EBER lambda_env=0", "nll"): around(without, spread=0.02)}
    assert (
        environment_judges.environment_loss_helps("baseline", "nll")(evidence("parametric", scores)).verdict is verdict
    )


AGREEMENT = {
    # EBER is wrong on six rows of ten. Where ERM is not, it alone is right; nobody is right on the other wrong rows.
    C: {"EBER": "1111000000", "ERM": "1111000001", "IRM": "1111000001"},
    W: {"EBER": "1111000000", "ERM": "1111001111", "IRM": "1111000001"},
    N: {"EBER": "1111000000", "ERM": "1111111111", "IRM": "1111000001"},
}


@pytest.mark.parametrize("verdict", [C, W, N])
def test_errors_are_all_that_eber_is_wrong_on(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where methods differ ERM is always right in EBER's place; of all that EBER is wrong on it may be right on few."""
    found = agreement_judges.errors_are_not_easy_for_others("latitude")(agreeing(AGREEMENT[verdict], monkeypatch))
    assert found.verdict is verdict
    share = {C: 1, W: 4, N: 6}[verdict] / 6
    assert f"ERM {share:.2f}" in found.ours
    assert "where methods differ: ERM 1.00" in found.evidence


@pytest.mark.parametrize(("erm", "verdict"), [("1000000000", C), ("1111110000", W), ("1111111110", N)])
def test_successes_are_looked_at_where_methods_differ(
    erm: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct = {"EBER": "1111111111", "ERM": erm, "IRM": "0000000000"}
    judge = agreement_judges.successes_are_not_easy_for_others("latitude")
    assert judge(agreeing(correct, monkeypatch)).verdict is verdict


def agreeing(correct: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Evidence:
    """Two seeds of methods that are right where it says; those that are not named are never right."""
    rows = dict.fromkeys(paper_methods(), "0" * 10)
    rows |= {method: correct.get(method, correct["IRM"]) for method in rows}
    keep_arrays(monkeypatch, {method: {"correct": rights(row)} for method, row in rows.items()})
    scores = {("latitude", method, "accuracy"): [row.count("1") / 10] * 2 for method, row in rows.items()}
    return evidence("quasar", scores)


def test_weights_without_known_validation_rows_cannot_be_tested() -> None:
    scores = {("latitude", method, "penalty_weight"): [1.0, 1.0, 10.0] for method in ("IRM", "V-REx", "Fishr")}
    found = judges.weights_are_those_of_validation("latitude")(evidence("quasar", scores))
    assert found.verdict is Verdict.UNTESTABLE
    assert "IRM 1 (2 seeds), 10 (1 seed)" in found.ours


@pytest.mark.parametrize(("rate", "verdict"), [(-0.5, C), (-0.3, N)])
def test_the_rate_is_the_slope_of_the_errors(rate: float, verdict: Verdict) -> None:
    scores = {("baseline", CONDITIONAL, column(m)): [0.2 * m**rate] * 2 for m in NUMBERS}
    found = simulation_judges.rate_of_conditional_weights(evidence("motivating", scores))
    assert found.verdict is verdict
    assert f"slope {rate:.3f}" in found.ours


@pytest.mark.parametrize(("error", "verdict"), [(0.12, C), (0.2, N)])
def test_the_limit_of_uniform_weights_must_be_reached(error: float, verdict: Verdict) -> None:
    last = column(NUMBERS[-1])
    scores = {("baseline", row, last): [v] * 2 for row, v in ((UNIFORM, error), (LIMIT, 0.12), (CONDITIONAL, 0.003))}
    assert simulation_judges.biased_limit_of_uniform_weights(evidence("motivating", scores)).verdict is verdict


BASELINE = table("baseline", "nll", EBER=0.25, **{"Bayes-x": 0.23}, **OTHERS)
BASELINE |= table(LONG, "nll", EBER=0.24)
BASELINE |= table("baseline", "accuracy", EBER=0.93, **{"Bayes-x": 0.934}, **OTHERS)


@pytest.mark.parametrize(
    ("judge", "changes", "verdict"),
    [
        (simulation_judges.nearly_bayes("baseline", "accuracy"), {}, C),
        (simulation_judges.nearly_bayes("baseline", "accuracy", "nll"), {}, W),
        (simulation_judges.nearly_bayes("baseline", "nll"), {}, N),
        (simulation_judges.advantage_shrinks("m=36"), table("m=36", "nll", EBER=0.25, **dict.fromkeys(OTHERS, 0.3)), C),
        (simulation_judges.advantage_shrinks("m=36"), table("m=36", "nll", EBER=0.25, **OTHERS), N),
        (simulation_judges.cue_helps("baseline", "rho=0.2"), table("rho=0.2", "nll", EBER=0.2, **OTHERS), W),
        (
            simulation_judges.cue_helps("baseline", "rho=0.2"),
            table("rho=0.2", "nll", EBER=0.2, **dict.fromkeys(OTHERS, 0.4)),
            C,
        ),
        (simulation_judges.cue_helps("baseline", "rho=0.2"), table("rho=0.2", "nll", EBER=0.3, **OTHERS), N),
        (simulation_judges.more_rows_help("n=1000"), table("n=1000", "nll", EBER=0.24, **OTHERS), C),
        (simulation_judges.more_rows_help("n=1000"), table("n=1000", "nll", EBER=0.24, **{**OTHERS, "IRM": 0.3}), W),
        (simulation_judges.more_rows_help("n=1000"), table("n=1000", "nll", EBER=0.26, **OTHERS), N),
        (
            simulation_judges.accuracy_collapses("d=1000"),
            table("d=1000", "accuracy", EBER=0.53, **{"Bayes-x": 0.934}, **OTHERS),
            C,
        ),
        (
            simulation_judges.accuracy_collapses("d=1000"),
            table("d=1000", "accuracy", EBER=0.7, **{"Bayes-x": 0.934}, **OTHERS),
            N,
        ),
        (
            simulation_judges.gap_to_bayes_widens("d=50"),
            table("d=50", "nll", EBER=0.3, **{"Bayes-x": 0.23}, **OTHERS),
            C,
        ),
        (
            simulation_judges.gap_to_bayes_widens("d=50"),
            table("d=50", "nll", EBER=0.6, **{"Bayes-x": 0.23}, **OTHERS),
            W,
        ),
        (
            simulation_judges.gap_to_bayes_widens("d=50"),
            table("d=50", "nll", EBER=0.24, **{"Bayes-x": 0.23}, **OTHERS),
            N,
        ),
    ],
)
def test_sentences_about_sensitivity(
    judge: judges.Judge, changes: dict[tuple[str, str, str], list[float]], verdict: Verdict
) -> None:
    assert judge(evidence("parametric", {**BASELINE, **changes})).verdict is verdict


def variants(**means: float) -> dict[tuple[str, str, str], list[float]]:
    names = {
        "uniform_test": "EBER|2: uniform test weights",
        "oracle_test": "EBER|3: oracle test weights",
        "oracle": "EBER 4: oracle weights",
        "plain": "EBER in the paper's plain form",
        "plain_oracle": "EBER in the paper's plain form with oracle weights",
        "collapsed": "EBER collapsed",
        "collapsed_alone": "EBER collapsed lambda_env=0",
        "posteriors": "EBER 5: oracle posteriors",
        "uniform": "EBER 6: uniform weights",
        "uniform_posteriors": "EBER 7: uniform weights and oracle posteriors",
        "flexible": "EBER 5 with a flexible decoder",
        "uniform_flexible": "EBER 7 with a flexible decoder",
    }
    return {(setting, names[key], "nll"): around(mean) for setting in ("baseline", LONG) for key, mean in means.items()}


@pytest.mark.parametrize(
    ("judge", "rows", "verdict"),
    [
        (variant_judges.uniform_weights_destroy_the_gain, variants(uniform_test=0.6, uniform=0.55), C),
        (variant_judges.uniform_weights_destroy_the_gain, variants(uniform_test=0.6, uniform=0.3), N),
        (variant_judges.oracle_weights_close_the_gap, variants(plain=0.35, plain_oracle=0.24, oracle=0.249), C),
        (variant_judges.oracle_weights_close_the_gap, variants(plain=0.35, plain_oracle=0.34, oracle=0.235), N),
        (variant_judges.collapsed_objective_is_no_use, variants(collapsed_alone=0.26, collapsed=0.26), N),
        (variant_judges.collapsed_objective_is_no_use, variants(collapsed_alone=0.6, collapsed=0.26), W),
        (variant_judges.collapsed_objective_is_no_use, variants(collapsed_alone=0.6, collapsed=0.4), C),
        (
            variant_judges.true_posteriors_do_not_help,
            variants(posteriors=0.7, uniform_posteriors=0.7, flexible=0.7, uniform_flexible=0.7),
            C,
        ),
        (
            variant_judges.true_posteriors_do_not_help,
            variants(posteriors=0.7, uniform_posteriors=0.7, flexible=0.3, uniform_flexible=0.7),
            W,
        ),
        (
            variant_judges.true_posteriors_do_not_help,
            variants(posteriors=0.3, uniform_posteriors=0.7, flexible=0.3, uniform_flexible=0.7),
            N,
        ),
    ],
)
def test_variants(judge: judges.Judge, rows: dict[tuple[str, str, str], list[float]], verdict: Verdict) -> None:
    assert judge("baseline")(evidence("parametric", {**BASELINE, **rows})).verdict is verdict  # type: ignore[arg-type,operator]


def two_settings(variant: str, **means: tuple[float, float]) -> dict[tuple[str, str, str], list[float]]:
    """The baseline's scores in two sensitivity settings, and those of a variant of EBER in each."""
    scores: dict[tuple[str, str, str], list[float]] = {}
    for j, setting in enumerate(("rho=0.15", "rho=0.2")):
        scores |= {(setting, row, metric): values for (where, row, metric), values in BASELINE.items() if where != LONG}
        scores |= {(setting, f"EBER|{variant}", metric): around(pair[j]) for metric, pair in means.items()}
    return scores


@pytest.mark.parametrize(
    ("nll", "accuracy", "verdict"),
    [((0.24, 0.24), (0.934, 0.934), C), ((0.26, 0.26), (0.934, 0.934), W), ((0.24, 0.24), (0.8, 0.8), N)],
)
def test_oracle_weights_at_test(nll: tuple[float, float], accuracy: tuple[float, float], verdict: Verdict) -> None:
    made_up = two_settings("3: oracle test weights", nll=nll, accuracy=accuracy)
    judge = variant_judges.oracle_test_weights_match_bayes(("rho=0.15", "rho=0.2"))
    assert judge(evidence("parametric", made_up)).verdict is verdict


@pytest.mark.parametrize(("nll", "verdict"), [((0.6, 0.6), C), ((0.3, 0.3), N)])
def test_uniform_weights_at_test_are_looked_at_in_every_setting(nll: tuple[float, float], verdict: Verdict) -> None:
    made_up = two_settings("2: uniform test weights", nll=nll)
    found = variant_judges.uniform_test_weights_are_inferior(("rho=0.15", "rho=0.2"))(evidence("parametric", made_up))
    assert found.verdict is verdict
    assert found.evidence == "in the paper's own tables in 2"


@pytest.mark.parametrize(("method", "verdict"), [("IRM", C), ("V-REx", N)])
def test_the_method_that_a_cue_helps_most(method: str, verdict: Verdict) -> None:
    scores = {**BASELINE, **table("rho=0.2", "nll", EBER=0.25, **{**OTHERS, "IRM": 0.3})}
    found = simulation_judges.cue_helps_most("baseline", "rho=0.2", method)(evidence("parametric", scores))
    assert found.verdict is verdict
    assert "in the paper's own tables IRM, by 0.103" in found.evidence


@pytest.mark.parametrize(("nearest", "verdict"), [(("m=12", "m=36"), C), (("m=36", "n=1000"), W), (("d=50",), N)])
def test_the_settings_that_are_nearest_to_bayes(nearest: tuple[str, ...], verdict: Verdict) -> None:
    scores: dict[tuple[str, str, str], list[float]] = {}
    for setting in PAPER:
        distance = 0.01 * (1 + nearest.index(setting)) if setting in nearest else 0.1
        scores |= table(setting, "nll", EBER=0.23 + distance, **{"Bayes-x": 0.23})
    assert simulation_judges.closest_to_bayes(("m=12", "m=36"))(evidence("parametric", scores)).verdict is verdict


@pytest.mark.parametrize(("eber", "verdict"), [(0.4, C), (0.48, W), (0.495, N), (0.6, N)])
def test_an_improvement_is_substantial_where_it_is_half_of_the_papers(eber: float, verdict: Verdict) -> None:
    """The paper's lead on quasars is 0.161; one that is significant may still be no improvement to speak of."""
    made_up = evidence("quasar", table("latitude", "nll", EBER=eber, **OTHERS))
    found = judges.substantial(QUASAR, "latitude", "nll", ("ERM", "IRM", "V-REx", "Fishr"))(made_up)
    assert found.verdict is verdict
    assert found.ours == f"{0.5 - eber:.3f} over ERM; the paper's 0.161 over V-REx"


def test_the_plain_form_is_judged_in_the_place_of_eber() -> None:
    """Its scores and its tests, whatever those of the recipe are."""
    scores = table("baseline", "nll", EBER=0.2, **{PLAIN_DECOMPOSED: 0.505}, **OTHERS)
    assert judges.best("baseline", "nll")(evidence("parametric", scores)).verdict is C
    assert judges.best("baseline", "nll", PLAIN_DECOMPOSED)(evidence("parametric", scores)).verdict is N


@pytest.mark.parametrize(
    ("close", "verdict"),
    [
        ("plain, Algorithm 1", C),
        ("plain, decomposed", W),
        ("plain with a ReLU more, Algorithm 1", W),
        ("plain with a ReLU more, stratified", W),
        ("this library's recipe", N),
    ],
)
def test_the_reading_whose_figures_the_paper_has_is_named(close: str, verdict: Verdict) -> None:
    scores = {}
    for setting, printed in PAPER.items():
        for name, row in simulation_judges.READINGS.items():
            mean, sd = printed.rows["EBER"]["nll"]
            scores[setting, row, "nll"] = around(mean if name == close else mean + 5 * sd)
    found = simulation_judges.figures_are_those_of_algorithm_1(evidence("parametric", scores))
    assert found.verdict is verdict
    assert f"{close} in 9 of 9 settings" in found.ours
    if verdict is not N:
        assert f"d=1000 {close.removeprefix('plain').lstrip(', ')}" in found.evidence


def test_a_missing_row_is_missing_evidence_that_names_it() -> None:
    with pytest.raises(MissingEvidence, match=r"ERM in the setting 'baseline' has 0 seeds; 2 are needed"):
        judges.best("baseline", "nll")(evidence("parametric", table("baseline", "nll", EBER=0.3)))
    assert paper_methods()[:2] == ("EBER", "ERM")
