"""The paper's claims, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator

from eber.experiments.claims import judges, measured, simulation_judges
from eber.experiments.claims.claim import Claim
from eber.experiments.claims.data_claims import data_claims
from eber.experiments.claims.table_claims import OTHERS, best, best_calibrated, printed
from eber.experiments.parametric_paper import PAPER

MOTIVATING_COMMAND = "eber reproduce motivating --seeds 10"
COMMAND = "eber reproduce parametric --seeds 10 --sensitivity --ablation"
SHOWN = "rho=0.15"
"""The setting whose variants are held against the paper: it prints none for the baseline."""


def all_claims() -> list[Claim]:
    """Every claim, once."""
    return [*_theory(), *_motivating(), *_parametric(), *_sensitivity(), *_variants(), *data_claims(), *_p_values()]


def _theory() -> Iterator[Claim]:
    yield Claim(
        "theorem-1",
        "The bound is the mean of the environments' own bounds plus a balancing term: L = E[L_e] + R(q).",
        "Theorem 1",
        "an identity",
        "",
        "",
        measured.theorem_is_an_identity,
    )
    yield Claim(
        "algorithm-1",
        "Algorithm 1 maximises an estimate of the lower bound of log p(y|x).",
        "Section 2, Algorithm 1",
        "a lower bound",
        "",
        "",
        measured.algorithm_1_maximises_a_lower_bound,
    )


def _motivating() -> Iterator[Claim]:
    yield Claim(
        "rate",
        "With conditional environment weights the error falls at the rate m^(-1/2).",
        "Proposition 2, Figure 3",
        "slope -1/2",
        "motivating",
        MOTIVATING_COMMAND,
        simulation_judges.rate_of_conditional_weights,
    )
    yield Claim(
        "biased-limit",
        "With uniform weights the error converges to a biased limit.",
        "Proposition 3, Figure 3",
        "a limit above zero",
        "motivating",
        MOTIVATING_COMMAND,
        simulation_judges.biased_limit_of_uniform_weights,
    )


def _parametric() -> Iterator[Claim]:
    table = PAPER["baseline"]
    where = ("parametric", "Parametric simulation", "Section 5.1, Table 1", "parametric", "baseline", COMMAND)
    yield best(table, "nll", *where)
    yield best(table, "accuracy", *where)
    yield _claim(
        "parametric-significance",
        "Parametric simulation: the improvement is significant relative to all methods.",
        "Section 5.1",
        "p = 0.015",
        judges.significant("baseline", "nll", OTHERS),
    )
    yield _claim(
        "parametric-bayes-accuracy",
        "EBER nearly matches the accuracy of the optimal Bayes rule.",
        "Section 5, Table 1",
        f"{printed(table, 'EBER', 'accuracy')}; Bayes-x {printed(table, 'Bayes-x', 'accuracy')}",
        simulation_judges.nearly_bayes("baseline", "accuracy"),
    )
    yield _claim(
        "parametric-readings",
        "The printed figures of EBER are those of the algorithm that is described.",
        "Sections 2 and 5.1",
        "; ".join(f"{setting} {table.rows['EBER']['nll'][0]:.3f}" for setting, table in PAPER.items()),
        simulation_judges.figures_are_those_of_algorithm_1,
    )
    few, many = (PAPER[setting].rows["EBER"]["seconds"][0] for setting in ("m=12", "m=36"))
    yield Claim(
        "cost",
        "The running time is affected most by the number of training environments.",
        "Appendix C.1",
        f"{few:.3f} s at m = 12, {many:.3f} s at m = 36",
        "",
        "",
        measured.cost_grows_with_environments,
    )


def _sensitivity() -> Iterator[Claim]:
    for setting, table in PAPER.items():
        if setting == "baseline":
            continue
        where = (f"parametric-{setting}", f"Parametric simulation, {setting}", "Appendix C.1", "parametric", setting)
        yield best(table, "nll", *where, COMMAND)
        if table.rows["EBER"]["accuracy"][0] > max(table.rows[row]["accuracy"][0] for row in OTHERS):
            yield best(table, "accuracy", *where, COMMAND)
        yield from best_calibrated(table, *where, COMMAND)
    yield _claim(
        "cue-strength",
        "A stronger branch cue improves all methods.",
        "Appendix C.1",
        "; ".join(f"{setting} {printed(PAPER[setting], 'EBER', 'nll')}" for setting in ("baseline", "rho=0.2")),
        simulation_judges.cue_helps("baseline", "rho=0.2"),
    )
    yield _claim(
        "many-environments",
        "At m = 36 the baselines improve so much that the advantage of EBER becomes much smaller.",
        "Appendix C.1",
        f"EBER {printed(PAPER['m=36'], 'EBER', 'nll')}; ERM {printed(PAPER['m=36'], 'ERM', 'nll')}",
        simulation_judges.advantage_shrinks("m=36"),
    )
    yield _claim(
        "many-rows",
        "At n = 1000 EBER nearly matches the optimal Bayes rule in accuracy and NLL.",
        "Appendix C.1",
        f"{printed(PAPER['n=1000'], 'EBER', 'nll')}; Bayes-x {printed(PAPER['n=1000'], 'Bayes-x', 'nll')}",
        simulation_judges.nearly_bayes("n=1000", "accuracy", "nll"),
    )
    yield _claim(
        "dimension",
        "At d = 50 and d = 100 EBER is still clearly best, but the gap to the optimal Bayes rule widens.",
        "Appendix C.1",
        "; ".join(f"{setting} {printed(PAPER[setting], 'EBER', 'nll')}" for setting in ("d=50", "d=100")),
        simulation_judges.gap_to_bayes_widens("d=50", "d=100"),
    )
    yield _claim(
        "collapse",
        "At d = 1000 the accuracy of all methods collapses.",
        "Appendix C.1",
        "; ".join(f"{row} {PAPER['d=1000'].rows[row]['accuracy'][0]:.3f}" for row in ("EBER", "ERM", "Fishr")),
        simulation_judges.accuracy_collapses("d=1000"),
    )


def _variants() -> Iterator[Claim]:
    table = PAPER[SHOWN]

    def figures(*rows: str) -> str:
        return "; ".join(printed(table, row, "nll") for row in rows)

    yield _claim(
        "uniform-weights",
        f"Uniform weights, at test or throughout, bring EBER down to the baselines (variants 2 and 6; {SHOWN}).",
        "Appendix C.1",
        figures("EBER (2: uniform test weights)", "EBER 6: uniform weights"),
        simulation_judges.uniform_weights_destroy_the_gain(SHOWN),
    )
    yield _claim(
        "oracle-test-weights",
        "Oracle weights at test give the accuracy of the optimal Bayes rule and a slightly better NLL "
        f"(variant 3; {SHOWN}).",
        "Appendix C.1",
        figures("EBER (3: oracle test weights)"),
        simulation_judges.oracle_test_weights_match_bayes(SHOWN),
    )
    yield _claim(
        "oracle-weights",
        "The gap between EBER and Bayes-x is largely that of the environment weights: oracle weights close it "
        f"(variant 4; {SHOWN}).",
        "Appendix C.1",
        figures("EBER 4: oracle weights"),
        simulation_judges.oracle_weights_close_the_gap(SHOWN),
    )
    yield _claim(
        "oracle-posteriors",
        "Even true posteriors do not help where weights are uniform, nor with learned ones, so that aggregation is "
        f"central (variants 7 and 5; {SHOWN}).",
        "Appendix C.1",
        figures("EBER 7: uniform weights and oracle posteriors", "EBER 5: oracle posteriors"),
        simulation_judges.true_posteriors_do_not_help(SHOWN),
    )


def _claim(key: str, text: str, place: str, paper: str, judge: judges.Judge) -> Claim:
    """One that the parametric simulation is about."""
    return Claim(key, text, place, paper, "parametric", COMMAND, judge)


def _p_values() -> Iterator[Claim]:
    yield Claim(
        "p-values-simulation",
        "The p-values of the nine parametric tables are those of a one-sided t-test with Benjamini-Yekutieli "
        "correction.",
        "Section 5",
        "0.015 at the baseline",
        "",
        "",
        measured.seeds_behind_p_values(
            [f"parametric, {setting}" for setting, table in PAPER.items() if table.p_values], 3, (2, 4, 5, 10)
        ),
    )
    yield Claim(
        "p-values-data",
        "So are those of the four data tables.",
        "Section 5",
        "0.004 on Colored MNIST",
        "",
        "",
        measured.seeds_behind_p_values(["Colored MNIST", "quasars", "microbiome", "sepsis"], 5, (3, 4, 6, 10)),
    )
