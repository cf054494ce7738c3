"""The paper's claims, in the order of the paper."""

from __future__ import annotations

from collections.abc import Iterator

from eber.experiments.claims import judges
from eber.experiments.claims.claim import Claim
from eber.experiments.data_paper import COLORED_MNIST, MICROBIOME, QUASAR, SEPSIS
from eber.experiments.parametric_paper import PAPER as PARAMETRIC
from eber.runs.spec import PaperTable

LABELS = {"nll": "NLL", "accuracy": "accuracy", "auroc": "AUROC", "auprc": "AUPRC"}
SUPERLATIVES = {"nll": "lowest", "accuracy": "highest", "auroc": "highest", "auprc": "highest"}
PARAMETRIC_COMMAND = "eber reproduce parametric --seeds 10 --sensitivity --ablation"


def all_claims() -> list[Claim]:
    """Every claim, once."""
    return [*_motivating(), *_parametric(), *_data(), *_p_values()]


def _figure(table: PaperTable, row: str, metric: str) -> str:
    mean, sd = table.rows[row][metric]
    return f"{mean:.3f} ± {sd:.3f}"


def _best(key: str, where: str, table: PaperTable, setting: str, metric: str, experiment: str, command: str) -> Claim:
    """EBER is best of all methods in one metric of one table."""
    return Claim(
        f"{key}-{metric}",
        f"{where}: EBER has the {SUPERLATIVES[metric]} {LABELS[metric]} of all methods.",
        _figure(table, "EBER", metric),
        experiment,
        command,
        judges.best(setting, metric),
    )


def _motivating() -> Iterator[Claim]:
    command = "eber reproduce motivating --seeds 10"
    yield Claim(
        "rate",
        "With conditional environment weights the error falls at the rate m^(-1/2) (Proposition 2, Figure 3).",
        "slope -0.5",
        "motivating",
        command,
        judges.rate_of_conditional_weights,
    )
    yield Claim(
        "biased-limit",
        "With uniform weights the error converges to a biased limit (Proposition 3, Figure 3).",
        "a limit above zero",
        "motivating",
        command,
        judges.biased_limit_of_uniform_weights,
    )


def _parametric() -> Iterator[Claim]:
    for setting, table in PARAMETRIC.items():
        where = "Parametric simulation" + ("" if setting == "baseline" else f", {setting}")
        for metric in ("nll", "accuracy"):
            yield _best(f"parametric-{setting}", where, table, setting, metric, "parametric", PARAMETRIC_COMMAND)
    shown = PARAMETRIC["rho=0.15"]
    yield Claim(
        "uniform-weights",
        "Uniform weights, at test or throughout, bring EBER down to the baselines (variants 2 and 6; rho = 0.15).",
        f"{_figure(shown, 'EBER (2: uniform test weights)', 'nll')}; "
        f"{_figure(shown, 'EBER 6: uniform weights', 'nll')}",
        "parametric",
        PARAMETRIC_COMMAND,
        judges.uniform_weights_destroy_the_gain("rho=0.15"),
    )
    yield Claim(
        "oracle-weights",
        "The gap between EBER and Bayes-x is largely that of the environment weights: oracle weights close it "
        "(variant 4; rho = 0.15).",
        _figure(shown, "EBER 4: oracle weights", "nll"),
        "parametric",
        PARAMETRIC_COMMAND,
        judges.oracle_weights_close_the_gap("rho=0.15"),
    )
    yield Claim(
        "oracle-posteriors",
        "Even true posteriors do not help where weights are uniform, nor with learned ones, so that aggregation is "
        "central (variants 7 and 5; rho = 0.15).",
        f"{_figure(shown, 'EBER 7: uniform weights and oracle posteriors', 'nll')}; "
        f"{_figure(shown, 'EBER 5: oracle posteriors', 'nll')}",
        "parametric",
        PARAMETRIC_COMMAND,
        judges.true_posteriors_do_not_help("rho=0.15"),
    )
    few, many = (PARAMETRIC[setting].rows["EBER"]["seconds"][0] for setting in ("m=12", "m=36"))
    yield Claim(
        "cost",
        "The running time grows most with the number of training environments.",
        f"{few:.0f} s at m = 12, {many:.0f} s at m = 36: {many / few:.1f} times",
        "parametric",
        PARAMETRIC_COMMAND,
        judges.cost_grows_with_environments,
    )


def _data() -> Iterator[Claim]:
    tables = (
        ("colored-mnist", "Colored MNIST", COLORED_MNIST, "baseline", ("nll", "accuracy")),
        ("quasar", "Quasars", QUASAR, "latitude", ("nll", "accuracy")),
        ("microbiome", "Microbiome", MICROBIOME, "paper split", ("nll", "accuracy")),
        ("sepsis", "Sepsis", SEPSIS, "hold out A_unknown", ("auroc", "auprc")),
    )
    for experiment, where, table, setting, metrics in tables:
        command = f"eber reproduce {experiment} --seeds 10 --ablation --data DIR"
        for metric in metrics:
            yield _best(experiment, where, table, setting, metric, experiment, command)
        yield Claim(
            f"{experiment}-environment-loss",
            f"{where}: no environment loss is needed (lambda_env = 0 makes no meaningful difference).",
            "no meaningful difference",
            experiment,
            command,
            judges.no_environment_loss_needed(setting, metrics[0]),
        )
    for metric in ("nll", "accuracy"):
        yield _best(
            "microbiome-no-leak",
            "Microbiome without zackular, whose subjects are also in the held-out cohort",
            MICROBIOME,
            "without zackular",
            metric,
            "microbiome",
            "eber reproduce microbiome --seeds 10 --ablation --data DIR",
        )
    yield _best(
        "sepsis-longer-stays",
        "Sepsis, stays beyond 24 hours",
        SEPSIS,
        "stays beyond 24 hours",
        "auroc",
        "sepsis",
        'eber reproduce sepsis --seeds 10 --settings "hold out A_unknown,stays beyond 24 hours" --ablation --data DIR',
    )
    yield Claim(
        "quasar-assignment",
        "Quasars: all test points are assigned to one training environment, the most similar one.",
        "all of them",
        "quasar",
        "eber reproduce quasar --seeds 10 --ablation --data DIR",
        judges.all_rows_to_one_environment("latitude"),
    )
    for experiment, where, setting in (
        ("quasar", "Quasars", "latitude"),
        ("microbiome", "Microbiome", "paper split"),
    ):
        yield Claim(
            f"{experiment}-agreement",
            f"{where}: where methods differ and EBER is right, no other method is right consistently.",
            "no method (figure)",
            experiment,
            f"eber reproduce {experiment} --seeds 10 --ablation --data DIR",
            judges.no_method_is_right_consistently(setting),
        )


def _p_values() -> Iterator[Claim]:
    yield Claim(
        "p-values-simulation",
        "The p-values of the nine parametric tables are those of a one-sided paired t-test with Benjamini-Yekutieli "
        "correction.",
        "0.015 at the baseline",
        "",
        "python -m eber.experiments.paper_p_values",
        judges.seeds_behind_p_values(
            [f"parametric, {setting}" for setting, table in PARAMETRIC.items() if table.p_values], 3, (2, 4, 5, 10)
        ),
    )
    yield Claim(
        "p-values-data",
        "So are those of the four data tables.",
        "0.004 on Colored MNIST",
        "",
        "python -m eber.experiments.paper_p_values",
        judges.seeds_behind_p_values(["Colored MNIST", "quasars", "microbiome", "sepsis"], 5, (3, 4, 6, 10)),
    )
