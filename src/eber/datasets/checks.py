"""What every loader asks of the files it reads, with errors that say where the trouble is."""

from __future__ import annotations

import contextlib
import errno
import importlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.datasets.base import MultiEnvironmentData
from eber.io.text import shortened

# What a damaged or cut-off file makes the decompressors and the csv parser raise.
_DAMAGE = (
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
    pd.errors.EmptyDataError,
    pd.errors.ParserError,
    tarfile.ReadError,
    zipfile.BadZipFile,
    zlib.error,
)


def optional_module(name: str, purpose: str) -> ModuleType:
    """Import a module of the `data` extra.

    Parameters
    ----------
    name : str
        Such as ``"pyarrow.parquet"``.
    purpose : str
        What it is needed for, as it reads after "is needed".
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise ImportError(f"{package} is needed {purpose}: pip install 'eber[data]'") from error


def dataset_folder(data_dir: str | Path, name: str) -> Path:
    """`data_dir/name` when there is such a folder, else `data_dir` itself, so that either can be given."""
    data_dir = Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir} is not a folder.")
    inner = data_dir / name
    return inner if inner.is_dir() else data_dir


def first_present(folder: Path, names: Iterable[str], source: str) -> Path:
    """The first of `names` that is in the folder; `source` is the name that `eber data fetch` knows it by."""
    names = list(names)
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"{folder} has none of {', '.join(names)}. Download them with: eber data fetch {source}")


@contextlib.contextmanager
def naming_damage(path: str | Path) -> Iterator[None]:
    """Turn what parsers and decompressors raise on a damaged file into an error that names the file."""
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        # Decompressors also raise OSError; the system's own, such as "permission denied", have a number.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise ValueError(
            f"{path} cannot be read ({error}): it is damaged, cut off or of another format. Download it again."
        ) from error


def read_csv(file: str | Path | IO[bytes], path: str | Path, **options: Any) -> pd.DataFrame:
    """`pandas.read_csv`, with damage reported under the name `path`."""
    with naming_damage(path):
        return pd.read_csv(file, **options)


def check_columns(found: Sequence[str], needed: Iterable[str], path: str | Path) -> None:
    """Raise unless every needed column is there, once."""
    missing = [name for name in needed if name not in found]
    if missing:
        there = ", ".join(map(shortened, found[:12]))
        raise ValueError(f"{path} has no column {missing[0]!r}; it has {there}.")
    repeated = [name for name in needed if list(found).count(name) > 1]
    if repeated:
        raise ValueError(f"{path} has the column {shortened(repeated[0])} more than once.")


def numeric_column(values: pd.Series, path: str | Path, first_line: int) -> NDArray[np.float64]:
    """A column as float64, with missing values as NaN.

    Parameters
    ----------
    values : Series
        As read, its name being the column's.
    path : path
        Of the file, for the error.
    first_line : int
        The line of the file that the first value stands on.
    """
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(np.isnan(numbers) & values.notna().to_numpy())
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"{path}, line {first_line + row}, column {shortened(values.name)}: {shortened(values.iloc[row])} is not a "
            "number."
        )
    return numbers


def check_range(
    values: NDArray[Any], low: float, high: float, path: str | Path, column: str, lines: NDArray[np.int64]
) -> None:
    """Raise unless every value that is not missing lies in [low, high]; `lines` are their lines in the file."""
    wrong = np.flatnonzero((values < low) | (values > high))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"{path}, line {lines[row]}, column {shortened(column)}: {values[row]} is not between {low:g} and {high:g}."
        )


def check_unique(values: pd.Series, path: str | Path, first_line: int) -> None:
    """Raise unless every identifier is there and occurs once."""
    missing = np.flatnonzero(values.isna().to_numpy())
    if len(missing):
        raise ValueError(f"{path}, line {first_line + int(missing[0])}: no {shortened(values.name)}.")
    repeated = np.flatnonzero(values.duplicated().to_numpy())
    if len(repeated):
        row = int(repeated[0])
        earlier = int(np.flatnonzero((values == values.iloc[row]).to_numpy())[0])
        raise ValueError(
            f"{path}, line {first_line + row}, column {shortened(values.name)}: {shortened(str(values.iloc[row]))} was "
            f"already on line {first_line + earlier}. Remove one of the two rows."
        )


def one_class_environments(data: MultiEnvironmentData) -> dict[Any, Any]:
    """The environments in which every row has the same label, and that label."""
    labels = {name: np.unique(data.y[data.environments == name]) for name in data.environment_names}
    return {name: values[0] for name, values in labels.items() if len(values) == 1}


def check_both_classes(data: MultiEnvironmentData, path: str | Path) -> None:
    """Raise if an environment has only one class."""
    for name, label in one_class_environments(data).items():
        raise ValueError(
            f"{path}: environment {str(name)!r} has only class {label} ({np.sum(data.environments == name)} rows), so "
            "that nothing can be learned or tested there. Leave that environment out, or read the whole data set."
        )
