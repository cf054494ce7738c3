"""`compare_table`: every method on a table, each environment held out in turn."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eber.compare.folds import plan_folds
from eber.compare.methods import POOL_MEMBERS
from eber.compare.preview import expect
from eber.compare.record import ComparisonRecord, record_comparison
from eber.compare.summary import ComparisonSummary, summarise_comparison
from eber.compare.suspicions import find_suspicions
from eber.evaluation.metrics import find_metric
from eber.io.files import write_atomically
from eber.methods import BUILT_IN, POOL, default_methods, methods_named
from eber.report.chosen_settings import chosen_settings
from eber.report.comparison_page import write_comparison_page
from eber.runs.backends import check_backend
from eber.runs.ledger import CELLS_FOLDER
from eber.runs.own_folder import make_own
from eber.runs.progress import Progress
from eber.runs.results import Results
from eber.runs.runner import RunSummary, run, writing_outputs
from eber.tables.files import TableFile, open_table, require_apart
from eber.tables.prepared.folder import PreparedTable, is_prepared
from eber.tables.readers.protocol import TooLargeError
from eber.tables.reading import Reading
from eber.tables.training import read_training_table
from eber.training import one_thread
from eber.workflow.announcing import announcement, what_is_left
from eber.workflow.arguments import (
    FRAME_FILE,
    as_progress,
    call_text,
    choices_of,
    effort_of,
    names_of,
    results_folder,
    whole_number,
)
from eber.workflow.fitting import check_savable
from eber.workflow.fitting_prepared import can_be_prepared, require_as_prepared
from eber.workflow.interruption import saying_what_is_kept
from eber.workflow.room import jobs_with_room
from eber.workflow.sampling import Sample, draw_sample, sample_of
from eber.workflow.table_comparison import TableComparison

MODEL_FOLDER = "model"
"""Where the model goes that a comparison advises to fit."""


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
    categorical: str | Iterable[str] = (),
    numeric: str | Iterable[str] = (),
    missing: str | Iterable[str] = (),
    positive: str | None = None,
    weight: str | None = None,
    sheet: str | None = None,
    query: str | None = None,
    encoding: str | None = None,
    quick: bool = False,
    epochs: int | None = None,
    progress: bool | Progress = False,
    command: str = "",
) -> TableComparison:
    """Compare methods on a table, each environment held out in turn: what predicts a new one, and how sure is that?

    Parameters
    ----------
    table : str, Path or DataFrame
        A file or folder of a format in docs/tables.md, "-" for standard input, or a DataFrame of pandas, polars or
        pyarrow. An index of pandas is not used. Of a prepared table, and of a file or folder that does not fit into
        memory with the fits to it, a random sample of 200,000 rows is compared, and the page says so on top.
    label, environment : str
        The column to be predicted, and the one that says where each row comes from.
    out : str or Path, optional
        Output folder: every score (cells.csv), a page to read (report.html), and for a DataFrame its rows
        (table.parquet). By default results/NAME of a file, and results/table for a DataFrame, with "-quick" behind it
        for a quick look. A comparison that was stopped goes on where it was when the same call is made again.
    methods : str or iterable of str, optional
        Names, "all" for every method that is installed, or "module:Class" for one of one's own; those of
        `eber.methods.default_methods` when not given.
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
    categorical, numeric : str or iterable of str
        Columns to be taken as categories, or as numbers, whatever they look like.
    missing : str or iterable of str
        Further values that count as missing, such as "-999" or "unknown".
    positive : str, optional
        Of two classes, the one that AUROC, AUPRC and calibration curves speak of; otherwise the one that a clinician
        would name (case, yes, 1, +), or else the rarer one.
    weight : str, optional
        The column that says how much each row counts, in fits and in scores; it is no feature.
    sheet : str, optional
        Of an Excel workbook with several.
    query : str, optional
        SQL whose answer is the table: in a database, or about a CSV or Parquet file, which it calls data.
    encoding : str, optional
        Of CSV that is not UTF-8, such as latin-1 or utf-16.
    quick : bool
        Shorter training and fixed settings: a first look. Otherwise every method's settings are chosen in the same way,
        by leaving training environments out.
    epochs : int, optional
        Passes over the training rows of a fit; otherwise as many as about 4500 gradient steps need (500 when quick).
    progress : bool or Progress
        Whether to say on standard error what is decided and how far the run is. It is kept in the result in any case.
    command : str
        What was typed, for the page; the call when empty.

    Returns
    -------
    TableComparison
        Also when some fits failed, or Ctrl-C came when others were finished: see its `failures` and `exit_status`.
        Where none was finished, KeyboardInterrupt is passed on.
    """
    effort = effort_of(quick, epochs)
    find_metric(metric)
    chosen = [method.name for method in methods_named(names_of(methods, "methods") or default_methods())]
    if POOL in chosen and effort.searches:  # it is made of what these say, which is worth a row each
        chosen += [member for member in POOL_MEMBERS if member not in chosen]
    whole_number(seeds, "seeds", 1)
    whole_number(jobs, "jobs", 1)
    check_backend(backend)
    choices = choices_of(categorical, numeric, missing, positive, weight)
    dropped, wanted = names_of(drop, "drop"), None if features is None else names_of(features, "features")
    listener, folder = as_progress(progress), Path(out) if out is not None else results_folder(table, quick)
    require_apart(folder, table)
    sample: Sample | None = None
    if is_prepared(table):
        given: dict[str, Any] = {"label": label, "environment": environment, "drop": dropped, "features": wanted}
        given |= {"sheet": sheet, "query": query, "encoding": encoding, "categorical": choices.categorical}
        given |= {"numeric": choices.numeric, "missing": choices.missing, "positive": positive, "weight": weight}
        prepared = PreparedTable.read(Path(table))
        require_as_prepared(prepared, given)
        sample, choices = sample_of(prepared), prepared.choices
        dropped, wanted = prepared.asked["drop"], prepared.asked["features"]
    file = open_table(table, Reading(sheet, query, encoding)) if sample is None else sample.file
    columns: dict[str, Any] = {"drop": dropped, "features": wanted, "choices": choices}
    can_be_sampled = (
        sample is None and can_be_prepared(file, choices) and not (file.reading.given or file.decimal_comma)
    )
    try:
        data = read_training_table(file, label=label, environment=environment, **columns)
        if backend == "processes":
            jobs = jobs_with_room(data, jobs, listener, can_be_sampled=can_be_sampled)
    except TooLargeError:
        if not can_be_sampled:
            raise
        make_own(folder)
        sample = draw_sample(replace(file, missing=choices.missing), label, environment, folder)
        file = sample.file
        data = read_training_table(file, label=label, environment=environment, **columns)
    if sample is not None:
        listener.note(sample.remark)
    _say(listener, [*data.contents, *data.notes])
    plan = plan_folds(data.y, data.environments)
    _say(listener, plan.remarks)
    suspicions = find_suspicions(data, plan)
    record = record_comparison(
        data,
        plan,
        effort,
        metric,
        suspicions,
        drop=dropped,
        features=wanted,
        choices=choices,
        reading=file.reading,
    )
    if sample is not None:
        record = replace(record, sample_of=sample.source, sample_remark=sample.remark, is_prepared=sample.is_prepared)
    expected = None
    if progress is not False:
        left = what_is_left(record, chosen, seeds, folder)
        try:
            with one_thread():
                expected = expect(data, left, plan, effort, jobs)
            _say(listener, announcement(data, plan, left, seeds, effort, expected, jobs, folder))
        except KeyboardInterrupt:
            kept = f"{folder} is as it was" if folder.exists() else "nothing was written"
            listener.note(f"Stopped before the first fit; {kept}.")
            raise
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
        categorical=choices.categorical,
        numeric=choices.numeric,
        missing=choices.missing,
        positive=positive,
        weight=weight,
        sheet=sheet,
        query=query,
        encoding=encoding,
        quick=quick,
        epochs=epochs,
    )
    make_own(folder)
    with writing_outputs(folder):
        rows = file.source or _keep_rows(file, folder)
        record.save(folder)
    with saying_what_is_kept(listener.note, lambda: _kept(folder)):
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
            expected=None if expected is None else partial(expected.of_cell, record.experiment.groundwork),
        )
    return reported_comparison(folder, record, summary)


def reported_comparison(folder: Path, record: ComparisonRecord, run: RunSummary | None = None) -> TableComparison:
    """Sum up what an output folder holds, and write its page."""
    results = record.results(folder)
    summary = summarise_comparison(results)
    chosen, command = chosen_settings(results, summary), fit_command(record, summary, results)
    with writing_outputs(folder):
        page = write_comparison_page(results, record, summary, chosen, command)
    return TableComparison(record, summary, folder, page, command, chosen, run)


def fit_command(record: ComparisonRecord, summary: ComparisonSummary, results: Results) -> str:
    """The command that fits the recommended method as it was compared; empty where its model cannot be saved."""
    method = results.experiment.method(summary.recommended.method)
    try:
        check_savable(method)
    except (ValueError, ImportError):  # no plain data, or a class of one's own that is not at hand
        return ""
    own = method not in BUILT_IN
    table = record.sample_of or str(results.run["data_dir"])
    words = ["eber", "fit", table, "--label", record.label, "--environment", record.environment]
    words += ["--method", method.source if own else method.name]
    said = {"drop": record.drop, "features": record.features, **record.choices, **record.reading}
    if record.is_prepared:  # which has decided all of this
        said = {}
    for option, given in said.items():
        values = [given] if isinstance(given, str) else given or ()
        words += [word for value in values for word in (f"--{option}", value)]
    words += [] if record.effort.searches else ["--quick"]
    words += [] if record.passes is None else ["--epochs", str(record.passes)]
    words += (
        []
        if record.sample_of or results.folder == results_folder(table, not record.effort.searches)
        else ["--results", str(results.folder)]
    )
    return shlex.join([*words, "--out", MODEL_FOLDER])


def _kept(folder: Path) -> str:
    """What is there when a run ended before its first result."""
    if any((folder / CELLS_FOLDER).glob("*.json")):
        return "No result was finished yet; what was computed for them is kept: the same command goes on from here."
    return "Nothing was finished yet: the same command begins again."


def _say(listener: Progress, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        listener.note(sentence)


def _keep_rows(file: TableFile, folder: Path) -> Path:
    """Write rows that are in memory where worker processes find them, unless they are there."""
    place, (content,) = folder / FRAME_FILE, file.parts
    if not place.exists() or place.read_bytes() != content.to_pybytes():
        write_atomically(place, content.to_pybytes())
    return place
