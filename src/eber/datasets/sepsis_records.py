"""The hourly records of PhysioNet's 2019 challenge: one .psv file for each stay, or all of them in one parquet file.

Both readers give an `HourlyWindow`: the first hours of every stay, one column at a time, and whether the sepsis label
was set in them or later.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.datasets.archive import members
from eber.datasets.checks import check_columns, naming_damage, numeric_column, optional_module
from eber.io.text import shortened

VITAL_SIGNS = ("HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp", "EtCO2")
LABORATORY = (
    *("BaseExcess", "HCO3", "FiO2", "pH", "PaCO2", "SaO2", "AST", "BUN", "Alkalinephos", "Calcium", "Chloride"),
    *("Creatinine", "Bilirubin_direct", "Glucose", "Lactate", "Magnesium", "Phosphate", "Potassium"),
    *("Bilirubin_total", "TroponinI", "Hct", "Hgb", "PTT", "WBC", "Fibrinogen", "Platelets"),
)
COLUMNS = (*VITAL_SIGNS, *LABORATORY, "Age", "Gender", "Unit1", "Unit2", "HospAdmTime", "ICULOS", "SepsisLabel")
_HEADER = "|".join(COLUMNS).encode()
_SEPARATORS = len(COLUMNS) - 1
_LABEL = (b"|0", b"|1")
_STAYS_AT_ONCE = 2000
# The longest stay of the challenge has 336 hours and about 50 kB.
_MAX_RECORD_BYTES = 10 * 2**20
# The challenge has 1.6 million hours in all.
_MAX_HOURS = 10**8


@dataclass(frozen=True)
class HourlyWindow:
    """The first hours of every stay.

    Parameters
    ----------
    path : str
        Where they were read, for errors.
    patients : array of shape (stays,)
    sources : array of shape (stays,)
        ``"A"`` or ``"B"``.
    lengths : array of shape (stays,)
        Hours of each stay within the window.
    goes_on : array of bool, shape (stays,)
        Whether the stay has hours after the window.
    septic_within, septic_later : arrays of bool, shape (stays,)
        Whether the label is set in the window, or after it.
    column : callable
        Takes one of `COLUMNS` and gives its values, shape (lengths.sum(),), stay after stay.
    """

    path: str
    patients: NDArray[np.str_]
    sources: NDArray[np.str_]
    lengths: NDArray[np.int64]
    goes_on: NDArray[np.bool_]
    septic_within: NDArray[np.bool_]
    septic_later: NDArray[np.bool_]
    column: Callable[[str], NDArray[np.float64]]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each stay begins in a column, shape (stays,)."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]])


def read_parquet(path: Path, hours: int) -> HourlyWindow:
    """Read a parquet file with the columns of the records, ``patient_id`` and ``source``, sorted by patient and hour.

    Columns are read one by one, so that the file never stands in memory whole.
    """
    parquet = optional_module("pyarrow.parquet", "to read parquet files")
    with _naming_parquet_damage(path):
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
        n_rows = file.metadata.num_rows
    if n_rows > _MAX_HOURS:
        raise ValueError(f"{path} announces {n_rows} hours, more than {_MAX_HOURS}, which no data set of stays has.")
    check_columns(names, ("patient_id", "source", *COLUMNS), path)

    def read(name: str) -> Any:
        with _naming_parquet_damage(path):
            column = file.read(columns=[name]).column(0)
            column.validate(full=True)  # text that is none would be noticed where it is used, without the file's name
            values = column.to_pandas()
        if len(values) != n_rows:
            raise ValueError(f"{path}, column {name!r} has {len(values)} of {n_rows} rows: the file is damaged.")
        return values

    def numbers(name: str) -> NDArray[np.float64]:
        return numeric_column(read(name).rename(name), path, first_line=1)

    codes, patients = pd.factorize(read("patient_id"), use_na_sentinel=True)
    if np.any(codes < 0):
        raise ValueError(f"{path}, row {int(np.argmax(codes < 0)) + 1}: no patient_id.")
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(first) != len(patients):
        split = int(first[np.flatnonzero(pd.Series(codes[first]).duplicated())[0]])
        raise ValueError(
            f"{path}, row {split + 1}: patient {str(patients[codes[split]])!r} occurs again after another patient. "
            "Sort the rows by patient_id and ICULOS."
        )
    _check_hours(numbers("ICULOS"), first, patients, path)
    hour = np.arange(len(codes)) - np.repeat(first, np.diff(first, append=len(codes)))
    within = hour < hours
    label = numbers("SepsisLabel")
    wrong = np.flatnonzero(~np.isin(label, [0, 1]))
    if len(wrong):
        raise ValueError(f"{path}, row {wrong[0] + 1}, column 'SepsisLabel': {label[wrong[0]]:g} is neither 0 nor 1.")
    septic = label == 1
    return HourlyWindow(
        path=str(path),
        patients=np.asarray(patients, dtype=np.str_),
        sources=read("source").to_numpy()[first].astype(np.str_),
        lengths=np.add.reduceat(within, first, dtype=np.int64),
        goes_on=~np.logical_and.reduceat(within, first),
        septic_within=np.logical_or.reduceat(septic & within, first),
        septic_later=np.logical_or.reduceat(septic & ~within, first),
        column=lambda name: numbers(name)[within],
    )


def read_psv(paths: Sequence[Path], hours: int) -> HourlyWindow:
    """Read the .psv files in folders or archives (.zip, .tar.gz), at any depth.

    The source is told by the folder (``training_setA``, ``training_setB``), else by the patient's number: set B counts
    from p100001.
    """
    patients: list[str] = []
    sources: list[str] = []
    lengths: list[int] = []
    goes_on: list[bool] = []
    within: list[bool] = []
    later: list[bool] = []
    parts: list[NDArray[np.float64]] = []
    batch: list[tuple[str, bytes]] = []
    for where, rows in _records(paths):
        # A label stands at the end of its row, so that rows after the window need not be parsed.
        septic = [row.endswith(b"|1") for row in rows]
        patients.append(PurePosixPath(where).stem)
        sources.append(_source(where))
        lengths.append(min(len(rows), hours))
        goes_on.append(len(rows) > hours)
        within.append(any(septic[:hours]))
        later.append(any(septic[hours:]))
        batch.append((where, b"\n".join(rows[:hours]) + b"\n"))
        if len(batch) == _STAYS_AT_ONCE:
            parts.append(_parse(batch))
            batch = []
    if batch:
        parts.append(_parse(batch))
    path = ", ".join(map(str, paths))
    if not parts:
        raise ValueError(f"{path} has no .psv files.")
    repeated = np.flatnonzero(pd.Series(patients).duplicated())
    if len(repeated):
        raise ValueError(f"{path} has patient {shortened(patients[repeated[0]])} twice. Keep one copy of the records.")
    table = np.concatenate(parts)
    window = HourlyWindow(
        path=path,
        patients=np.array(patients),
        sources=np.array(sources),
        lengths=np.array(lengths),
        goes_on=np.array(goes_on),
        septic_within=np.array(within),
        septic_later=np.array(later),
        column=lambda name: table[:, COLUMNS.index(name)],
    )
    _check_hours(window.column("ICULOS"), window.starts, window.patients, path)
    return window


@contextlib.contextmanager
def _naming_parquet_damage(path: Path) -> Iterator[None]:
    try:
        with naming_damage(path):
            yield
    except optional_module("pyarrow", "to read parquet files").ArrowException as error:
        raise ValueError(f"{path} is damaged, cut off or no parquet file ({error}). Download it again.") from error


def _records(paths: Sequence[Path]) -> Iterator[tuple[str, list[bytes]]]:
    """Where each .psv file is, and its rows."""
    for path in paths:
        for name, stream in members(path, lambda name: re.search(r"(^|/)(?!\._)[^/]+\.psv$", name) is not None):
            where = f"{path}/{name}"
            content = stream.read(_MAX_RECORD_BYTES + 1)
            if len(content) > _MAX_RECORD_BYTES:
                raise ValueError(f"{where} has more than {_MAX_RECORD_BYTES} bytes, which no stay has.")
            header, *rows = content.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
            if header != _HEADER:
                check_columns(header.decode("utf-8", "replace").split("|"), COLUMNS, where)
                raise ValueError(f"{where} has its columns in another order than PhysioNet's files.")
            if not rows:
                raise ValueError(f"{where} has no hours.")
            if any(row.count(b"|") != _SEPARATORS or row[-2:] not in _LABEL for row in rows):
                _check_rows(rows, where)
            yield where, rows


def _check_rows(rows: list[bytes], where: str) -> None:
    """Rows must be whole and end in a label; pandas would fill up a row that was cut off."""
    for line, row in enumerate(rows, start=2):
        if row.count(b"|") != _SEPARATORS:
            raise ValueError(f"{where}, line {line} has {row.count(b'|') + 1} cells instead of {len(COLUMNS)}.")
        if row[-2:] not in _LABEL:
            label = row.rsplit(b"|", 1)[1].decode("utf-8", "replace")
            raise ValueError(f"{where}, line {line}, column 'SepsisLabel': {shortened(label)} is neither 0 nor 1.")


def _source(where: str) -> str:
    folder = re.search(r"training_set([AB])/", where)
    if folder:
        return folder[1]
    number = re.search(r"p(\d+)\.psv$", where)
    return "B" if number and int(number[1]) > 100_000 else "A"


def _parse(batch: list[tuple[str, bytes]]) -> NDArray[np.float64]:
    """Many small files at once, shape (rows, columns); parsing each alone takes ten times as long."""
    try:
        return _parse_text(b"".join(text for _, text in batch))
    except (ValueError, pd.errors.ParserError):
        for where, text in batch:
            _explain(where, text)
        raise


def _parse_text(text: bytes) -> NDArray[np.float64]:
    table = pd.read_csv(
        io.BytesIO(text), sep="|", header=None, names=list(COLUMNS), index_col=False, dtype=np.float64, engine="c"
    )
    return table.to_numpy()


def _explain(where: str, text: bytes) -> None:
    """Find the cell that cannot be parsed, and say which it is."""
    rows = text.rstrip(b"\n").split(b"\n")
    _check_rows(rows, where)
    for line, row in enumerate((row.decode("utf-8", "replace") for row in rows), start=2):
        for column, cell in zip(COLUMNS, row.split("|"), strict=True):
            numeric_column(pd.Series([None if cell in ("", "NaN") else cell], name=column), where, line)


def _check_hours(hour: NDArray[np.float64], first: NDArray[np.int64], patients: Any, path: str | Path) -> None:
    """Hours must rise within each stay; otherwise "the first 24" and "the last observed" mean nothing."""
    rising = np.diff(hour, prepend=-np.inf) > 0
    rising[first] = True
    if not rising.all():
        row = int(np.argmin(rising))
        stay = int(np.searchsorted(first, row, side="right")) - 1
        raise ValueError(
            f"{path}, patient {str(patients[stay])!r}, record {row - int(first[stay]) + 1}, column 'ICULOS': hours "
            f"must rise, but {hour[row]:g} follows {hour[row - 1]:g}."
        )
