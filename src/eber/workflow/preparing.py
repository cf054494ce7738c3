"""`prepare_table`: a table larger than memory as a folder that models are fitted from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from eber.runs.backends import check_backend
from eber.runs.progress import Progress
from eber.tables.files import open_table, require_apart
from eber.tables.prepared.folder import PreparedTable
from eber.tables.prepared.preparing import prepare
from eber.tables.reading import Reading
from eber.tables.tasks import one_after_the_other
from eber.workflow.arguments import as_progress, choices_of, names_of, whole_number
from eber.workflow.predicting import on_backend


def prepare_table(
    table: str | Path,
    out: str | Path,
    *,
    label: str,
    environment: str,
    seed: int = 0,
    drop: str | Iterable[str] = (),
    features: str | Iterable[str] | None = None,
    categorical: str | Iterable[str] = (),
    numeric: str | Iterable[str] = (),
    missing: str | Iterable[str] = (),
    positive: str | None = None,
    encoding: str | None = None,
    jobs: int = 1,
    backend: Any = "processes",
    progress: bool | Progress = False,
) -> PreparedTable:
    """Prepare a table of any size: rows in random order on disk, as the networks see them, for `fit_table`.

    Columns are judged as `fit_table` judges them, by a random sample of 200,000 rows where there are more; classes,
    environments, means, deviations, missing values and categories are those of all rows. Memory does not grow with the
    rows. Stopped and called again it goes on; what is there already is not made again.

    Parameters
    ----------
    table : str or Path
        CSV, Parquet or Feather, or a folder of Parquet or CSV files.
    out : str or Path
        Folder for the prepared table: four bytes for each number, and as much again until it is done.
    label, environment : str
        The column to be predicted, and the one that says where each row comes from.
    seed : int
        Of the order of the rows.
    drop, features, categorical, numeric, missing, positive, encoding
        As for `fit_table`.
    jobs, backend
        As for `predict_folder`: row groups of Parquet files, and files of a folder, are tasks of their own.
    progress : bool or Progress
        Whether to say on standard error what is decided, what it takes on the disk, and how far it is.

    Returns
    -------
    PreparedTable
        ``fit_table(out)`` and ``eber fit OUT`` fit models from its folder.
    """
    whole_number(seed, "seed", 0)
    whole_number(jobs, "jobs", 1)
    check_backend(backend)

    def each(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        if backend == "processes" and jobs == 1:
            return one_after_the_other(function, tasks)
        return on_backend(backend, jobs, function, tasks)

    require_apart(Path(out), table)
    choices = choices_of(categorical, numeric, missing, positive, weight=None)
    # As absolute paths: a process elsewhere has another working folder.
    return prepare(
        open_table(Path(table).absolute(), Reading(encoding=encoding)),
        Path(out).absolute(),
        label=label,
        environment=environment,
        drop=names_of(drop, "drop"),
        features=None if features is None else names_of(features, "features"),
        choices=choices,
        seed=seed,
        say=as_progress(progress).note,
        each=each,
    )
