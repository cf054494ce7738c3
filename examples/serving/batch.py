"""A job for every night: each new table of a folder is predicted once; one that is refused is named, the rest goes on.

Run it with: python batch.py model incoming predictions
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import eber
from eber.exceptions import AdaptationWarning

TABLES = (".csv", ".parquet")


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict what has no predictions yet; a line of JSON for each table, and 1 where one was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "incoming", "predictions"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--adapt", action="store_true", help="one table is one new environment")
    given = parser.parse_args(arguments)
    model = eber.load_model(given.model)
    given.predictions.mkdir(exist_ok=True)
    refused = False
    for table in sorted(path for path in given.incoming.iterdir() if path.suffix in TABLES):
        out = given.predictions / f"{table.name}.parquet"
        if out.exists():  # files of predictions are whole or not there
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AdaptationWarning)  # the remarks say the same
                done = model.predict_table(table, out, adapt=given.adapt)
        except ValueError as error:
            refused = True
            print(json.dumps({"table": table.name, "refused": str(error)}))
        else:
            print(json.dumps({"table": table.name, "rows": len(done), "remarks": done.remarks}))
    return int(refused)


if __name__ == "__main__":
    sys.exit(main())
