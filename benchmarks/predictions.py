"""Cost and error of prediction, against the literal 1000-sample Monte Carlo and a 200-node reference."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from benchmarks.contestants import COLUMNS
from benchmarks.literal import LiteralEBER
from benchmarks.measure import Step, least_seconds
from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw

ROWS = 25_000
LITERAL_ROWS = 500  # of them for the literal algorithm, whose cost is proportional to the number of rows
RULES: dict[str, dict[str, object]] = {
    "closed form": {"prediction": "auto", "prediction_points": None},
    "quadrature, 32 nodes": {"prediction": "quadrature", "prediction_points": 32},
}


def prediction(m: int) -> dict[str, float]:
    """Rows a second, times faster than literal, and largest error, of each rule."""
    data = draw(ParametricParameters(m_train=m, n=500), random_state=0)
    X = data.test.X[:ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small environments and a short fit; only its cost matters here
        clf = EBERClassifier(epochs=3, random_state=0)
        clf.fit(data.train.X, data.train.y, environments=data.train.environments)
    few = X[:2000]
    exact = clf.set_params(prediction="quadrature", prediction_points=200).predict_proba(few)
    errors, contestants = {}, dict[str, Step]()
    for name, parameters in RULES.items():

        def predict(rows: np.ndarray = X, parameters: dict[str, object] = parameters) -> np.ndarray:
            return clf.set_params(**parameters).predict_proba(rows)

        errors[name], contestants[name] = float(np.abs(predict(few) - exact).max()), predict
    seconds = least_seconds(contestants, blocks=5)
    net, rows = LiteralEBER(COLUMNS, m), torch.from_numpy(X[:LITERAL_ROWS]).float()
    literal = least_seconds({"literal": lambda: net.predict_proba(rows)}, blocks=2)["literal"] * ROWS / LITERAL_ROWS
    figures = {}
    for name, error in errors.items():
        figures[f"{name}: times faster than literal"] = literal / seconds[name]
        figures[f"{name}: rows a second"] = ROWS / seconds[name]
        figures[f"{name}: largest error"] = error
    return figures
