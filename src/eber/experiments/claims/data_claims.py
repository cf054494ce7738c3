"""The paper's claims about Colored MNIST and its three real data sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eber.experiments.claims import judges
from eber.experiments.claims.claim import Claim
from eber.experiments.claims.table_claims import OTHERS, best, best_calibrated
from eber.experiments.data_paper import COLORED_MNIST, MICROBIOME, QUASAR, SEPSIS
from eber.runs.spec import PaperTable


@dataclass(frozen=True)
class DataTable:
    """A table of a data experiment, and what the text says of it.

    Parameters
    ----------
    experiment, where, place : str
        Its name on the command line and in sentences, and the paper's section and table.
    table : PaperTable
    setting : str
    metrics : tuple of str
        Those in which EBER is said to be best; the first is the one that is tested.
    level : str
        What the text says of the tests.
    weights : str
        The penalty weights that it says were chosen.
    except_for : tuple of str
        Methods that it is not said to be significantly better than.
    """

    experiment: str
    where: str
    place: str
    table: PaperTable
    setting: str
    metrics: tuple[str, str]
    level: str
    weights: str
    except_for: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What to type for its results."""
        settings = f' --settings "{self.setting},stays beyond 24 hours"' if self.experiment == "sepsis" else ""
        return f"eber reproduce {self.experiment} --seeds 10{settings} --ablation --data DIR"


NLL_AND_ACCURACY = ("nll", "accuracy")
TABLES = (
    DataTable(
        "colored-mnist",
        "Colored MNIST",
        "Section 5.2, Table 2",
        COLORED_MNIST,
        "baseline",
        NLL_AND_ACCURACY,
        "p = 0.004 against ERM and Fishr",
        "IRM 10, V-REx 10, Fishr 0.01",
        ("IRM", "V-REx"),
    ),
    DataTable(
        "quasar",
        "Quasars",
        "Section 5.3, Table 3",
        QUASAR,
        "latitude",
        NLL_AND_ACCURACY,
        "p < 0.001",
        "IRM 0.01, V-REx 0.01, Fishr 0.01",
    ),
    DataTable(
        "microbiome",
        "Microbiome",
        "Section 5.4, Table 4",
        MICROBIOME,
        "paper split",
        NLL_AND_ACCURACY,
        "p < 0.01 except against V-REx",
        "IRM 10, V-REx 100, Fishr 100",
        ("V-REx",),
    ),
    DataTable(
        "sepsis",
        "Sepsis",
        "Section 5.5, Table 5",
        SEPSIS,
        "hold out A_unknown",
        ("auroc", "auprc"),
        "p < 0.004 except against IRM",
        "IRM 10, V-REx 10, Fishr 0.1",
        ("IRM",),
    ),
)


def data_claims() -> Iterator[Claim]:
    """Every claim about a data experiment, one experiment after the other."""
    for data in TABLES:
        yield from _of_table(data)
        if data.experiment == "quasar":
            yield _assignment(data)
        if data.experiment in ("quasar", "microbiome"):
            yield from _agreement(data)
        if data.experiment == "microbiome":
            yield from _elsewhere(data, "without zackular", "without zackular, whose subjects are held out too")
            yield from _elsewhere(data, "without small adenomas", "without the small adenomas among the controls")
        if data.experiment == "sepsis":
            yield from _elsewhere(data, "stays beyond 24 hours", "stays beyond 24 hours")


def _of_table(data: DataTable) -> Iterator[Claim]:
    for metric in data.metrics:
        yield best(
            data.table, metric, data.experiment, data.where, data.place, data.experiment, data.setting, data.command
        )
    yield from best_calibrated(
        data.table, data.experiment, data.where, "Appendix C.2", data.experiment, data.setting, data.command
    )
    over = tuple(method for method in OTHERS if method not in data.except_for)
    exception = f" except {' and '.join(data.except_for)}" if data.except_for else ""
    yield Claim(
        f"{data.experiment}-significance",
        f"{data.where}: the improvement is significant relative to all methods{exception}.",
        data.place,
        data.level,
        data.experiment,
        data.command,
        judges.significant(data.setting, data.metrics[0], over, data.except_for),
    )
    yield Claim(
        f"{data.experiment}-environment-loss",
        f"{data.where}: no environment loss is needed; lambda_env = 0 makes no meaningful difference.",
        "Section 2",
        "no meaningful difference",
        data.experiment,
        data.command,
        judges.no_environment_loss_needed(data.setting, data.metrics[0]),
    )
    yield Claim(
        f"{data.experiment}-weights",
        f"{data.where}: cross-validation over {{0.01, 0.1, 1, 10, 100}} chooses these penalty weights.",
        "Appendix D",
        data.weights,
        data.experiment,
        data.command,
        judges.weights_are_those_of_validation(data.setting),
    )


def _elsewhere(data: DataTable, setting: str, words: str) -> Iterator[Claim]:
    """The same claim where what the paper's split or text leaves open is settled otherwise."""
    for metric in data.metrics:
        yield best(
            data.table,
            metric,
            f"{data.experiment}-{setting.replace(' ', '-')}",
            f"{data.where}, {words}",
            data.place,
            data.experiment,
            setting,
            data.command,
        )


def _assignment(data: DataTable) -> Claim:
    return Claim(
        "quasar-assignment",
        "Quasars: all test points are assigned to one training environment, the most similar one.",
        "Section 5.3, Figure 4",
        "all of them",
        "quasar",
        data.command,
        judges.all_rows_to_one_environment(data.setting),
    )


def _agreement(data: DataTable) -> Iterator[Claim]:
    yield Claim(
        f"{data.experiment}-errors",
        f"{data.where}: where EBER is wrong, no other method is right consistently.",
        data.place.split(",")[0],
        "no method",
        data.experiment,
        data.command,
        judges.no_method_is_right_consistently(data.setting, "wrong"),
    )
    yield Claim(
        f"{data.experiment}-successes",
        f"{data.where}: where methods differ and EBER is right, no other method is right consistently.",
        "Appendix C.3",
        "no method",
        data.experiment,
        data.command,
        judges.no_method_is_right_consistently(data.setting, "right"),
    )
