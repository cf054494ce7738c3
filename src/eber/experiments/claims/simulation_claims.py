"""The paper's claims about the parametric simulation: its main table, the sensitivity settings and the variants."""

from __future__ import annotations

from collections.abc import Iterator

from eber.experiments.claims import environment_judges, judges, measured, simulation_judges, variant_judges
from eber.experiments.claims.claim import Claim
from eber.experiments.claims.table_claims import OTHERS, best, best_calibrated, best_in_plain_form, printed
from eber.experiments.parametric import PLAIN_DECOMPOSED
from eber.experiments.parametric_paper import PAPER

COMMAND = "eber reproduce parametric --seeds 10 --sensitivity --ablation"
SHOWN = "rho=0.15"
"""The setting whose variants are held against the paper: it prints none for the baseline."""
SENSITIVITY = tuple(setting for setting in PAPER if setting != "baseline")
TEXT = "Appendix C.1"


def simulation_claims() -> Iterator[Claim]:
    """Every one of them, in the order of the paper."""
    yield from _main()
    yield from _sensitivity()
    yield from _sentences()
    yield from _variants()


def _main() -> Iterator[Claim]:
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
    yield best_in_plain_form(table, "nll", *where, PLAIN_DECOMPOSED)
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
        "Sections 2 and 5.1, Tables 7 to 15",
        "; ".join(f"{setting} {table.rows['EBER']['nll'][0]:.3f}" for setting, table in PAPER.items()),
        simulation_judges.figures_are_those_of_algorithm_1,
    )
    yield _claim(
        "parametric-environment-loss",
        "In low-signal settings such as this simulation an environment loss gives better estimates.",
        "Section 2",
        "no figure",
        environment_judges.environment_loss_helps("baseline", "nll"),
    )
    few, many = (PAPER[setting].rows["EBER"]["seconds"][0] for setting in ("m=12", "m=36"))
    yield Claim(
        "cost",
        "The running time is affected most by the number of training environments.",
        f"{TEXT}, Tables 9 and 10",
        f"{few:.3f} s at m = 12, {many:.3f} s at m = 36",
        "",
        "",
        measured.cost_grows_with_environments,
    )
    eber, erm = (table.rows[row]["seconds"][0] for row in ("EBER", "ERM"))
    yield Claim(
        "cost-of-aggregates",
        "Computing the aggregate distributions increases the cost over that of other methods.",
        "Section 6, Table 15",
        f"EBER {eber:.3f} s, ERM {erm:.3f} s",
        "",
        "",
        measured.eber_costs_more,
    )


def _sensitivity() -> Iterator[Claim]:
    for setting in SENSITIVITY:
        table = PAPER[setting]
        place = f"{TEXT}, {table.source}"
        where = (f"parametric-{setting}", f"Parametric simulation, {setting}", place, "parametric", setting)
        yield best(table, "nll", *where, COMMAND)
        if table.rows["EBER"]["accuracy"][0] > max(table.rows[row]["accuracy"][0] for row in OTHERS):
            yield best(table, "accuracy", *where, COMMAND)
        yield from best_calibrated(table, *where, COMMAND)


def _sentences() -> Iterator[Claim]:
    """What the text says of the sensitivity settings."""
    yield _claim(
        "cue-strength",
        "A stronger branch cue improves all methods.",
        f"{TEXT}, Table 8",
        "; ".join(f"{setting} {_nll(setting, 'EBER')}" for setting in ("baseline", "rho=0.2")),
        simulation_judges.cue_helps("baseline", "rho=0.2"),
    )
    yield _claim(
        "cue-strength-v-rex",
        "It improves V-REx especially.",
        f"{TEXT}, Table 8",
        "; ".join(f"{setting} {_nll(setting, 'V-REx')}" for setting in ("baseline", "rho=0.2")),
        simulation_judges.cue_helps_most("baseline", "rho=0.2", "V-REx"),
    )
    yield _claim(
        "cue-strength-accuracy",
        "With it EBER's accuracy reaches that of the optimal Bayes rule.",
        f"{TEXT}, Table 8",
        "; ".join(f"{row} {printed(PAPER['rho=0.2'], row, 'accuracy')}" for row in ("EBER", "Bayes-x")),
        simulation_judges.nearly_bayes("rho=0.2", "accuracy"),
    )
    yield _claim(
        "nearest-to-bayes",
        "More training environments (m = 12 and 36) bring EBER closest to the optimal Bayes rule.",
        f"{TEXT}, Tables 9 and 10",
        "; ".join(f"{setting} {_nll(setting, 'EBER')}" for setting in ("m=12", "m=36")),
        simulation_judges.closest_to_bayes(("m=12", "m=36")),
    )
    yield _claim(
        "many-environments",
        "At m = 36 the baselines improve so much that the advantage of EBER becomes much smaller.",
        f"{TEXT}, Table 10",
        f"EBER {_nll('m=36', 'EBER')}; ERM {_nll('m=36', 'ERM')}",
        simulation_judges.advantage_shrinks("m=36"),
    )
    yield _claim(
        "many-rows",
        "At n = 1000 EBER nearly matches the optimal Bayes rule in accuracy and NLL.",
        f"{TEXT}, Table 11",
        f"{_nll('n=1000', 'EBER')}; Bayes-x {_nll('n=1000', 'Bayes-x')}",
        simulation_judges.nearly_bayes("n=1000", "accuracy", "nll"),
    )
    yield _claim(
        "more-rows",
        "More rows per environment (n = 1000) help EBER, which keeps a large gap over the competing methods.",
        f"{TEXT}, Table 11",
        "; ".join(f"{row} {_nll('n=1000', row)}" for row in ("EBER", "V-REx")),
        simulation_judges.more_rows_help("n=1000"),
    )
    yield _claim(
        "dimension",
        "At d = 50 and d = 100 EBER is still clearly best, but the gap to the optimal Bayes rule widens.",
        f"{TEXT}, Tables 12 and 13",
        "; ".join(f"{setting} {_nll(setting, 'EBER')}" for setting in ("d=50", "d=100")),
        simulation_judges.gap_to_bayes_widens("d=50", "d=100"),
    )
    yield _claim(
        "collapse",
        "At d = 1000 the accuracy of all methods collapses.",
        f"{TEXT}, Table 14",
        "; ".join(f"{row} {PAPER['d=1000'].rows[row]['accuracy'][0]:.3f}" for row in ("EBER", "ERM", "Fishr")),
        simulation_judges.accuracy_collapses("d=1000"),
    )


def _variants() -> Iterator[Claim]:
    def figures(*rows: str) -> str:
        return "; ".join(_nll(SHOWN, row) for row in rows)

    yield _claim(
        "uniform-weights",
        f"Uniform weights, at test or throughout, bring EBER down to the baselines (variants 2 and 6; {SHOWN}).",
        f"{TEXT}, Table 7",
        figures("EBER (2: uniform test weights)", "EBER 6: uniform weights"),
        variant_judges.uniform_weights_destroy_the_gain(SHOWN),
    )
    yield _claim(
        "uniform-test-weights",
        "Uniform weights at test do so consistently (variant 2; all sensitivity settings).",
        f"{TEXT}, Tables 7 to 14",
        "consistently inferior",
        variant_judges.uniform_test_weights_are_inferior(SENSITIVITY),
    )
    yield _claim(
        "oracle-test-weights",
        "Oracle weights at test give the accuracy of the optimal Bayes rule, and often a slightly better NLL than "
        "EBER's (variant 3; all sensitivity settings).",
        f"{TEXT}, Tables 7 to 14",
        f"{figures('EBER (3: oracle test weights)')} at {SHOWN}",
        variant_judges.oracle_test_weights_match_bayes(SENSITIVITY),
    )
    yield _claim(
        "oracle-weights",
        "The gap between EBER and Bayes-x is largely that of the environment weights: oracle weights close it "
        f"(variant 4; {SHOWN}).",
        f"{TEXT}, Table 7",
        f"from {figures('EBER')} to {figures('EBER 4: oracle weights')}; Bayes-x {figures('Bayes-x')}",
        variant_judges.oracle_weights_close_the_gap(SHOWN),
    )
    yield _claim(
        "oracle-posteriors",
        "Even true posteriors do not help where weights are uniform, nor with learned ones, so that aggregation is "
        f"central (variants 7 and 5; {SHOWN}).",
        f"{TEXT}, Table 7",
        figures("EBER 7: uniform weights and oracle posteriors", "EBER 5: oracle posteriors"),
        variant_judges.true_posteriors_do_not_help(SHOWN),
    )
    yield _claim(
        "collapsed",
        "An objective that collapses to the observed environments' own is incompatible with prediction in new ones.",
        "Section 4",
        "no figure",
        variant_judges.collapsed_objective_is_no_use("baseline"),
    )


def _nll(setting: str, row: str) -> str:
    return printed(PAPER[setting], row, "nll")


def _claim(key: str, text: str, place: str, paper: str, judge: judges.Judge) -> Claim:
    """One that runs of the parametric simulation are about."""
    return Claim(key, text, place, paper, "parametric", COMMAND, judge)
