"""Whether an output folder is one of ours: whoever says ``--out .`` may keep a table there that is called cells.csv."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from eber.io.checksummed_json import is_of_format
from eber.runs.collect import CELLS_FILE, FINDINGS_FILE, TIMINGS_FILE, WARNINGS_FILE
from eber.runs.ledger import CELLS_FOLDER

RUN_FILE, RUN_FORMAT = "run.json", "eber-run"
FAILURES_FOLDER, FIGURES_FOLDER = "failures", "figures"
OUTPUTS = (
    *(CELLS_FOLDER, FAILURES_FOLDER, FIGURES_FOLDER, RUN_FILE),
    *(CELLS_FILE, TIMINGS_FILE, WARNINGS_FILE, FINDINGS_FILE),
    *("report.html", "table.md", "table.tex", "comparison.json", "table.parquet", "sample.parquet"),
)
"""What a run and its pages write into an output folder."""
_CELL = re.compile(r".*\.(json|npz|lock|tmp)")


def make_own(folder: Path) -> None:
    """Make an output folder, or refuse one in which the files of others have the names of ours.

    Raises
    ------
    ValueError
        Where a run would write over what no run has written.
    """
    if not is_own(folder):
        require_free(folder, OUTPUTS)
    (folder / CELLS_FOLDER).mkdir(parents=True, exist_ok=True)


def require_free(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder that no run has written into where it holds one of these names."""
    for name in names:
        if os.path.lexists(folder / name):
            raise ValueError(
                f"{folder / name} is there already, in a folder that no run has written into, and would be written "
                "over: give another folder."
            )


def is_own(folder: Path) -> bool:
    """Whether a run has written into a folder, or has begun to."""
    if is_of_format(folder / RUN_FILE, RUN_FORMAT):
        return True
    cells = folder / CELLS_FOLDER
    return cells.is_dir() and all(_CELL.fullmatch(path.name) for path in cells.iterdir())
