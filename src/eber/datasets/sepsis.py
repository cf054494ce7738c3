"""Sepsis later in an ICU stay, from its first 24 hours: PhysioNet/CinC Challenge 2019.

One row for each stay. Stays whose sepsis label is set within the first 24 hourly records are left out; the label y says
whether it is set later. For each of the 34 time-varying measurements there are its last observed value, mean, minimum,
maximum and the fraction of hours without it; age, gender and the time between hospital and ICU admission follow
(Appendix "Sepsis prediction"). Environments are the six combinations of data source (A, B) and recorded ICU unit
(unit1, unit2, unknown).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from eber.datasets.base import MultiEnvironmentData
from eber.datasets.checks import check_both_classes, dataset_folder
from eber.datasets.sepsis_records import LABORATORY, VITAL_SIGNS, HourlyWindow, read_parquet, read_psv

MEASUREMENTS = (*VITAL_SIGNS, *LABORATORY)
SUMMARIES = ("last", "mean", "min", "max", "missing")
DEMOGRAPHICS = ("Age", "Gender", "HospAdmTime")
FEATURES = (*(f"{name}_{summary}" for name in MEASUREMENTS for summary in SUMMARIES), *DEMOGRAPHICS)


def load_sepsis(
    path: str | Path,
    *,
    hours: int = 24,
    max_per_source: int | None = None,
    only_longer_stays: bool = False,
    require_both_classes: bool = True,
) -> MultiEnvironmentData:
    """Read the stays and summarise their first hours.

    Parameters
    ----------
    path : path
        A parquet file with all hourly rows; a .zip or .tar.gz of .psv files; or a folder that has a parquet file, such
        archives, or .psv files at any depth (``training_setA/``, ``training_setB/``).
    hours : int
        Hourly records taken from the beginning of each stay. The first record need not be the first hour in the ICU.
    max_per_source : int, optional
        Take only so many stays from each source, those with the lowest patient numbers, before any are excluded. The
        paper used up to 15,000 files of each; by default all are read.
    only_longer_stays : bool
        Leave out stays that end within the window, in which nothing can happen later.
    require_both_classes : bool
        Raise if an environment has no later sepsis or nothing else, as may happen in a small sample.

    Returns
    -------
    MultiEnvironmentData
        X of shape (n, 173), float64; NaN where a measurement was never taken. `identifiers` are patient numbers.
    """
    if hours < 1:
        raise ValueError(f"hours must be at least 1, not {hours}.")
    window = _read(Path(path), hours)
    _check_values(window)
    kept = ~window.septic_within
    if max_per_source is not None:
        kept &= _rank_within_source(window) < max_per_source
    if only_longer_stays:
        kept &= window.goes_on
    if not kept.any():
        ends = " or ends with them" if only_longer_stays else ""
        raise ValueError(f"{window.path}: every stay has sepsis within its first {hours} hours{ends}.")
    starts = window.starts
    columns = [summary for name in MEASUREMENTS for summary in _summarise(window.column(name), starts, window.lengths)]
    columns += [window.column(name)[starts] for name in DEMOGRAPHICS]
    data = MultiEnvironmentData(
        X=np.stack([column[kept] for column in columns], axis=1),
        y=window.septic_later[kept].astype(np.int64),
        environments=_environments(window)[kept],
        feature_names=FEATURES,
        identifiers=window.patients[kept],
        name="sepsis",
    )
    if require_both_classes:
        check_both_classes(data, window.path)
    return data


def sepsis_preprocessing(max_missing: float = 0.05) -> Pipeline:
    """Feature filter, median imputation and standardisation, to be fitted on the training environments only.

    Parameters
    ----------
    max_missing : float
        Features missing in a larger share of the training rows are dropped.
    """
    return make_pipeline(MissingnessFilter(max_missing), SimpleImputer(strategy="median"), StandardScaler())


class MissingnessFilter(SelectorMixin, BaseEstimator):
    """Keep the features that are missing in at most a given share of the rows seen in `fit`.

    Parameters
    ----------
    max_missing : float
    """

    def __init__(self, max_missing: float = 0.05) -> None:
        self.max_missing = max_missing

    def fit(self, X: Any, y: Any = None) -> MissingnessFilter:
        """Count the missing values."""
        X = validate_data(self, X, ensure_all_finite="allow-nan")
        self.missing_share_ = np.isnan(X).mean(axis=0)
        if not np.any(self.missing_share_ <= self.max_missing):
            raise ValueError(
                f"every feature is missing in more than {self.max_missing:.0%} of the rows "
                f"(the best in {self.missing_share_.min():.0%}). Raise max_missing."
            )
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(self.missing_share_ <= self.max_missing)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _read(path: Path, hours: int) -> HourlyWindow:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist. Download the records with: eber data fetch sepsis")
    if path.suffix == ".parquet":
        return read_parquet(path, hours)
    if path.is_file():
        return read_psv([path], hours)
    folder = dataset_folder(path, "sepsis")
    tables = sorted(folder.glob("*.parquet"))
    if len(tables) > 1:
        raise ValueError(f"{folder} has several parquet files ({tables[0].name}, {tables[1].name}): name one of them.")
    if tables:
        return read_parquet(tables[0], hours)
    archives = sorted(folder.glob("*.zip"))
    unpacked = next(folder.rglob("*.psv"), None) is not None
    return read_psv(archives if archives and not unpacked else [folder], hours)


def _summarise(
    values: NDArray[np.float64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    """`SUMMARIES` of each stay, each of shape (stays,); NaN where nothing was observed."""
    observed = ~np.isnan(values)
    count = np.add.reduceat(observed, starts, dtype=np.int64)
    total = np.add.reduceat(np.where(observed, values, 0.0), starts)
    last = np.maximum.reduceat(np.where(observed, np.arange(len(values)), -1), starts)
    seen = count > 0
    nothing = np.full(len(starts), np.nan)
    return (
        np.where(seen, values[last], np.nan),
        np.divide(total, count, out=nothing, where=seen),
        np.fmin.reduceat(values, starts),
        np.fmax.reduceat(values, starts),
        1 - count / lengths,
    )


def _environments(window: HourlyWindow) -> NDArray[np.str_]:
    unit1, unit2 = (window.column(name)[window.starts] == 1 for name in ("Unit1", "Unit2"))
    units = np.select([unit1, unit2], ["unit1", "unit2"], default="unknown")
    return np.char.add(np.char.add(window.sources, "_"), units)


def _rank_within_source(window: HourlyWindow) -> NDArray[np.int64]:
    """How many stays of the same source have a lower patient number, shape (stays,)."""
    rank = np.empty(len(window.patients), dtype=np.int64)
    for source in np.unique(window.sources):
        rows = np.flatnonzero(window.sources == source)
        rank[rows[np.argsort(window.patients[rows], kind="stable")]] = np.arange(len(rows))
    return rank


_ALLOWED = {
    **dict.fromkeys(("Gender", "Unit1", "Unit2"), (0, 1)),
    "Age": (0, 130),
    **dict.fromkeys(VITAL_SIGNS, (0, 1000)),
    **dict.fromkeys(LABORATORY, (-500, 100_000)),
}
"""What no record can lie beyond. Measurements are taken as they are, even an FiO2 of 4000, but for numbers that stand
for something else, such as -9999."""


def _check_values(window: HourlyWindow) -> None:
    """Raise on values that no record can have."""
    stay = np.repeat(np.arange(len(window.patients)), window.lengths)

    def place(row: int) -> str:
        record = row - int(window.starts[stay[row]]) + 1
        return f"{window.path}, patient {str(window.patients[stay[row]])!r}, record {record}"

    for column, (low, high) in _ALLOWED.items():
        values = window.column(column)
        wrong = np.flatnonzero((values < low) | (values > high))
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(f"{place(row)}, column {column!r}: {values[row]:g} is not between {low} and {high}.")
    unknown = np.flatnonzero(~np.isin(window.sources, ["A", "B"]))
    if len(unknown):
        patient, source = str(window.patients[unknown[0]]), str(window.sources[unknown[0]])
        raise ValueError(f"{window.path}, patient {patient!r}, column 'source': {source!r} is neither 'A' nor 'B'.")
    both = np.flatnonzero((window.column("Unit1") == 1) & (window.column("Unit2") == 1))
    if len(both):
        raise ValueError(f"{place(int(both[0]))} is in Unit1 and Unit2 at once.")
