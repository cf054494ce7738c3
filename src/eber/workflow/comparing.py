"""`compare_table`: every method on a table, each environment held out in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eber.compare.folds import FoldPlan, plan_folds
from eber.compare.methods import Effort
from eber.compare.preview import expected_seconds, fits_of
from eber.compare.record import ComparisonRecord, record_comparison
from eber.compare.summary import summarise_comparison
from eber.compare.suspicions import find_suspicions
from eber.evaluation.metrics import find_metric
from eber.io.files import write_atomically
from eber.io.text import count
from eber.methods import default_methods, find_method
from eber.report.comparison_page import write_comparison_page
from eber.runs.backends import check_backend
from eber.runs.progress import Progress
from eber.runs.results import load_results
from eber.runs.runner import RunSummary, run, writing_outputs
from eber.tables.files import TableFile, open_table
from eber.tables.frames import is_path
from eber.tables.training import TrainingTable, read_training_table
from eber.training import one_thread
from eber.workflow.arguments import RESULTS, as_progress, call_text, effort_of, names_of, whole_number
from eber.workflow.table_comparison import TableComparison

FRAME_FILE = "table.parquet"
"""The rows of a frame in an output folder, for the worker processes and for going on after an interruption."""


def compare_table(
    table: Any,
    *,
    label: str,
    environment: str,
    out: str | Path | None = None,
    methods: str | Iterable[str] | None = None,
    seeds: int = 1,
    metric: str = "nll",
    jobs: int = 2,
    backend: Any = "processes",
    drop: str | Iterable[str] = (),
    features: str | Iterable[str] | None = None,
    quick: bool = False,
    selection: str | None = None,
    progress: bool | Progress = False,
    command: str = "",
) -> TableComparison:
    """Compare EBER, its baselines, logistic regression and gradient boosting, each environment held out in turn.

    Parameters
    ----------
    table : str, Path or DataFrame
        CSV (also gzipped), Parquet, a folder of Parquet files, or a DataFrame of pandas, polars or pyarrow. An index of
        pandas is not used.
    label, environment : str
        The column to be predicted, and the one that says where each row comes from.
    out : str or Path, optional
        Output folder: every score (cells.csv), a page to read (report.html), and for a DataFrame its rows
        (table.parquet). By default results/NAME of a file, and results/table for a DataFrame. A comparison that was
        stopped goes on where it was when the same call is made again.
    methods : str or iterable of str, optional
        Names, or "module:Class" for one of one's own; those of `eber.methods.default_methods` when not given.
    seeds : int
        Number of seeds: 0, 1, ...
    metric : str
        What methods are ranked by: nll, accuracy, ece, brier, auroc or auprc.
    jobs : int
        Worker processes, one thread each. In a script they need the usual ``if __name__ == "__main__":``.
    backend : str, RayCluster or Executor
        Where methods are fitted: "processes" of this machine, "ray" or `RayCluster(address)`, or an open executor of
        concurrent.futures whose workers are processes (Dask's: ``client.get_executor()``), which is handed `jobs` fits
        at once. Scores are the same everywhere.
    drop, features : str or iterable of str
        Columns not to be used; or exactly those to be used.
    quick : bool
        Shorter training, no search of weights: a first look.
    selection : str, optional
        How penalty weights are chosen within the training environments: training_domain_validation (when not given),
        training_domain_cross_validation or leave_one_environment_out.
    progress : bool or Progress
        Whether to say on standard error what is decided and how far the run is. It is kept in the result in any case.
    command : str
        What was typed, for the page; the call when empty.

    Returns
    -------
    TableComparison
        Also when some fits failed, or Ctrl-C came when others were finished: see its `failures` and `exit_status`.
    """
    effort = effort_of(quick, selection)
    find_metric(metric)
    chosen = [find_method(name).name for name in names_of(methods, "methods") or default_methods()]
    whole_number(seeds, "seeds", 1)
    whole_number(jobs, "jobs", 1)
    check_backend(backend)
    file = open_table(table)
    dropped, wanted = names_of(drop, "drop"), None if features is None else names_of(features, "features")
    data = read_training_table(file, label=label, environment=environment, drop=dropped, features=wanted)
    listener = as_progress(progress)
    _say(listener, [*data.contents, *data.notes])
    plan = plan_folds(data.y, data.environments)
    _say(listener, plan.remarks)
    folder = Path(out) if out is not None else RESULTS / _name(table)
    if progress is not False:
        _say(listener, _announcement(data, plan, chosen, seeds, effort, jobs, folder))
    suspicions = find_suspicions(data, plan)
    record = record_comparison(data, plan, effort, metric, suspicions, drop=dropped, features=wanted)
    call = call_text(
        compare_table,
        table,
        label=label,
        environment=environment,
        methods=None if methods is None else chosen,
        seeds=seeds,
        metric=metric,
        drop=tuple(dropped),
        features=wanted,
        quick=quick,
        selection=selection,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with writing_outputs(folder):
        rows = Path(table) if is_path(table) else _keep_frame(file, folder)
        record.save(folder)
    summary = run(
        record.experiment,
        out=folder,
        seeds=seeds,
        methods=chosen,
        data_dir=rows,
        jobs=jobs,
        backend=backend,
        progress=listener,
        command=command or call,
    )
    return reported_comparison(folder, record, summary)


def reported_comparison(folder: Path, record: ComparisonRecord, run: RunSummary | None = None) -> TableComparison:
    """Sum up what an output folder holds, and write its page."""
    results = load_results(record.experiment, folder)
    summary = summarise_comparison(results)
    with writing_outputs(folder):
        page = write_comparison_page(results, record, summary)
    return TableComparison(record, summary, folder, page, run)


def duration(seconds: float) -> str:
    """A time in words, no more exact than it is known."""
    if seconds < 50:
        return f"about {max(5 * round(seconds / 5), 5)} seconds"
    if seconds < 50 * 60:
        return f"about {count(max(round(seconds / 60), 1), 'minute')}"
    hours = round(2 * seconds / 3600) / 2
    return f"about {hours:g} {'hour' if hours == 1 else 'hours'}"


def _say(listener: Progress, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        listener.note(sentence)


def _name(table: Any) -> str:
    return Path(table).resolve().name.split(".")[0] if is_path(table) else Path(FRAME_FILE).stem


def _keep_frame(file: TableFile, folder: Path) -> Path:
    """Write the rows of a frame where worker processes find them, unless they are there."""
    place, (content,) = folder / FRAME_FILE, file.parts
    if not place.exists() or place.read_bytes() != content.to_pybytes():
        write_atomically(place, content.to_pybytes())
    return place


def _announcement(
    data: TrainingTable, plan: FoldPlan, methods: Sequence[str], seeds: int, effort: Effort, jobs: int, folder: Path
) -> list[str]:
    """What will be run, and about how long that takes."""
    with one_thread():
        seconds = expected_seconds(data, methods, plan, seeds, effort, jobs)
    return [
        f"{len(data)} rows, {count(len(data.schema.features), 'feature')}, {len(set(data.environments))} environments. "
        f"To be run: {_planned(methods, plan, seeds, data, effort)}.",
        f"This takes {duration(seconds)} with {count(jobs, 'job')}. Output: {folder}",
    ]


def _planned(methods: Sequence[str], plan: FoldPlan, seeds: int, table: TrainingTable, effort: Effort) -> str:
    """What will be run, in numbers: methods x folds x seeds, and what the search of weights adds."""
    cells = len(plan.folds) * seeds
    text = (
        f"{count(len(methods), 'method')} x {count(len(plan.folds), 'held-out fold')} x {count(seeds, 'seed')} = "
        f"{count(len(methods) * cells, 'result')}"
    )
    searched = {method: fits_of(method, table, effort) for method in methods}
    searched = {method: fits for method, fits in searched.items() if fits > 1}
    if not searched:
        return text
    return (
        f"{text}; {', '.join(searched)} with a search of {count(len(effort.penalty_weights), 'penalty weight')} by "
        f"{effort.selection}, {max(searched.values())} fits each"
    )
