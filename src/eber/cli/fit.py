"""`eber fit`: learn from a table and save the model with all that is needed to use it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from eber.cli.options import (
    Drop,
    EnvironmentColumn,
    Features,
    Label,
    Quick,
    Selection,
    Table,
    columns_named,
    count,
    effort_of,
    say_notes,
)
from eber.io.text import printable

CARD_METRICS = ("nll", "accuracy", "ece", "auroc")


def fit(
    table: Table,
    label: Label,
    environment: EnvironmentColumn,
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    method: Annotated[str, typer.Option(help="EBER, ERM, IRM, V-REx or Fishr.")] = "EBER",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the fit.")] = 0,
    drop: Drop = None,
    features: Features = None,
    quick: Quick = False,
    selection: Selection = None,
    scores: Annotated[bool, typer.Option(help="Measure leave-one-environment-out scores for the model card.")] = True,
) -> None:
    """Fit a model on a table and save it: classifier, preprocessing, columns and a model card."""
    import numpy as np
    import torch

    from eber.compare.folds import FoldPlan, plan_folds
    from eber.compare.methods import fit_method
    from eber.compare.running import evaluate_fold
    from eber.runs.cell import MAIN
    from eber.runs.fitting import CLASSIFIERS
    from eber.runs.joint_fits import run_alone
    from eber.runs.spec import choose
    from eber.tables.files import open_table
    from eber.tables.model_folder import Bundle, describe, prepare_folder
    from eber.tables.preprocessing import Preprocessing
    from eber.tables.training import read_training_table

    torch.set_num_threads(1)
    effort = effort_of(quick, selection)
    (chosen,) = choose([method], tuple(CLASSIFIERS), "method")
    names = open_table(table).names
    data = read_training_table(
        table,
        label=label,
        environment=environment,
        drop=columns_named(drop, names),
        features=columns_named(features, names) if features else None,
    )
    prepare_folder(out)  # rather now than after the fit
    say_notes([*data.contents, *data.notes])
    plan = FoldPlan({}, ())
    entries: list[dict[str, Any]] = []
    if scores:
        try:
            plan = plan_folds(data.y, data.environments)
        except ValueError as error:
            plan = FoldPlan({}, (str(error),))
            typer.echo(printable(f"No leave-one-environment-out scores: {error}"), err=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for fold, members in plan.folds.items():
            held = np.isin(data.environments, members)
            result = run_alone(evaluate_fold(data, held, chosen, seed, effort))
            measured = {name: result.scores[MAIN][name] for name in CARD_METRICS}
            entries.append({"held_out": fold, "rows": int(held.sum()), **_without_nan(measured)})
            typer.echo(printable(f"{chosen} without {fold}: {_shown(measured)} on it"), err=True)
        caught.clear()  # warnings of these fits are about other training rows than the model's
        preprocessing = Preprocessing.fit(data.columns, data.schema)
        X = preprocessing.transform(data.columns)
        fitted = run_alone(fit_method(chosen, X, data.y, data.environments, seed, effort))
        messages = list(dict.fromkeys(str(warning.message) for warning in caught))
    for message in messages:
        typer.secho(printable(f"Warning: {message}"), fg=typer.colors.YELLOW, err=True)
    remarks = [*plan.remarks, *([effort.choice_of_weights] if fitted.penalty_weight is not None else [])]
    card = describe(data, fitted.classifier, chosen, entries, remarks)
    Bundle(fitted.classifier, data.schema, preprocessing, card).save(out)
    typer.echo(
        f"{out}: {chosen} fitted on {len(data)} rows, {count(len(data.schema.features), 'feature')}, "
        f"{count(len(np.unique(data.environments)), 'environment')}. Its model card is {out / 'card.md'}."
    )


def _without_nan(scores: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in scores.items()}


def _shown(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items() if not math.isnan(value))
