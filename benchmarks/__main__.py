"""`make bench`: what fits and predictions cost, as ratios measured in turns in one run, one thread.

Prints tables, and leaves bench/results.json and bench/results.png.
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from benchmarks.accuracy import accuracy
from benchmarks.fits import growth, many_at_once, passes, whole_fits
from benchmarks.large_tables import against_boosting
from benchmarks.predictions import prediction
from benchmarks.scale import tenth_of_the_large_run
from benchmarks.threads import second_thread
from benchmarks.updates import updates
from eber.io.files import write_atomically
from eber.training import isolated_torch

OUT = Path("bench")
ENVIRONMENTS = (6, 36, 144, 1000)
Columns = dict[str, dict[str, float]]


def show(console: Console, title: str, columns: Columns) -> None:
    """A table with a column for each key."""
    table = Table("", *columns, title=title)
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        cells = (f"{column[name]:.3g}" if name in column else "–" for column in columns.values())
        table.add_row(name, *cells)
    console.print(table)


def draw_passes(columns: Columns, path: Path) -> None:
    """Cost of a pass against the number of environments."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        if "times" in name or "memory" in name:
            continue
        points = [(m, column[name]) for m, column in zip(ENVIRONMENTS, columns.values(), strict=True) if name in column]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.axhline(1, color="grey", linestyle="--", linewidth=1, label="plain ERM")
    axes.set(xscale="log", yscale="log", xlabel="training environments", ylabel="pass over the data / plain ERM's")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Measure, print, save."""
    console, results = Console(), dict[str, Columns]()
    with isolated_torch(0, threads=1):
        for title, measured in (
            ("A pass over the data, in units of plain ERM's", lambda: {f"m={m}": passes(m) for m in ENVIRONMENTS}),
            ("A whole fit, in units of plain ERM's", lambda: {f"m={m}": whole_fits(m) for m in ENVIRONMENTS[:2]}),
            ("Many fits at once", many_at_once),
            ("A pass of EBER, in units of the parametric baseline's", growth),
            ("A step of each baseline, in units of DomainBed's", updates),
            ("Prediction of 25,000 rows", lambda: {f"m={m}": prediction(m) for m in ENVIRONMENTS[:3]}),
            ("A fit of a million rows, 30 columns, 12 environments", against_boosting),
            ("A second thread", second_thread),
            (
                "Ten million rows, 20 columns, 50 environments from disk: a tenth of the large run",
                tenth_of_the_large_run,
            ),
            ("Parametric simulation with 36 environments of 500 rows, 3 seeds", lambda: accuracy(36, 500)),
            ("Parametric simulation with 1000 environments of 20 rows, 3 seeds", lambda: accuracy(1000, 20)),
        ):
            results[title] = measured()
            show(console, title, results[title])
    OUT.mkdir(exist_ok=True)
    write_atomically(OUT / "results.json", json.dumps(results, indent=1))
    draw_passes(next(iter(results.values())), OUT / "results.png")
    console.print(f"Saved {OUT / 'results.json'} and {OUT / 'results.png'}.")


if __name__ == "__main__":
    main()
