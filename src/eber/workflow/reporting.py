"""`read_results`: the page of an output folder, written again."""

from __future__ import annotations

from pathlib import Path

from eber.compare.record import RECORD_FILE, ComparisonRecord
from eber.compare.running import NAME
from eber.experiments.registry import find_experiment
from eber.runs.runner import read_run
from eber.workflow.comparing import reported_comparison
from eber.workflow.reproducing import reported_reproduction
from eber.workflow.reproduction import Reproduction
from eber.workflow.table_comparison import TableComparison


def read_results(folder: str | Path) -> TableComparison | Reproduction:
    """What an output folder holds; its page, report.html, is written again.

    Parameters
    ----------
    folder : str or Path
        Output folder of `compare_table`, `reproduce` or their commands.
    """
    folder = Path(folder)
    name = read_run(folder)["experiment"]
    if name == NAME and (folder / RECORD_FILE).exists():
        return reported_comparison(folder, ComparisonRecord.load(folder))
    return reported_reproduction(find_experiment(name), folder)
