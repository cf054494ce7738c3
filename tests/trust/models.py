"""Small models and tables for the tests of faults and of hostile input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.compare.fit_method import fit_method
from eber.compare.methods import Effort
from eber.datasets.hospitals import draw_hospitals
from eber.datasets.parametric import ParametricParameters, draw
from eber.runs.joint_fits import run_alone
from eber.tables.model_card import describe
from eber.tables.model_folder import TableModel
from eber.tables.prediction import predict_file
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table

NAMES = ["--label", "sepsis", "--environment", "hospital"]
rows = draw(ParametricParameters(n=25, m_validation=1, m_test=1, d=4), random_state=0).train


def hospitals(folder: Path, rows: int = 240) -> Path:
    """A table to learn from."""
    path = folder / "hospitals.csv"
    draw_hospitals(rows).to_csv(path, index=False)
    return path


def new_patients(folder: Path) -> Path:
    """New patients, without label and hospital."""
    path = folder / "new.csv"
    draw_hospitals(80, random_state=9).drop(columns=["sepsis", "hospital"]).to_csv(path, index=False)
    return path


def fitted_model(folder: Path, method: str = "EBER", seed: int = 0) -> TableModel:
    """A model of the example's table, after a moment of training."""
    table = read_training_table(hospitals(folder), label="sepsis", environment="hospital")
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X = preprocessing.transform(table.columns)
    classifier = run_alone(fit_method(method, X, table.y, table.environments, seed, Effort(5, 0))).classifier
    return TableModel(classifier, table.schema, preprocessing, describe(table, classifier, method, [], []))


def predictions(model: Path, scratch: Path) -> NDArray[np.float64]:
    """What a saved model says about the new patients."""
    out = scratch / "said.parquet"
    predict_file(TableModel.load(model), new_patients(scratch), out)
    return pd.read_parquet(out)[["p(0)", "p(1)"]].to_numpy()
