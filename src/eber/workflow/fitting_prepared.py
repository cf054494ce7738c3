"""A fit of rows that lie on disk: what `fit_table` does with a prepared table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eber.compare.methods import Effort, build
from eber.estimators.stored_rows import fit_stored
from eber.methods import BUILT_IN, Method
from eber.runs.progress import Progress
from eber.tables.model_card import describe
from eber.tables.model_folder import TableModel
from eber.tables.prepared.folder import PreparedTable

FIXED = (
    "Fitted from a prepared table: settings are fixed, nothing is tuned, and no environment was held out to measure "
    "scores."
)


def fit_prepared(
    folder: Path, given: Mapping[str, Any], method: Method, seed: int, effort: Effort, listener: Progress
) -> TableModel:
    """Fit a model with the fixed settings of the comparison.

    Parameters
    ----------
    folder : Path
        Of the prepared table.
    given : mapping
        What was said about the table, by argument; it was decided when the table was prepared.
    """
    prepared = PreparedTable.read(folder)
    _require_as_prepared(prepared, given)
    if not method.is_network:
        names = ", ".join(known.name for known in BUILT_IN if known.is_network)
        raise ValueError(
            f"{method.name} needs all rows in memory; from a prepared table can be fitted {names}. For {method.name}, "
            "give the table itself."
        )
    prepared.check()
    for sentence in (*prepared.contents, *prepared.notes, FIXED):
        listener.note(sentence)
    classifier = build(method.name, seed, effort.epochs(len(prepared)), len(prepared.environments))

    def say(done: int, terms: Mapping[str, float]) -> None:
        listener.note(f"Pass {done} of {classifier.epochs}: loss {terms['loss']:.4f}.")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit_stored(classifier, prepared.rows(), say)
    for warning in {str(warning.message): warning.message for warning in caught}.values():
        warnings.warn(warning, stacklevel=3)
    card = describe(prepared, classifier, method.name, [], [FIXED])
    return TableModel(classifier, prepared.schema, prepared.preprocessing, card)


def _require_as_prepared(prepared: PreparedTable, given: Mapping[str, Any]) -> None:
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
