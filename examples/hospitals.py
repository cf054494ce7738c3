"""The hospitals of `eber example`, from Python: which method, a model, and what it says of new patients.

Run it with: python examples/hospitals.py
"""

from __future__ import annotations

import tempfile

import eber
from eber.datasets.hospitals import draw_hospitals


def main(rows: int = 1200) -> None:
    """Compare two methods, each hospital held out in turn; then fit EBER on all and look at a few patients."""
    table = draw_hospitals(rows)  # a DataFrame; a path to CSV or Parquet does as well
    columns = {"label": "sepsis", "environment": "hospital"}

    with tempfile.TemporaryDirectory() as folder:
        print(eber.compare_table(table, **columns, methods=["EBER", "Logistic regression"], quick=True, out=folder))
        eber.fit_table(table, **columns, quick=True, scores=False, out=f"{folder}/model")
        model = eber.load_model(f"{folder}/model")

    new = draw_hospitals(80, random_state=9).drop(columns=["sepsis", "hospital"])
    predictions = model.predict_table(new)
    print(predictions)
    uncertainty = ["uncertainty_total", "uncertainty_within_environments", "uncertainty_between_environments"]
    print(predictions.frame[uncertainty].head().round(3))


if __name__ == "__main__":
    main()
