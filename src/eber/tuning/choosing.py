"""What becomes of candidates that were judged on left-out rows: some are kept, fitted on all rows and averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.estimators.base import EnvironmentClassifier
from eber.estimators.members import average_of
from eber.tuning.adaptation_record import record_adaptation
from eber.tuning.left_out import LeftOut, judged_units, kept_candidates, label_losses, losses


@dataclass(frozen=True)
class Choice:
    """The candidates that are kept, and what is known of them.

    Attributes
    ----------
    kept : (k,)
        Their positions among the candidates.
    left_out : LeftOut
    table : MultiEnvironmentData
        The rows that may have been left out, with the index of their class.
    y_index : (n,)
    units, names : lists
        What candidates were judged on, each counting once.
    """

    kept: NDArray[np.int64]
    left_out: LeftOut
    table: MultiEnvironmentData
    y_index: NDArray[np.int64]
    units: list[NDArray[np.int64]]
    names: list[str]

    @property
    def losses(self) -> NDArray[np.float64]:
        """Mean NLL of each candidate in each unit, (C, U)."""
        return losses(self.left_out.proba, self.y_index, self.units, self.table.weights)

    @property
    def left_out_proba(self) -> NDArray[np.float64]:
        """What the average of those that are kept said about each row while it was left out, (n, K)."""
        mean: NDArray[np.float64] = self.left_out.proba[self.kept].mean(0)
        return mean

    def without_diverged(self, errors: Sequence[Exception | None]) -> Choice:
        """Those whose fits on all rows are sound; raises the first error where none is."""
        sound = [i for i, error in enumerate(errors) if error is None]
        if not sound:
            raise next(error for error in errors if error is not None)
        return replace(self, kept=self.kept[sound])

    def answering(self, fits: Sequence[Any]) -> list[Any]:
        """The fits on all rows whose answers are averaged: of our own classes one, which knows what adapting did."""
        if not all(isinstance(fitted, EnvironmentClassifier) for fitted in fits):
            return list(fits)
        average: Any = average_of(fits)
        if self.left_out.adapted is not None:
            before, *after = (
                label_losses(p[self.kept].mean(0, keepdims=True), self.units, self.table.weights)[0]
                for p in (self._p_of_label, *self.left_out.adapted)
            )
            average.adaptation_record_ = record_adaptation(self.names, before, np.array(after))
        return [average]

    @property
    def _p_of_label(self) -> NDArray[np.float64]:
        p: NDArray[np.float64] = np.take_along_axis(self.left_out.proba, self.y_index[None, :, None], 2)[:, :, 0]
        return p


def choose(left_out: LeftOut, table: MultiEnvironmentData, rule: str, *, only_best: bool = False) -> Choice:
    """Keep what is best on left-out rows: the widest average within one standard error of the best, or the best alone.

    Parameters
    ----------
    left_out : LeftOut
    table : MultiEnvironmentData
        All rows.
    rule : str
        What was left out, as `eber.tuning.left_out.choose_folds` names it.
    """
    y_index = np.unique(table.y, return_inverse=True)[1]
    units, names = judged_units(left_out.folds, table.environments, rule)
    kept = kept_candidates(left_out.proba, y_index, units, table.weights)
    return Choice(kept[:1] if only_best else np.sort(kept), left_out, table, y_index, units, names)
