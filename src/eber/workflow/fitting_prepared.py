"""A fit of rows that lie on disk: what `fit_table` does with a prepared table."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eber.compare.methods import Effort, build
from eber.estimators.stored_rows import fit_stored
from eber.methods import BUILT_IN, Method
from eber.runs.progress import Progress
from eber.tables.choices import ColumnChoices
from eber.tables.files import TableFile
from eber.tables.prepared.folder import PreparedTable
from eber.tuning.grids import Candidate

FIXED = "Fitted from a prepared table with fixed settings; nothing is tuned."
CHOSEN = (
    "Fitted from a prepared table, on all of its rows, with the settings that were best in left-out environments of a "
    "sample: {settings}."
)


def open_prepared(folder: Path, given: Mapping[str, Any], method: Method) -> PreparedTable:
    """A prepared table whose rows are as they were written, for a method that can be fitted from it.

    Parameters
    ----------
    given : mapping
        What was said about the table, by argument; it was decided when the table was prepared.
    """
    prepared = PreparedTable.read(folder)
    require_as_prepared(prepared, given)
    if not method.is_network:
        names = ", ".join(known.name for known in BUILT_IN if known.is_network)
        raise ValueError(
            f"{method.name} needs all rows in memory; from a prepared table can be fitted {names}. For {method.name}, "
            "give the table itself."
        )
    prepared.check()
    return prepared


def can_be_prepared(file: TableFile, choices: ColumnChoices) -> bool:
    """Whether a table that memory does not hold can be prepared on disk."""
    return file.origin is not None and file.source is not None and not choices.weight


@contextlib.contextmanager
def prepared_folder(out: Path | None) -> Iterator[Path]:
    """Where a table is prepared on the way to a model: beside the model's folder, else in a temporary one."""
    if out is not None:
        yield out.absolute().with_name(f"{out.name}.prepared")
        return
    with tempfile.TemporaryDirectory(prefix="eber-") as folder:
        yield Path(folder) / "prepared"


def fit_stored_rows(
    prepared: PreparedTable, method: str, seed: int, effort: Effort, settings: Candidate, listener: Progress
) -> Any:
    """The classifier, fitted on all rows; `settings` take the place of the fixed ones of the comparison."""
    classifier = build(method, seed, effort.epochs(len(prepared)), len(prepared.environments)).set_params(**settings)

    def say(done: int, terms: Mapping[str, float]) -> None:
        listener.note(f"Pass {done} of {classifier.epochs}: loss {terms['loss']:.4f}.")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit_stored(classifier, prepared.rows(), say)
    prepared.require_unchanged()  # since it was checked: the rows, and the sample that settings and scores are of
    for warning in {str(warning.message): warning.message for warning in caught}.values():
        warnings.warn(warning, stacklevel=3)
    return classifier


def how_it_was_fitted(settings: Candidate) -> str:
    """In a sentence, for the card."""
    if not settings:
        return FIXED
    return CHOSEN.format(settings=", ".join(f"{name} {value}" for name, value in settings.items()))


def require_as_prepared(prepared: PreparedTable, given: Mapping[str, Any]) -> None:
    """Refuse what contradicts, or would have to have been said before."""
    for name, own in (("label", prepared.schema.label), ("environment", prepared.schema.environment)):
        if given[name] not in (None, own):
            raise ValueError(
                f"{prepared.folder} was prepared with the {name} {own!r}, not {given[name]!r}: prepare the table again."
            )
    if given["weight"] is not None:
        raise ValueError(f"{prepared.folder} holds no weights: give the table itself with --weight {given['weight']}.")
    for name, value in given.items():
        if name not in ("label", "environment") and value:
            raise ValueError(f"{name} was decided when {prepared.folder} was prepared: prepare the table again.")
