"""`fit_table` and `load_model`: a model with all that is needed to use it on other tables."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eber.compare.folds import FoldPlan, plan_folds
from eber.compare.methods import Effort, fit_method
from eber.compare.running import evaluate_fold
from eber.methods import find_method, network_methods
from eber.runs.cell import MAIN
from eber.runs.fitting import FittedMethod
from eber.runs.joint_fits import run_alone
from eber.runs.progress import Progress
from eber.tables.files import open_table
from eber.tables.model_card import describe
from eber.tables.model_folder import TableModel, prepare_folder
from eber.tables.preprocessing import Preprocessing
from eber.tables.reading import Reading
from eber.tables.training import TrainingTable, fingerprint, read_training_table
from eber.training import one_thread
from eber.workflow.arguments import as_progress, choices_of, effort_of, names_of, whole_number

CARD_METRICS = ("nll", "accuracy", "ece", "auroc")


def fit_table(
    table: Any,
    *,
    label: str,
    environment: str,
    method: str = "EBER",
    out: str | Path | None = None,
    seed: int = 0,
    drop: str | Iterable[str] = (),
    features: str | Iterable[str] | None = None,
    categorical: str | Iterable[str] = (),
    numeric: str | Iterable[str] = (),
    missing: str | Iterable[str] = (),
    positive: str | None = None,
    sheet: str | None = None,
    query: str | None = None,
    encoding: str | None = None,
    quick: bool = False,
    selection: str | None = None,
    scores: bool = True,
    progress: bool | Progress = False,
) -> TableModel:
    """Fit a model on a table: classifier, preprocessing, columns and a model card.

    Parameters
    ----------
    table : str, Path or DataFrame
        A file or folder of a format in docs/tables.md, "-" for standard input, or a DataFrame of pandas, polars or
        pyarrow. An index of pandas is not used.
    label, environment : str
        The column to be predicted, and the one that says where each row comes from.
    method : str
        EBER, ERM, IRM, V-REx or Fishr, or "module:Class" for one of one's own.
    out : str or Path, optional
        Folder for the model; otherwise it is not saved before its `save` is called.
    seed : int
        Seed of the fit.
    drop, features : str or iterable of str
        Columns not to be used; or exactly those to be used.
    categorical, numeric, missing, positive
        What to know about columns and classes; see `compare_table`.
    sheet, query, encoding : str, optional
        How a file is read; see `compare_table`.
    quick : bool
        Shorter training, no search of weights: a first look.
    selection : str, optional
        How a penalty weight is chosen within the training environments; see `compare_table`.
    scores : bool
        Measure leave-one-environment-out scores for the model card.
    progress : bool or Progress
        Whether to say on standard error what is decided and measured. It is kept in the model's card in any case.

    Returns
    -------
    TableModel
        With `predict_table` and `save`; `load_model` gives it again.
    """
    effort = effort_of(quick, selection)
    declared = find_method(method)
    chosen = declared.name
    if not declared.is_network:
        raise ValueError(
            f"{chosen} cannot be saved: a model folder holds {', '.join(network_methods())}, or a class derived from "
            "them."
        )
    whole_number(seed, "seed", 0)
    choices = choices_of(categorical, numeric, missing, positive)
    file = open_table(table, Reading(sheet, query, encoding))
    dropped, wanted = names_of(drop, "drop"), None if features is None else names_of(features, "features")
    data = read_training_table(
        file, label=label, environment=environment, drop=dropped, features=wanted, choices=choices
    )
    folder = None if out is None else Path(out)
    if folder is not None:
        prepare_folder(folder)  # rather now than after the fit
    listener = as_progress(progress)
    for note in (*data.contents, *data.notes):
        listener.note(note)
    plan = _plan(data, listener) if scores else FoldPlan({}, ())
    with one_thread():
        entries = _held_out_scores(data, plan, chosen, seed, effort, listener)
        preprocessing, fitted = _fit(data, chosen, seed, effort)
    remarks = [*plan.remarks, *filter(None, [effort.choice_of_weights([declared])])]
    card = describe(data, fitted.classifier, chosen, fingerprint(file), entries, remarks)
    model = TableModel(fitted.classifier, data.schema, preprocessing, card)
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


def _plan(data: TrainingTable, listener: Progress) -> FoldPlan:
    """What is held out for the scores; nothing, with a remark, where no environment can be."""
    try:
        return plan_folds(data.y, data.environments)
    except ValueError as error:
        listener.note(f"No leave-one-environment-out scores: {error}")
        return FoldPlan({}, (str(error),))


def _held_out_scores(
    data: TrainingTable, plan: FoldPlan, method: str, seed: int, effort: Effort, listener: Progress
) -> list[dict[str, Any]]:
    """Of each held-out fold: its name, its rows, and its metrics."""
    entries = []
    for fold, members in plan.folds.items():
        held = np.isin(data.environments, members)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about other training rows than the model's
            result = run_alone(evaluate_fold(data, held, method, seed, effort))
        measured = {name: result.scores[MAIN][name] for name in CARD_METRICS}
        entries.append({"held_out": fold, "rows": int(held.sum()), **_without_nan(measured)})
        listener.note(f"{method} without {fold}: {_shown(measured)} on it")
    return entries


def _fit(data: TrainingTable, method: str, seed: int, effort: Effort) -> tuple[Preprocessing, FittedMethod]:
    """The fit on all rows; each of its warnings is given once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        preprocessing = Preprocessing.fit(data.columns, data.schema)
        X = preprocessing.transform(data.columns)
        fitted = run_alone(fit_method(method, X, data.y, data.environments, seed, effort))
    for warning in {str(warning.message): warning.message for warning in caught}.values():
        warnings.warn(warning, stacklevel=3)
    return preprocessing, fitted


def _without_nan(scores: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in scores.items()}


def _shown(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items() if not math.isnan(value))
