"""The hospitals of `eber example`, from Python: a method in a new hospital, and what it says of a patient.

Run it with: python examples/hospitals.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from eber.compare.methods import QUICK, fit_method
from eber.compare.running import evaluate_fold
from eber.datasets.hospitals import draw_hospitals
from eber.runs.joint_fits import run_alone
from eber.tables.preprocessing import Preprocessing
from eber.tables.training import read_training_table


def main(rows: int = 1200) -> None:
    """Compare two methods on one held-out hospital, then fit EBER on all and look at a few patients."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hospitals.csv"
        draw_hospitals(rows).to_csv(path, index=False)
        table = read_training_table(path, label="sepsis", environment="hospital")
    for note in table.notes:
        print(note)

    held = table.environments == "Dunmore"
    for method in ("EBER", "Logistic regression"):
        scores = run_alone(evaluate_fold(table, held, method, seed=0, effort=QUICK)).scores["main"]
        print(f"{method} in a hospital it has not seen: NLL {scores['nll']:.3f}, AUROC {scores['auroc']:.3f}")

    preprocessing = Preprocessing.fit(table.columns, table.schema)
    X = preprocessing.transform(table.columns)
    clf = run_alone(fit_method("EBER", X, table.y, table.environments, seed=0, effort=QUICK)).classifier
    print("Probability of sepsis:", np.round(clf.predict_proba(X[:5])[:, 1], 2))
    print("Hospital that each resembles most:", clf.environments_[clf.predict_environment_proba(X[:5]).argmax(1)])
    print(clf.explain_uncertainty(X[:5]).round(3))


if __name__ == "__main__":
    main()
