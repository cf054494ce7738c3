"""Write the saved models of format version 1 that every later version has to read, with what they predict.

Run once, when the format was fixed: ``python tests/data/make_models.py``. To run it again would let a later version
agree with itself; a new format gets a new folder beside this one.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eber import EBERClassifier, ERMClassifier, FishrClassifier, IRMClassifier, VRExClassifier
from eber.compare.fit_method import fit_method
from eber.compare.methods import Effort
from eber.datasets.hospitals import draw_hospitals
from eber.runs.joint_fits import run_alone
from eber.tables.model_card import describe
from eber.tables.model_folder import TableModel
from eber.tables.prediction import predict_file
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table

FOLDER = Path(__file__).parent / "models-v1"
SMALL: dict[str, Any] = {
    "hidden_dims": (5,),
    "representation_dim": 4,
    "epochs": 3,
    "learning_rate": 0.01,
    "random_state": 0,
}

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
e = np.array(["north", "south", "west"])[rng.integers(3, size=120)]
y = np.where(X[:, 0] + (e == "south") + 0.5 * rng.normal(size=120) > 0.5, "ill", "well")
three = np.digitize(X[:, 1], [-0.5, 0.5])
images = rng.random((60, 2, 8, 8))
digits = (images[:, 0].mean((1, 2)) > 0.5).astype(int)


def keep(name: str, model: Any, rows: np.ndarray) -> None:
    """Save a fitted classifier with some rows and its answers to them."""
    model.save(FOLDER / name)
    answers = {"X": rows[:20], "proba": model.predict_proba(rows[:20]), "transform": model.transform(rows[:20])}
    if isinstance(model, EBERClassifier):
        answers["environment_proba"] = model.predict_environment_proba(rows[:20])
    np.savez_compressed(FOLDER / f"{name}.npz", **answers)


def keep_classifiers() -> None:
    """One of each kind, each featurizer, and what prediction can do."""
    for method in (EBERClassifier, ERMClassifier, IRMClassifier, VRExClassifier, FishrClassifier):
        for featurizer in ("linear", "mlp"):
            model = method(featurizer=featurizer, **SMALL).fit(X, y, environments=e)
            keep(f"{method.__name__}-{featurizer}", model, X)
        model = method(featurizer="cnn", **SMALL).fit(images, digits, environments=e[:60])
        keep(f"{method.__name__}-cnn", model, images)
    eber = EBERClassifier(**SMALL).fit(X, y, environments=e)
    keep("EBERClassifier-adapted", eber.adapt(X[e == "south"]), X)
    model = EBERClassifier(latent_dim=3, decoder_hidden_dims=(4,), prediction_points=200, **SMALL)
    keep("EBERClassifier-three-classes", model.fit(X, three, environments=e), X)
    keep("EBERClassifier-quadrature", EBERClassifier(**SMALL).fit(X, three, environments=e), X)
    keep("EBERClassifier-shared", EBERClassifier(pseudo_environments=2, **SMALL).fit(X, y, environments=e), X)
    keep("EBERClassifier-paper-form", EBERClassifier.paper_form(**SMALL).fit(X, y, environments=e), X)


def keep_table_model() -> None:
    """What `eber fit` saves, a table, and what `eber predict` says about it."""
    table_file, new = FOLDER / "hospitals.csv", FOLDER / "new.csv"
    draw_hospitals(240).to_csv(table_file, index=False)
    draw_hospitals(80, random_state=9).drop(columns=["sepsis", "hospital"]).to_csv(new, index=False)
    table = read_training_table(table_file, label="sepsis", environment="hospital")
    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X_table = preprocessing.transform(table.columns)
    classifier = run_alone(fit_method("EBER", X_table, table.y, table.environments, 0, Effort(20, 0))).classifier
    scores = [{"held_out": "Ashford", "rows": 29, "nll": 0.5, "auroc": None}]
    card = describe(table, classifier, "EBER", scores, ["A remark."])
    TableModel(classifier, table.schema, preprocessing, card).save(FOLDER / "bundle")
    predict_file(TableModel.load(FOLDER / "bundle"), new, FOLDER / "bundle-predictions.parquet")
    predictions = pd.read_parquet(FOLDER / "bundle-predictions.parquet")
    predictions.to_csv(FOLDER / "bundle-predictions.csv", index=False)  # repr of floats: exact
    for path in (table_file, FOLDER / "bundle-predictions.parquet"):
        path.unlink()


if __name__ == "__main__":
    if FOLDER.exists():
        raise SystemExit(f"{FOLDER} is there and is not to be written again.")
    FOLDER.mkdir()
    warnings.simplefilter("ignore")  # three epochs are no good fit
    keep_classifiers()
    keep_table_model()
