"""What the finished fits of a comparison kept of the held-out rows, read once for all charts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.compare.summary import ComparisonSummary
from eber.runs.results import Results

EBER = "EBER"


@dataclass(frozen=True)
class HeldOut:
    """Predictions on held-out rows, by method, fold and seed.

    Parameters
    ----------
    results : Results
    summary : ComparisonSummary
    """

    results: Results
    summary: ComparisonSummary

    def predictions(self, method: str, fold: str) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each seed, the column of each row's class (n,) and the probabilities (n, K).

        Rows that have weights are there as often as they weigh: n of them at even steps of the summed weight.
        """
        found = []
        for seed in self.results.seeds(method, fold):
            arrays = self.results.arrays(method, seed, fold)
            proba = arrays["proba"].astype(np.float64)
            # Kept in single precision, in which they sum to one only nearly.
            label, proba = arrays["label"], proba / proba.sum(axis=1, keepdims=True)
            if "row_weights" in arrays:
                reached = np.cumsum(arrays["row_weights"], dtype=np.float64)
                steps = (np.arange(len(label)) + 0.5) / len(label) * reached[-1]
                rows = np.minimum(np.searchsorted(reached, steps), len(label) - 1)
                label, proba = label[rows], proba[rows]
            found.append((label, proba))
        return found

    def pooled(self, method: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows of all folds and seeds together."""
        parts = [part for fold in self.summary.folds for part in self.predictions(method, fold)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def importance(self, method: str) -> dict[str, list[dict[str, NDArray[Any]]]]:
        """Fold to what each seed kept of the columns' importance; empty where a folder was filled before it was."""
        found = {
            fold: [self.results.arrays(method, seed, fold) for seed in self.results.seeds(method, fold)]
            for fold in self.summary.folds
        }
        return {fold: kept for fold, kept in found.items() if kept and all("importance" in arrays for arrays in kept)}

    @cached_property
    def eber(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Fold to what EBER's first finished seed kept of it; empty where EBER was not among the methods."""
        found = {}
        for fold in self.summary.folds:
            if seeds := self.results.seeds(EBER, fold):
                found[fold] = self.results.arrays(EBER, seeds[0], fold)
        return found
