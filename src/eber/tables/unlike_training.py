"""Columns of new rows that are unlike anything in training: values out of range, or far more of them missing.

An age in days, or a laboratory value that nobody measures in the new hospital, still gives a prediction; only a
comparison with what training has shown can tell. Counts go up batch by batch, so that a file of any size is compared.

Of n training rows and m new ones that are alike, the number of new values beyond the training range has a
beta-binomial distribution, whatever the values' own is, and so has the number of missing ones. What is remarked on is
more than that explains, in more than `MIN_SHARE` of the new rows. Values farther outside than the training range is
wide are remarked on without that question: it would take hundreds of training rows to doubt a single new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import betabinom

from eber.tables.preprocessing import ColumnEncoding, Preprocessing
from eber.tables.training import FeatureColumns

MIN_SHARE = 0.05
CHANCE = 0.01
"""Rows that are alike give a remark on a column no more often than this."""
MAX_JUDGED_ROWS = 2000
"""More rows are judged by their share in so many, which says hardly less and is quick to work out."""


@dataclass
class UnlikeTraining:
    """New rows beside the training rows.

    Parameters
    ----------
    preprocessing : Preprocessing
        What the training rows showed.
    rows : int
        New rows so far.
    outside, far, missing : dict
        Column to how many of them lie beyond the training range, how many so by more than its width, and how many have
        no value.
    """

    preprocessing: Preprocessing
    rows: int = 0
    outside: dict[str, int] = field(default_factory=dict)
    far: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def count(self, columns: FeatureColumns) -> None:
        """Take a batch of new rows into account."""
        self.rows += columns.n_rows
        for encoding in self.preprocessing.encodings:
            name, values = encoding.name, columns.values[encoding.name]
            missing = np.isnan(values).sum() if isinstance(values, np.ndarray) else values.null_count
            _add(self.missing, name, missing)
            if encoding.low is not None and encoding.high is not None:
                outside = values[(values < encoding.low) | (values > encoding.high)]
                with np.errstate(over="ignore"):
                    beyond = np.maximum(encoding.low - outside, outside - encoding.high)
                    far = beyond > encoding.high - encoding.low
                _add(self.outside, name, len(outside))
                _add(self.far, name, far.sum())

    def add(self, other: UnlikeTraining) -> None:
        """Take the rows into account that another has counted."""
        self.rows += other.rows
        for ours, theirs in (
            (self.outside, other.outside),
            (self.far, other.far),
            (self.missing, other.missing),
        ):
            for name, number in theirs.items():
                _add(ours, name, number)

    def sentences(self) -> list[str]:
        """What to look at before the predictions are believed; nothing for a model that kept no such figures."""
        lines = []
        for encoding in self.preprocessing.encodings:
            if not encoding.rows:
                continue
            outside, missing = self.outside.get(encoding.name, 0), self.missing.get(encoding.name, 0)
            if self._notably_outside(encoding, outside):
                lines.append(
                    f"Column {encoding.name!r}: {outside} of {self.rows} {'row' if self.rows == 1 else 'rows'} "
                    f"{'lies' if outside == 1 else 'lie'} beyond anything in training "
                    f"({encoding.low:g} to {encoding.high:g})."
                )
            if self._notably_missing(encoding, missing):
                lines.append(
                    f"Column {encoding.name!r}: {missing} of {self.rows} {'value' if self.rows == 1 else 'values'} "
                    f"{'is' if missing == 1 else 'are'} missing ({encoding.missing_share} in training)."
                )
        return lines

    def _notably_outside(self, encoding: ColumnEncoding, outside: int) -> bool:
        if self.far.get(encoding.name, 0) > MIN_SHARE * self.rows:
            return True
        known, found = encoding.rows - encoding.missing, self.rows - self.missing[encoding.name]
        if known < 2 or outside <= MIN_SHARE * self.rows:
            return False
        # Smallest and largest of n values leave a share of Beta(2, n - 1) outside.
        return _by_chance(outside, found, 2, known - 1) < CHANCE

    def _notably_missing(self, encoding: ColumnEncoding, missing: int) -> bool:
        share, before = missing / self.rows, encoding.missing / encoding.rows
        if share <= MIN_SHARE or not (share > 2 * before or 1 - share < (1 - before) / 2):
            return False
        known = encoding.rows - encoding.missing
        return _by_chance(missing, self.rows, encoding.missing + 1, known + 1) < CHANCE


def _add(totals: dict[str, int], name: str, number: int) -> None:
    totals[name] = totals.get(name, 0) + int(number)


def _by_chance(number: int, rows: int, a: int, b: int) -> float:
    """How probable so many of the rows, or more, are when their share is drawn from Beta(a, b)."""
    if rows > MAX_JUDGED_ROWS:
        number, rows = number * MAX_JUDGED_ROWS // rows, MAX_JUDGED_ROWS
    return float(betabinom.sf(number - 1, rows, a, b))
