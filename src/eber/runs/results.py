"""From `cells.csv` to what the tables say: means and spreads over seeds, tests, and the paper's figures beside ours."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from numpy.typing import NDArray

from eber.evaluation.metrics import Quantity
from eber.evaluation.significance import Comparison, compare_with_reference
from eber.io.spreadsheet_text import unescape_formula
from eber.leaks.findings import ADVICE, LeakFinding
from eber.runs.cell import LEAKED_ROWS, MAIN, PENALTY_WEIGHT, row_label
from eber.runs.collect import (
    CELLS_COLUMNS,
    CELLS_FILE,
    FINDINGS_COLUMNS,
    FINDINGS_FILE,
    TIMINGS_COLUMNS,
    TIMINGS_FILE,
    WARNINGS_COLUMNS,
    WARNINGS_FILE,
)
from eber.runs.ledger import Ledger
from eber.runs.runner import GIVE_COMMAND_AGAIN, declaration, read_run, with_added_methods
from eber.runs.spec import SECONDS, Experiment
from eber.runs.tuning_words import tuning_remarks

NO_LEAK = "Leak audit: no held-out row or subject was found that is clearly in the training data too."
_FINDING_COLUMNS = tuple(field.name for field in fields(LeakFinding))
MAX_USUAL_DEVIATION = 2.0  # differences beyond so many of the paper's standard deviations are put into words
MAX_COUNTED_DEVIATION = 10.0  # beyond so many their number says how small a spread the paper printed, and no more
_PRINTED_DIGITS = 0.0005  # the paper prints three decimals: an sd of 0.000 is one below half of the last

Role = Literal["oracle", "method", "floor", "tuned", "variant"]
ROLE_ORDER: Mapping[Role, int] = {"oracle": 0, "method": 1, "floor": 2, "tuned": 3, "variant": 4}


@dataclass(frozen=True)
class Results:
    """What an output folder holds.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
    cells : DataFrame
        Tidy scores: experiment, setting, method, variant, seed, metric, value.
    timings : DataFrame
        Tidy times: experiment, setting, method, variant, seed, seconds.
    warnings : DataFrame
        What was warned of: experiment, setting, method, seed, message.
    findings : DataFrame
        What the leak audit found: experiment, setting, method, seed, kind, n_rows, n_held_out, sentence.
    run : mapping
        How it was run: command, overrides, data, versions.
    """

    experiment: Experiment
    folder: Path
    cells: pd.DataFrame
    timings: pd.DataFrame
    warnings: pd.DataFrame
    findings: pd.DataFrame
    run: Mapping[str, Any]

    def arrays(self, method: str, seed: int, setting: str | None = None) -> dict[str, NDArray[Any]]:
        """The arrays that a cell kept; none where it is not finished. The first setting unless another is named."""
        setting = setting or next(iter(self.experiment.settings))
        cell = self.experiment.cell(setting, method, seed, self.run["overrides"], self.run["data"])
        return Ledger(self.folder).read_arrays(cell)

    def seeds(self, method: str, setting: str | None = None) -> list[int]:
        """The seeds that a method has finished."""
        setting = setting or next(iter(self.experiment.settings))
        rows = self.cells[(self.cells["method"] == method) & (self.cells["setting"] == setting)]
        return sorted(int(seed) for seed in rows["seed"].unique())

    def leak_findings(self, setting: str) -> list[tuple[LeakFinding, ...]]:
        """What audits of a setting found, each different answer once; those that found nothing are not among them."""
        rows = self.findings[self.findings["setting"] == setting]
        answers = (
            tuple(LeakFinding(*values) for values in group[list(_FINDING_COLUMNS)].itertuples(index=False))
            for _, group in rows.groupby(["method", "seed"], sort=False)
        )
        return list(dict.fromkeys(answers))


def load_results(experiment: Experiment, folder: Path) -> Results:
    """Read an output folder; methods that were added to the experiment are those that the folder names."""
    run = read_run(folder)
    if run["experiment"] != experiment.name:
        raise ValueError(f"{folder} holds results of {run['experiment']!r}, not of {experiment.name!r}.")
    if run["declaration"] != declaration(experiment):
        raise ValueError(f"{folder} holds results of other parameters than are asked for. {GIVE_COMMAND_AGAIN}")
    return Results(
        with_added_methods(experiment, run),
        folder,
        _read_table(folder / CELLS_FILE, CELLS_COLUMNS, run["tables"]),
        _read_table(folder / TIMINGS_FILE, TIMINGS_COLUMNS, run["tables"]),
        _read_table(folder / WARNINGS_FILE, WARNINGS_COLUMNS, run["tables"]),
        _read_table(folder / FINDINGS_FILE, FINDINGS_COLUMNS, run["tables"]),
        run,
    )


def _read_table(path: Path, columns: tuple[str, ...], checksums: Mapping[str, str]) -> pd.DataFrame:
    content = path.read_bytes() if path.exists() else b""
    if hashlib.sha256(content).hexdigest() != checksums[path.name]:
        raise ValueError(f"{path} is missing or was altered after the run. {GIVE_COMMAND_AGAIN}")
    # Read as text first: names stay names even where pandas would see "NA" or "1", and numbers come back exactly.
    table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    table = table.map(unescape_formula)
    numbers = {"seed": "int64", "n_rows": "int64", "n_held_out": "int64", "value": "float64", "seconds": "float64"}
    return table.astype({name: kind for name, kind in numbers.items() if name in columns})


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, with the paper's beside it.

    Parameters
    ----------
    mean, sd : float
        Over seeds; the standard deviation is NaN for one seed.
    paper : tuple of float, optional
        Mean and standard deviation that the paper printed.
    """

    mean: float
    sd: float
    paper: tuple[float, float] | None = None

    @property
    def deviation(self) -> float:
        """Our mean minus the paper's, in the paper's standard deviations; NaN where the paper has none."""
        if self.paper is None:
            return math.nan
        mean, sd = self.paper
        return (self.mean - mean) / max(sd, _PRINTED_DIGITS)


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Parameters
    ----------
    label : str
    role : str
        "oracle", "method", "floor", "tuned" or "variant".
    n_seeds : int
    estimates : mapping
        Name of a quantity to its estimate; "seconds" among them. Quantities that the row has not are missing.
    comparison : Comparison, optional
        The reference method against this one; among tuned rows, the reference method's.
    paper_p_value : str
        As the paper printed it.
    """

    label: str
    role: Role
    n_seeds: int
    estimates: Mapping[str, Estimate]
    comparison: Comparison | None = None
    paper_p_value: str = ""


@dataclass(frozen=True)
class Summary:
    """One setting, summed up.

    Parameters
    ----------
    setting : str
    rows : tuple of Row
        Oracles, then methods, then what they have to beat, then tuned ones, then variants.
    columns : tuple of Quantity
        Those that some row has.
    primary : Quantity
        The one that was tested.
    reference : str
        The method that was tested against the others.
    tuned_reference : str
        Its row among the tuned ones, which was tested against the others of them; empty where there is none.
    source : str
        The paper's table; empty where it has none.
    changes : mapping
        Parameters that this run changed, and their values.
    penalty_weights : mapping
        Label of a method to the weight that was chosen under each seed.
    weights_chosen_on : str
        Whose validation rows decided on them.
    fitted_together : bool
        Whether fits were trained side by side, so that no method has a time of its own.
    audit : tuple of str
        What the leak audit found, each finding once, or that it found nothing; empty where there was no audit.
    tuning : tuple of str
        How the settings of tuned rows were chosen, and which; empty where there are none.
    """

    setting: str
    rows: tuple[Row, ...]
    columns: tuple[Quantity, ...]
    primary: Quantity
    reference: str
    tuned_reference: str
    source: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    penalty_weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    weights_chosen_on: str = ""
    fitted_together: bool = False
    audit: tuple[str, ...] = ()
    tuning: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said below the table beyond its caption and its tests."""
        return (*self.audit, *self.tuning)

    def best(self, name: str) -> set[str]:
        """Labels of the methods with the best mean, as printed; oracles and variants do not compete."""
        quantity = next(column for column in self.columns if column.name == name)
        rows = [row for row in self.rows if row.role == "method" and name in row.estimates]
        return quantity.best({row.label: row.estimates[name].mean for row in rows})


def summarise(results: Results) -> list[Summary]:
    """One summary for each setting that has finished cells, in the order of the declaration."""
    present = set(results.cells["setting"])
    return [_summarise_setting(results, setting) for setting in results.experiment.settings if setting in present]


def _summarise_setting(results: Results, setting: str) -> Summary:
    experiment = results.experiment
    columns = dict(experiment.columns)
    if experiment.fits_alone:  # a share of what fits side by side took is no time of a method
        columns[SECONDS.name] = SECONDS
    times = results.timings.rename(columns={"seconds": "value"}).assign(metric=SECONDS.name)
    scores = pd.concat([results.cells, times[list(CELLS_COLUMNS)]], ignore_index=True)
    scores = scores[(scores["setting"] == setting) & scores["metric"].isin(list(columns))]
    tuned_reference = experiment.tuned.get(experiment.reference_method, "")
    comparisons = {
        **_compare(experiment, scores, experiment.methods, experiment.reference_method),
        **_compare(experiment, scores, tuple(experiment.tuned.values()), tuned_reference),
    }
    paper = experiment.paper.get(setting)
    rows = []
    for (method, variant), group in scores.groupby(["method", "variant"], sort=False):
        label = row_label(method, variant)
        printed = paper.rows.get(label, {}) if paper else {}
        rows.append(
            Row(
                label,
                _role(experiment, method, variant),
                int(group["seed"].nunique()),
                {
                    name: _estimate(values, printed.get(name))
                    for name, values in group.groupby("metric", sort=False)["value"]
                },
                comparisons.get(method) if variant == MAIN else None,
                paper.p_values.get(label, "") if paper else "",
            )
        )
    rows.sort(key=lambda row: ROLE_ORDER[row.role])  # stable: within a role as declared
    return Summary(
        setting,
        tuple(rows),
        tuple(column for name, column in columns.items() if any(name in row.estimates for row in rows)),
        columns[experiment.primary_metric],
        experiment.reference_method,
        tuned_reference if any(row.label == tuned_reference for row in rows) else "",
        paper.source if paper else "",
        results.run["overrides"],
        _penalty_weights(results.cells[results.cells["setting"] == setting]),
        experiment.weights_chosen_on,
        not experiment.fits_alone,
        _audit_findings(results, setting),
        tuning_remarks(results, setting),
    )


def _penalty_weights(cells: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    chosen = cells[cells["metric"] == PENALTY_WEIGHT].sort_values("seed", kind="stable")
    return {str(method): tuple(group["value"]) for method, group in chosen.groupby("method", sort=False)}


def _audit_findings(results: Results, setting: str) -> tuple[str, ...]:
    leaks = [
        " ".join(["Leak:", *(finding.sentence for finding in answer), ADVICE])
        for answer in results.leak_findings(setting)
        if any(finding.is_leak for finding in answer)
    ]
    if leaks:
        return tuple(leaks)
    audited = (results.cells["setting"] == setting) & (results.cells["metric"] == LEAKED_ROWS)
    return (NO_LEAK,) if audited.any() else ()


def _estimate(values: pd.Series, paper: tuple[float, float] | None) -> Estimate:
    """Mean and spread; a seed without a score is not passed over in silence but makes both NaN."""
    return Estimate(float(values.mean(skipna=False)), float(values.std(ddof=1, skipna=False)), paper)


def _role(experiment: Experiment, method: str, variant: str) -> Role:
    if method in experiment.oracles:
        return "oracle"
    if method in experiment.floor:
        return "floor"
    if method in experiment.tuned.values():
        return "tuned"
    return "method" if method in experiment.methods and variant == MAIN else "variant"


def _compare(
    experiment: Experiment, scores: pd.DataFrame, methods: tuple[str, ...], reference: str
) -> dict[str, Comparison]:
    """Test one of the methods against the others; these tests of one setting are a family."""
    primary = experiment.columns[experiment.primary_metric]
    rows = scores[(scores["metric"] == primary.name) & (scores["variant"] == MAIN)]
    by_method = {
        method: dict(zip(group["seed"], group["value"], strict=True))
        for method, group in rows.groupby("method", sort=False)
        if method in methods
    }
    if primary.higher_is_better is None or reference not in by_method:
        return {}
    return compare_with_reference(by_method, reference, higher_is_better=primary.higher_is_better)
