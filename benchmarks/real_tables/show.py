"""The tables of docs/real-tables.md, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.real_tables.fits import METHODS
from benchmarks.real_tables.rules import EQUAL_POOL, POOL_WITH_ERM, POOL_WITHOUT_NETWORK, SHOWN, scores
from benchmarks.real_tables.tables import CONFIRMATION, DEVELOPMENT, load, prepared, variant_holdouts
from benchmarks.real_tables.variants import BOOSTED_MIXTURE, VARIANTS, environments_recognised
from eber.evaluation.metrics import METRICS
from eber.methods import NO_MODEL, POOL

ROWS = (NO_MODEL, *METHODS, POOL)
OTHER_POOLS = (EQUAL_POOL, POOL_WITHOUT_NETWORK, POOL_WITH_ERM)


def show(folder: Path, data_dir: Path, names: list[str]) -> None:
    """Print all of them."""
    lines = scores(folder, data_dir, names)
    for title, group in (("Development", DEVELOPMENT), ("Confirmation", CONFIRMATION)):
        own = lines[lines["table"].isin(group)]
        if len(own):
            print(f"\n### {title} tables")
            for metric in SHOWN:
                print(f"\n{METRICS[metric].label}\n\n{_by_table(own, metric, (*ROWS, *OTHER_POOLS))}")
            print(f"\nNLL in each held-out environment\n\n{_by_holdout(own, ROWS)}")
            print(f"\nEBER against\n\n{_against(own, 'EBER', [row for row in ROWS if row != 'EBER'])}")
            print(f"\nPool against\n\n{_against(own, POOL, [*(row for row in ROWS if row != POOL), *OTHER_POOLS])}")
    variants = [*VARIANTS, BOOSTED_MIXTURE]
    both = lines[lines["row"] == BOOSTED_MIXTURE].set_index(["table", "held_out"]).index
    own = lines[lines.set_index(["table", "held_out"]).index.isin(both)]
    if len(own):
        print("\n### What environments buy")
        print(f"\n{_by_table(own, 'nll', ['EBER', 'ERM', *variants])}")
        for title, group in (("development", DEVELOPMENT), ("confirmation", CONFIRMATION)):
            print(f"\nOn {title} tables, against EBER\n")
            print(_against(own[own["table"].isin(group)], "EBER", ["ERM", *variants]))
        print(f"\n{_recognised(own, data_dir)}")


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
    return _markdown(pd.DataFrame(cells, index=means.index))


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
    """How well x tells environments apart, beside what EBER gains on ERM and loses when they are shuffled."""
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
            "EBER - shuffled": values.loc[name, "EBER"] - values.loc[name, "EBER, environments shuffled"],
        }
    result = pd.DataFrame(found).T
    correlations = [
        f"{column}: {stats.spearmanr(result['share of what chance leaves'], result[column]).statistic:+.2f}"
        for column in ("EBER - ERM", "EBER - shuffled")
    ]
    return (
        f"{_markdown(result.map(lambda v: f'{v:.3f}'))}\n\nRank correlation over tables with {', '.join(correlations)}"
    )


def _markdown(frame: pd.DataFrame) -> str:
    head = ["", *map(str, frame.columns)]
    lines = [[str(index), *map(str, row)] for index, row in zip(frame.index, frame.to_numpy(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
