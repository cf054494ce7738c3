"""Experiments declared as data, and the machinery that runs them, keeps what was finished and sums it up."""

from eber.experiments.cell import MAIN, Cell, CellResult
from eber.experiments.spec import Experiment, PaperTable

__all__ = ["MAIN", "Cell", "CellResult", "Experiment", "PaperTable"]
