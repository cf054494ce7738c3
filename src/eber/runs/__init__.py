"""Running experiments that are declared as data: cells, workers, the ledger of what is finished, and summaries."""

from eber.runs.cell import MAIN, Cell, CellResult
from eber.runs.spec import Experiment, PaperTable

__all__ = ["MAIN", "Cell", "CellResult", "Experiment", "PaperTable"]
