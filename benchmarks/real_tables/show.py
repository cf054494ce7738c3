"""The tables of docs/real-tables.md, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.real_tables.fits import METHODS
from benchmarks.real_tables.labels import label_lines, labels_by_row
from benchmarks.real_tables.package_tables import PACKAGE_DEVELOPMENT, PACKAGE_TABLES
from benchmarks.real_tables.rules import DEFAULT_WIDTH, EQUAL_POOL, POOL_WITH_ERM, POOL_WITHOUT_NETWORK, SHOWN, scores
from benchmarks.real_tables.tables import CONFIRMATION, DEVELOPMENT, load, prepared, variant_holdouts
from benchmarks.real_tables.variants import BOOSTED_MIXTURE, VARIANTS, environments_recognised
from eber.evaluation.metrics import METRICS
from eber.methods import NO_MODEL, POOL

ROWS = (NO_MODEL, *METHODS, POOL)
BOOSTING = "Gradient boosting"
GROUPS = {
    "Development": DEVELOPMENT,
    "Confirmation": CONFIRMATION,
    "Packages'": tuple(PACKAGE_TABLES),
}
MOST_COLUMNS = 8
"""Tables beyond which they stand below each other."""
OTHER_POOLS = (EQUAL_POOL, POOL_WITHOUT_NETWORK, POOL_WITH_ERM)


def show(folder: Path, data_dir: Path, names: list[str]) -> None:
    """Print all of them."""
    everything = scores(folder, data_dir, names)
    _show_boosting(_where_there_are(everything, (BOOSTING, BOOSTED_MIXTURE)))
    lines = _where_there_are(everything, METHODS)
    if not len(lines):
        return
    for title, group in GROUPS.items():
        own = lines[lines["table"].isin(group)]
        if len(own):
            print(f"\n### {title} tables")
            for metric in SHOWN:
                print(f"\n{METRICS[metric].label}\n\n{_by_table(own, metric, (*ROWS, *OTHER_POOLS))}")
            print(f"\nNLL in each held-out environment\n\n{_by_holdout(own, ROWS)}")
            print(f"\nEBER against\n\n{_against(own, 'EBER', [row for row in ROWS if row != 'EBER'])}")
            print(f"\nPool against\n\n{_against(own, POOL, [*(row for row in ROWS if row != POOL), *OTHER_POOLS])}")
    print(f"\n### What environments buy\n\n{_recognised(lines, data_dir)}")
    own = _where_there_are(lines, tuple(VARIANTS))
    if not len(own):
        return
    base = DEFAULT_WIDTH["EBER"]
    others = [DEFAULT_WIDTH["ERM"], *VARIANTS, BOOSTING, BOOSTED_MIXTURE]
    print(f"\nNLL\n\n{_by_table(own, 'nll', [base, *others])}")
    inner = own.assign(nll=own["left_out_nll"])
    print(f"\nNLL in left-out training environments\n\n{_by_table(inner, 'nll', [base, *others])}")
    print(f"\n{base} against\n\n{_against(own, base, others)}")


def show_labels(folder: Path, data_dir: Path, names: list[str]) -> None:
    """Print what labels change, on all of the tables and on those that nothing was chosen on."""
    lines = label_lines(folder, data_dir, names)
    others = lines[~lines["table"].isin([*DEVELOPMENT, *PACKAGE_DEVELOPMENT])]
    for title, own in (("All tables", lines), ("Without development tables", others)):
        if len(own):
            print(f"\n### {title}\n\n{_markdown(labels_by_row(own))}")


def _where_there_are(lines: pd.DataFrame, rows: Sequence[str]) -> pd.DataFrame:
    """The lines of held-out environments for which all of these rows were fitted."""
    return lines.groupby(["table", "held_out"]).filter(lambda own: set(rows) <= set(own["row"]))


def _show_boosting(lines: pd.DataFrame) -> None:
    """Boosting and EBER's marginal rule on boosted components, wherever both were fitted."""
    if not len(lines):
        return
    rows = (BOOSTING, BOOSTED_MIXTURE)
    print(f"\n### Boosted components\n\nNLL\n\n{_by_table(lines, 'nll', rows)}")
    inner = lines.assign(nll=lines["left_out_nll"])
    print(f"\nNLL in left-out training environments\n\n{_by_table(inner, 'nll', rows)}")
    print(f"\n{BOOSTED_MIXTURE} against\n\n{_against(lines, BOOSTED_MIXTURE, [BOOSTING])}")


def _by_table(lines: pd.DataFrame, metric: str, rows: Sequence[str]) -> str:
    """Means over held-out environments by table, and their mean; the best of a column in bold."""
    means = lines.groupby(["row", "table"], sort=False)[metric].mean().unstack()
    means = means.loc[[row for row in rows if row in means.index]]
    means["mean"] = means.mean(axis=1)
    quantity = METRICS[metric]
    cells = {
        column: [
            f"**{quantity.format(value)}**" if row in quantity.best(dict(values)) else quantity.format(value)
            for row, value in values.items()
        ]
        for column, values in means.items()
    }
    shown = pd.DataFrame(cells, index=means.index)
    return _markdown(shown if len(shown.columns) <= MOST_COLUMNS else shown.T)


def _by_holdout(lines: pd.DataFrame, rows: Sequence[str]) -> str:
    values = lines.pivot_table(index=["table", "held_out", "rows"], columns="row", values="nll", sort=False)
    values = values[[row for row in rows if row in values]]
    names = [f"{table}: {held_out} ({rows})" for table, held_out, rows in values.index]
    return _markdown(values.set_axis(names).map(METRICS["nll"].format))


def _against(lines: pd.DataFrame, row: str, others: Sequence[str]) -> str:
    """NLL of a row minus that of others: by table with a sign test and a 95 % interval, and by held-out environment."""
    values = lines.pivot_table(index=["table", "held_out"], columns="row", values="nll", sort=False)
    found = {}
    for other in others:
        if row not in values or other not in values:
            continue
        difference = (values[row] - values[other]).dropna()
        by_table = difference.groupby("table").mean()
        n, better = len(by_table), int((by_table < 0).sum())
        half = stats.t.ppf(0.975, n - 1) * by_table.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        found[other] = {
            "mean difference": f"{by_table.mean():+.3f}",
            "95 % interval over tables": f"{by_table.mean() - half:+.3f} to {by_table.mean() + half:+.3f}",
            "better in tables": f"{better} of {n}",
            "sign test": f"{stats.binomtest(better, n).pvalue:.2f}",
            "better in environments": f"{int((difference < 0).sum())} of {len(difference)}",
            "worst table": f"{by_table.max():+.3f} ({by_table.idxmax()})",
        }
    return _markdown(pd.DataFrame(found).T)


def _recognised(lines: pd.DataFrame, data_dir: Path) -> str:
    """How well x tells environments apart, beside what EBER gains on ERM."""
    values = lines.pivot_table(index="table", columns="row", values="nll", sort=False)
    found = {}
    for name in values.index:
        table = load(name, data_dir)
        X, _, held = prepared(table, variant_holdouts(name, table)[0])
        accuracy, chance = environments_recognised(X, table.environments[~held])
        found[name] = {
            "environment told by x": accuracy,
            "by chance": chance,
            "share of what chance leaves": (accuracy - chance) / (1 - chance),
            "EBER - ERM": values.loc[name, "EBER"] - values.loc[name, "ERM"],
        }
    result = pd.DataFrame(found).T
    rank = stats.spearmanr(result["share of what chance leaves"], result["EBER - ERM"]).statistic
    shown = _markdown(result.map(lambda value: f"{value:.3f}"))
    return f"{shown}\n\nRank correlation of the last two columns over tables: {rank:+.2f}"


def _markdown(frame: pd.DataFrame) -> str:
    head = ["", *map(str, frame.columns)]
    lines = [[str(index), *map(str, row)] for index, row in zip(frame.index, frame.to_numpy(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
