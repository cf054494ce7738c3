"""Quasars and stars of the Sloan Digital Sky Survey; the environment is a region of the sky.

Kept are objects with spectroscopic class QSO (y = 1) or STAR (y = 0) and 14 <= r <= 22, and, where the file says so,
with zWarning = 0, clean = 1 and mode = 1 (Appendix "Quasar-Star Classification"). Features are the adjacent colours
u-g, g-r, r-i, i-z and the magnitude r, as measured: standardising them belongs to the fit on training environments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.datasets.archive import read_bounded_csv
from eber.datasets.base import MultiEnvironmentData
from eber.datasets.checks import (
    check_both_classes,
    check_columns,
    check_range,
    check_unique,
    dataset_folder,
    first_present,
    numeric_column,
    optional_module,
)
from eber.io.text import shortened

Binning = Literal["latitude", "longitude"]

FEATURES = ("u-g", "g-r", "r-i", "i-z", "r")
FILE_NAMES = ("skyserver.csv", "skyserver.csv.gz", "sdss17.csv.gz", "sdss17.csv")
LATITUDE_BINS = tuple(f"b_q{k}" for k in range(1, 6))
LONGITUDE_BINS = tuple(f"l_{low:03d}_{low + 72:03d}" for low in range(0, 360, 72))
_BANDS = ("u", "g", "r", "i", "z")
# What a good spectrum, good photometry and a primary detection have in these columns.
_QUALITY = {"zwarning": 0, "clean": 1, "mode": 1}
# SDSS writes -9999 (and, in some tables, +-10000) where a magnitude could not be measured.
_SENTINEL = 9999
# 100,000 objects have 11 MB.
_MAX_BYTES = 2**30


def load_quasar(path: str | Path, *, binning: Binning = "latitude") -> MultiEnvironmentData:
    """Read a table of SDSS objects.

    Parameters
    ----------
    path : path
        A csv file, gzipped or not: an export of SkyServer (a first line ``#Table1`` is skipped, column names may be in
        any case) with at least ``class, ra, dec, u, g, r, i, z``. Or a folder that has one, under one of `FILE_NAMES`.
    binning : {"latitude", "longitude"}
        Environments: quintiles of the absolute Galactic latitude |b|, named ``b_q1`` (nearest the Galactic plane) to
        ``b_q5``, or Galactic longitude in steps of 72 degrees, named ``l_000_072`` to ``l_288_360``.

    Returns
    -------
    MultiEnvironmentData
        X of shape (n, 5). `extra` holds ``ra``, ``dec``, ``l``, ``b`` in degrees. `identifiers` are the ``objid`` where
        the file has them.
    """
    if binning not in ("latitude", "longitude"):
        raise ValueError(f"binning is 'latitude' or 'longitude', not {binning!r}.")
    path = Path(path)
    if path.is_dir():
        path = first_present(dataset_folder(path, "sdss"), FILE_NAMES, "quasar")
    first_line, table = _read_table(path)
    lines = np.arange(len(table)) + first_line
    table, lines = _select(table, lines, path)
    if table.empty:
        raise ValueError(f"{path} has no QSO or STAR with 14 <= r <= 22 that passes the quality flags.")
    for column, low, high in [("ra", 0, 360), ("dec", -90, 90), *((band, 0, 50) for band in _BANDS)]:
        check_range(table[column].to_numpy(), low, high, path, column, lines)
    ra, dec = table["ra"].to_numpy(), table["dec"].to_numpy()
    longitude, latitude = _galactic(ra, dec)
    u, g, r, i, z = (table[band].to_numpy() for band in _BANDS)
    data = MultiEnvironmentData(
        X=np.column_stack([u - g, g - r, r - i, i - z, r]),
        y=(table["class"] == "QSO").to_numpy().astype(np.int64),
        environments=_latitude_bins(latitude) if binning == "latitude" else _longitude_bins(longitude),
        feature_names=FEATURES,
        identifiers=table["objid"].to_numpy() if "objid" in table else None,
        name="quasar-star",
        extra={"ra": ra, "dec": dec, "l": longitude, "b": latitude},
    )
    check_both_classes(data, path)
    return data


def most_shifted_environment(data: MultiEnvironmentData) -> Any:
    """The environment whose share of positive labels is farthest from that of all other rows together."""

    def shift(name: Any) -> float:
        inside = data.environments == name
        return float(abs(data.y[inside].mean() - data.y[~inside].mean()))

    names = data.environment_names
    if len(names) < 2:
        raise ValueError(f"{data.name} has one environment, {str(names[0])!r}: there is nothing to compare it with.")
    return max(names, key=shift)


def _read_table(path: Path) -> tuple[int, pd.DataFrame]:
    """The line of the file that holds the first row, and the table with lower-case column names."""
    skip = 0
    # The header is read apart, since pandas would rename a repeated column and so hide it.
    header = read_bounded_csv(path, _MAX_BYTES, header=None, nrows=1)
    if str(header.iloc[0, 0]).startswith("#"):
        skip = 1
        header = read_bounded_csv(path, _MAX_BYTES, header=None, nrows=1, skiprows=skip)
    names = [str(name).strip().lower() for name in header.iloc[0]]
    check_columns(names, ("class", "ra", "dec", *_BANDS), path)
    table = read_bounded_csv(path, _MAX_BYTES, skiprows=skip, low_memory=False)
    table.columns = pd.Index(names)
    first_line = skip + 2
    for column in ("ra", "dec", *_BANDS, *(name for name in _QUALITY if name in names)):
        table[column] = numeric_column(table[column], path, first_line)
    for identifier in ("specobjid", "objid"):
        if identifier in names:
            check_unique(table[identifier], path, first_line)
    return first_line, table


def _select(table: pd.DataFrame, lines: NDArray[np.int64], path: Path) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    kinds = table["class"].astype("string").str.strip().str.upper()
    unknown = np.flatnonzero(~kinds.isin(["QSO", "STAR", "GALAXY"]).to_numpy(dtype=bool) & kinds.notna().to_numpy())
    if len(unknown):
        row = int(unknown[0])
        raise ValueError(
            f"{path}, line {lines[row]}, column 'class': {shortened(kinds.iloc[row])} is not QSO, STAR or GALAXY."
        )
    measured = table[["ra", "dec", *_BANDS]].to_numpy()
    keep = kinds.isin(["QSO", "STAR"]).to_numpy(dtype=bool) & table["r"].between(14, 22).to_numpy()
    keep &= np.all(np.isfinite(measured) & (np.abs(measured) < _SENTINEL), axis=1)
    for column, good in _QUALITY.items():
        if column in table:
            keep &= (table[column] == good).to_numpy()
    return table.assign(**{"class": kinds})[keep], lines[keep]


def _galactic(ra: NDArray[np.float64], dec: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    coordinates = optional_module("astropy.coordinates", "to find Galactic coordinates")
    galactic = coordinates.SkyCoord(ra, dec, unit="deg", frame="icrs").galactic
    return np.asarray(galactic.l.deg), np.asarray(galactic.b.deg)


def _latitude_bins(latitude: NDArray[np.float64]) -> NDArray[np.str_]:
    distance = np.abs(latitude)
    inner_edges = np.quantile(distance, [0.2, 0.4, 0.6, 0.8])
    return np.array(LATITUDE_BINS)[np.searchsorted(inner_edges, distance, side="right")]


def _longitude_bins(longitude: NDArray[np.float64]) -> NDArray[np.str_]:
    return np.array(LONGITUDE_BINS)[np.minimum(longitude // 72, 4).astype(int)]
