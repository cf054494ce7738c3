"""The paper's claims about Colored MNIST and its three real data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eber.experiments.claims import agreement_judges, environment_judges, judges
from eber.experiments.claims.claim import Claim
from eber.experiments.claims.judges import EBER
from eber.experiments.claims.table_claims import OTHERS, best, best_calibrated, best_in_plain_form, printed
from eber.experiments.data_paper import COLORED_MNIST, MICROBIOME, QUASAR, SEPSIS
from eber.experiments.parametric import PLAIN_DECOMPOSED
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
    details : str
        The appendix that says so.
    except_for : tuple of str
        Methods that it is not said to be significantly better than.
    elsewhere : mapping
        Settings that settle otherwise what the paper's split or text leaves open, to what claims about them are called.
    substantial : bool
        Whether the improvement is called that.
    agreement : str
        The figure of the agreement analysis; empty where there is none.
    """

    experiment: str
    where: str
    place: str
    table: PaperTable
    setting: str
    metrics: tuple[str, str]
    level: str
    weights: str
    details: str
    except_for: tuple[str, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    substantial: bool = True
    agreement: str = ""

    @property
    def command(self) -> str:
        """What to type for its results."""
        settings = f' --settings "{",".join((self.setting, *self.elsewhere))}"' if self.elsewhere else ""
        return f"eber reproduce {self.experiment} --seeds 10{settings} --ablation --data DIR"

    def run(self, place: str) -> tuple[str, str, str, str, str, str]:
        """What a claim about its main table is made of: key, name, place, experiment, setting and command."""
        return self.experiment, self.where, place, self.experiment, self.setting, self.command


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
        "Appendix D.3",
        ("IRM", "V-REx"),
        substantial=False,
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
        "Appendix D.4",
        elsewhere={"longitude": "environments by longitude as in its figures"},
        agreement="Figure 5",
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
        "Appendix D.5",
        ("V-REx",),
        {
            "without zackular": "without zackular, whose subjects are held out too",
            "without small adenomas": "without the small adenomas among the controls",
        },
        agreement="Figure 6",
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
        "Appendix D.6",
        ("IRM",),
        {"stays beyond 24 hours": "stays beyond 24 hours"},
    ),
)


def data_claims() -> Iterator[Claim]:
    """Every claim about a data experiment, one experiment after the other."""
    for data in TABLES:
        yield from _of_table(data)
        if data.experiment == "quasar":
            yield from _assignment(data)
        if data.agreement:
            yield from _agreement(data)
        for setting, words in data.elsewhere.items():
            yield from _elsewhere(data, setting, words)


def _of_table(data: DataTable) -> Iterator[Claim]:
    for metric in data.metrics:
        yield best(data.table, metric, *data.run(data.place))
    yield from best_calibrated(data.table, *data.run(f"Appendix C.2, {data.table.source}"))
    yield best_in_plain_form(data.table, data.metrics[0], *data.run(data.place), PLAIN_DECOMPOSED)
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
    if data.substantial:
        yield Claim(
            f"{data.experiment}-substantial",
            f"{data.where}: the improvement is substantial over all methods{exception}.",
            "Section 5",
            "; ".join(f"{row} {printed(data.table, row, data.metrics[0])}" for row in ("EBER", *over)),
            data.experiment,
            data.command,
            judges.substantial(data.table, data.setting, data.metrics[0], over),
        )
    yield Claim(
        f"{data.experiment}-environment-loss",
        f"{data.where}: no environment loss is needed; lambda_env = 0 makes no meaningful difference.",
        "Section 2",
        "no meaningful difference",
        data.experiment,
        data.command,
        environment_judges.no_environment_loss_needed(data.setting, data.metrics[0]),
    )
    yield Claim(
        f"{data.experiment}-weights",
        f"{data.where}: cross-validation over {{0.01, 0.1, 1, 10, 100}} chooses these penalty weights.",
        data.details,
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


def _assignment(data: DataTable) -> Iterator[Claim]:
    for setting, words in ((data.setting, ""), *((name, f", {name}") for name in data.elsewhere)):
        for row, form in ((EBER, ""), (PLAIN_DECOMPOSED, ", plain form")):
            yield Claim(
                f"{data.experiment}-assignment{(words + form).replace(', ', '-').replace(' ', '-')}",
                f"{data.where}{words}{form}: all test points are assigned to one training environment, the most "
                "similar one.",
                "Section 5.3, Figures 4 and 7",
                "all of them",
                data.experiment,
                data.command,
                environment_judges.all_rows_to_one_environment(setting, row),
            )


def _agreement(data: DataTable) -> Iterator[Claim]:
    yield Claim(
        f"{data.experiment}-errors",
        f"{data.where}: where EBER is wrong, no other method performs consistently well.",
        f"{data.place.split(',')[0]}, {data.agreement}",
        "no method",
        data.experiment,
        data.command,
        agreement_judges.errors_are_not_easy_for_others(data.setting),
    )
    yield Claim(
        f"{data.experiment}-successes",
        f"{data.where}: where methods differ and EBER is right, no other method succeeds consistently.",
        f"Appendix C.3, {data.agreement}",
        "no method",
        data.experiment,
        data.command,
        agreement_judges.successes_are_not_easy_for_others(data.setting),
    )
