"""`fit_table` and `load_model`: a model with all that is needed to use it on other tables."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eber.compare.all_folds import results_by_fold
from eber.compare.fit_method import Fitted, fit_method
from eber.compare.folds import FoldPlan, plan_folds
from eber.compare.methods import Effort
from eber.compare.running import comparison
from eber.methods import BUILT_IN, Method, find_method, methods_named
from eber.runs.cell import MAIN, CellResult
from eber.runs.joint_fits import run_alone
from eber.runs.ledger import DamagedCellError, Ledger
from eber.runs.own_folder import RUN_FILE
from eber.runs.progress import Progress
from eber.tables.files import open_table
from eber.tables.model_card import describe
from eber.tables.model_folder import TABLE_FILE, TableModel, can_hold, prepare_folder
from eber.tables.new_environment import say_spread
from eber.tables.prepared.folder import PreparedTable, is_prepared
from eber.tables.prepared.preparing import prepare
from eber.tables.preprocessing import Preprocessing
from eber.tables.readers.protocol import TooLargeError
from eber.tables.reading import Reading
from eber.tables.training import TrainingTable, read_training_table
from eber.training import one_thread
from eber.tuning.calibration import Calibration, estimate_calibration
from eber.workflow.arguments import as_progress, choices_of, effort_of, names_of, results_folder, whole_number
from eber.workflow.fitting_prepared import (
    can_be_prepared,
    fit_stored_rows,
    how_it_was_fitted,
    open_prepared,
    prepared_folder,
)
from eber.workflow.room import require_room_to_fit
from eber.workflow.sampling import read_sample

CARD_METRICS = ("nll", "accuracy", "ece", "auroc")


def fit_table(
    table: Any,
    *,
    label: str | None = None,
    environment: str | None = None,
    method: str = "EBER",
    out: str | Path | None = None,
    seed: int = 0,
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
    scores: bool = True,
    results: str | Path | None = None,
    progress: bool | Progress = False,
) -> TableModel:
    """Fit a model on a table: classifier, preprocessing, columns and a model card.

    Parameters
    ----------
    table : str, Path or DataFrame
        A file or folder of a format in docs/tables.md, "-" for standard input, or a DataFrame of pandas, polars or
        pyarrow. An index of pandas is not used. Or the folder that `prepare_table` has made of a table larger than
        memory: settings and scores are then of a random sample of its rows, the model of all. A file or folder of
        Parquet or CSV that does not fit into memory is prepared first, beside `out`.
    label, environment : str
        The column to be predicted, and the one that says where each row comes from. A prepared table knows them.
    method : str
        Any that `compare_table` ranks and whose model is plain data: the library's own kind, also one's own as
        "module:Class", logistic regression, gradient boosting, random forest, no model and the pool.
    out : str or Path, optional
        Folder for the model; otherwise it is not saved before its `save` is called.
    seed : int
        Seed of the fit.
    drop, features : str or iterable of str
        Columns not to be used; or exactly those to be used.
    categorical, numeric, missing, positive
        What to know about columns and classes; see `compare_table`.
    weight : str, optional
        The column that says how much each row counts, in fits and in scores; it is no feature.
    sheet, query, encoding : str, optional
        How a file is read; see `compare_table`.
    quick : bool
        Shorter training and fixed settings: a first look. Otherwise settings are chosen by leaving environments out.
    epochs : int, optional
        Passes over the training rows; see `compare_table`.
    scores : bool
        Measure leave-one-environment-out scores for the model card, and how environments differ, which labels of a new
        one and the columns `low` and `high` need.
    results : str or Path, optional
        Output folder of a comparison; scores of the very same fits are taken from there. results/NAME of the table
        when not given.
    progress : bool or Progress
        Whether to say on standard error what is decided and measured. It is kept in the model's card in any case.

    Returns
    -------
    TableModel
        With `predict_table` and `save`; `load_model` gives it again.
    """
    effort = effort_of(quick, epochs)
    (declared,) = methods_named([find_method(method).name])
    chosen = declared.name
    check_savable(declared)
    whole_number(seed, "seed", 0)
    folder = None if out is None else Path(out)
    listener = as_progress(progress)
    if is_prepared(table):
        said: dict[str, Any] = {
            "label": label,
            "environment": environment,
            "drop": drop,
            "features": features,
            "missing": missing,
        }
        said |= {"categorical": categorical, "numeric": numeric, "positive": positive, "weight": weight}
        said |= {"sheet": sheet, "query": query, "encoding": encoding}
        with _folder_for(folder, listener), one_thread():
            prepared = open_prepared(Path(table), said, declared)
            model = _fit_prepared(prepared, chosen, seed, effort, scores, listener)
        return _saved(model, folder)
    if label is None or environment is None:
        raise ValueError(
            "Name the column to be predicted, --label, and the one that says where each row comes from, --environment: "
            "only a prepared table knows them."
        )
    choices = choices_of(categorical, numeric, missing, positive, weight)
    file = open_table(table, Reading(sheet, query, encoding))
    dropped, wanted = names_of(drop, "drop"), None if features is None else names_of(features, "features")
    from_disk = declared.is_network and can_be_prepared(file, choices)
    try:
        data = read_training_table(
            file, label=label, environment=environment, drop=dropped, features=wanted, choices=choices
        )
        if from_disk:
            require_room_to_fit(data)
    except TooLargeError:
        if not from_disk:
            raise
        listener.note(f"{file.title} does not fit into memory: it is prepared on disk first, and fitted from there.")
        columns: dict[str, Any] = {"drop": dropped, "features": wanted, "choices": choices}
        again: dict[str, Any] = {"quick": quick, "epochs": epochs, "scores": scores, "progress": listener}
        with prepared_folder(folder) as made:
            listener.note(f"That is in {made}, which {'stays' if folder else 'is removed'} afterwards.")
            prepare(file, made, label=label, environment=environment, **columns, say=listener.note)
            return fit_table(made, method=method, out=out, seed=seed, **again)
    with _folder_for(folder, listener), one_thread():
        for note in (*data.contents, *data.notes):
            listener.note(note)
        plan = _plan(data, listener) if scores else FoldPlan({}, ())
        earlier = Path(results) if results is not None else results_folder(table, quick)
        decided = {"drop": dropped, "features": wanted, "choices": choices, "reading": file.reading}
        known = _known_results(data, plan, chosen, seed, effort, earlier, decided)
        entries, calibration = _held_out(data, plan, chosen, seed, effort, known, listener)
        preprocessing, fitted = _fit(data, chosen, seed, effort)
    remarks = [*plan.remarks, effort.care]
    card = describe(data, fitted.classifier, chosen, entries, remarks, fitted.settings)
    card["new_environment"] = say_spread(calibration)
    return _saved(TableModel(fitted.classifier, data.schema, preprocessing, card, calibration), folder)


def _fit_prepared(
    prepared: PreparedTable, method: str, seed: int, effort: Effort, scores: bool, listener: Progress
) -> TableModel:
    """A model of all rows of a prepared table; settings and scores are from its sample."""
    for sentence in (*prepared.contents, *prepared.notes):
        listener.note(sentence)
    entries, remarks, settings = list[dict[str, Any]](), list[str](), dict[str, Any]()
    calibration = estimate_calibration(np.empty((0, len(prepared.classes))), np.empty(0, np.int64), np.empty(0))
    if scores or effort.searches:
        data, remark = read_sample(prepared)
        remarks.append(f"Settings and scores: {remark}")
        listener.note(remarks[0])
        plan = _plan(data, listener) if scores else FoldPlan({}, ())
        entries, calibration = _held_out(data, plan, method, seed, effort, {}, listener)
        remarks += plan.remarks
        if effort.searches:
            settings = dict(next(iter(_fit(data, method, seed, effort)[1].settings), {}))
            remarks.append(effort.care)
    remarks.append(how_it_was_fitted(settings))
    listener.note(remarks[-1])
    classifier = fit_stored_rows(prepared, method, seed, effort, settings, listener)
    card = describe(prepared, classifier, method, entries, remarks, [settings] if settings else [])
    card["new_environment"] = say_spread(calibration)
    return TableModel(classifier, prepared.schema, prepared.preprocessing, card, calibration)


def _saved(model: TableModel, folder: Path | None) -> TableModel:
    if folder is not None:
        model.save(folder)
    return model


def load_model(folder: str | Path) -> TableModel:
    """Read a model that `fit_table`, `eber fit` or its own `save` wrote.

    Parameters
    ----------
    folder : str or Path
    """
    return TableModel.load(folder)


@contextlib.contextmanager
def _folder_for(folder: Path | None, listener: Progress) -> Iterator[None]:
    """Have the folder ready before the fit, rather than find after it that it cannot be used.

    A fit that ends otherwise than well leaves no empty folder; one that Ctrl-C ended says what is there.
    """
    made = folder is not None and not folder.exists()
    if folder is not None:
        prepare_folder(folder)
    try:
        yield
    except BaseException as error:
        if folder is not None and made and not any(folder.iterdir()):
            folder.rmdir()
        if isinstance(error, KeyboardInterrupt):
            earlier = folder is not None and (folder / TABLE_FILE).exists()
            there = f"{folder} holds the model that it held before" if earlier else "nothing was written"
            listener.note(f"Stopped before the model was fitted; {there}.")
        raise


def _plan(data: TrainingTable, listener: Progress) -> FoldPlan:
    """What is held out for the scores; nothing, with a remark, where no environment can be."""
    try:
        return plan_folds(data.y, data.environments)
    except ValueError as error:
        listener.note(f"No leave-one-environment-out scores: {error}")
        return FoldPlan({}, (str(error),))


def check_savable(method: Method) -> None:
    """Refuse a method whose models have no form as plain data."""
    if not can_hold(method.build()):
        names = [known.name for known in BUILT_IN if known.is_installed and can_hold(known.build())]
        raise ValueError(
            f"{method.name} cannot be saved: a model folder holds {', '.join(names)}, or a class derived from the "
            "library's own kind."
        )


def _known_results(
    data: TrainingTable,
    plan: FoldPlan,
    method: str,
    seed: int,
    effort: Effort,
    folder: Path,
    decided: Mapping[str, Any],
) -> dict[str, CellResult]:
    """Fold to its result, where a comparison has made the very same fit, columns and reading decided alike."""
    if not plan.folds or not (folder / RUN_FILE).exists():
        return {}
    experiment, (name,) = comparison(
        plan.folds,
        plan.blocks,
        label=data.schema.label,
        environment=data.schema.environment,
        **decided,
        effort=effort,
        data=data.fingerprint,
    ).with_methods([method])
    ledger, known = Ledger(folder), {}
    for fold in plan.folds:
        with contextlib.suppress(DamagedCellError):
            cell = experiment.cell(fold, name, seed, {}, data.fingerprint)
            record = ledger.read(cell)
            if record is not None:
                known[fold] = CellResult(record.scores, record.seconds, ledger.read_arrays(cell))
    return known


def _held_out(
    data: TrainingTable,
    plan: FoldPlan,
    method: str,
    seed: int,
    effort: Effort,
    known: Mapping[str, CellResult],
    listener: Progress,
) -> tuple[list[dict[str, Any]], Calibration]:
    """Of each held-out fold its name, rows and metrics, and how environments differ; known ones are not done again."""
    entries = []
    K = len(data.classes)
    proba, label = np.full((len(data), K), np.nan), np.zeros(len(data), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about other training rows than the model's
        results = dict(results_by_fold(data, plan, method, seed, effort, known))
    for fold, result in results.items():
        held = np.isin(data.environments, plan.folds[fold])
        proba[held], label[held] = result.arrays["proba"], result.arrays["label"]
        measured = {name: result.scores[MAIN][name] for name in CARD_METRICS}
        entries.append({"held_out": fold, "rows": int(held.sum()), **_without_nan(measured)})
        listener.note(f"{method} without {fold}: {_shown(measured)} on it")
    # Spreads are the same for every class, so that it does not matter that classes are in the order of the table here.
    return entries, estimate_calibration(proba, label, data.environments)


def _fit(data: TrainingTable, method: str, seed: int, effort: Effort) -> tuple[Preprocessing, Fitted]:
    """The fit on all rows; each of its warnings is given once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        preprocessing = Preprocessing.fit(data.columns, data.schema)
        X = preprocessing.transform(data.columns)
        fitted = run_alone(fit_method(method, X, data.y, data.environments, seed, effort, data.weights))
    for warning in {str(warning.message): warning.message for warning in caught}.values():
        warnings.warn(warning, stacklevel=3)
    return preprocessing, fitted


def _without_nan(scores: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in scores.items()}


def _shown(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items() if not math.isnan(value))
