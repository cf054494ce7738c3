"""No speed is bought with accuracy: many environments by sampled couplings and by pseudo-environments."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from eber import EBERClassifier
from eber.datasets.parametric import ParametricParameters, draw
from eber.evaluation.metrics import score

WAYS: dict[str, dict[str, Any]] = {
    "exact": {"coupling": "exact"},
    "sampled couplings": {"coupling": "sampled"},
    "36 pseudo-environments": {"pseudo_environments": 36},
    "12 pseudo-environments": {"pseudo_environments": 12},
    "6 pseudo-environments": {"pseudo_environments": 6},
}


def accuracy(m: int, n: int, seeds: int = 3) -> dict[str, dict[str, float]]:
    """NLL and accuracy on 50 new environments of the parametric simulation, and processor seconds of a fit."""
    table = {}
    for name, parameters in WAYS.items():
        if name == "exact" and m > 144:
            continue  # m² densities for every row
        found = []
        for seed in range(seeds):
            data = draw(ParametricParameters(m_train=m, n=n), random_state=seed)
            clf = EBERClassifier(epochs=10, random_state=seed, **parameters)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(data.train.X, data.train.y, environments=data.train.environments)
            seconds = time.process_time() - start
            scores = score(data.test.y, clf.predict_proba(data.test.X), clf.classes_, ("nll", "accuracy"))
            found.append([scores["nll"], scores["accuracy"], seconds])
        means = np.mean(found, 0)
        table[name] = dict(zip(("NLL", "accuracy", "seconds"), map(float, means), strict=True))
    return table
