"""Where a fit cuts its columns, and the networks that see the pieces; see `eber.nn.column_pieces`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from eber.nn.column_pieces import MAX_PIECED_COLUMNS, MAX_PIECES, ColumnPieces, knots_of

if TYPE_CHECKING:
    from eber.estimators.base import EnvironmentClassifier

Knots = dict[int, NDArray[np.float32]]
"""By column, where it is cut."""


def check_can_be_cut(estimator: EnvironmentClassifier) -> None:
    """Refuse pieces of columns where rows are not columns."""
    if estimator.column_pieces is not None and estimator.featurizer not in ("linear", "mlp"):
        raise ValueError(
            f"column_pieces={estimator.column_pieces} cuts the columns of a table, and featurizer is "
            f"{estimator.featurizer!r}: leave column_pieces out, or use featurizer='mlp' or 'linear'."
        )


def cut_columns(estimator: EnvironmentClassifier, x: Tensor) -> Knots:
    """Where the training rows, (n, d), are cut; nowhere, unless that was asked for."""
    return {} if estimator.column_pieces is None else knots_of(x.numpy(), estimator.column_pieces)


def columns_of_pieces(knots: Knots) -> NDArray[np.int64]:
    """The column of each piece, (P,): the fitted attribute `piece_columns_`."""
    return np.repeat(np.array(list(knots), dtype=np.int64), [len(own) - 1 for own in knots.values()])


def check_pieces(estimator: EnvironmentClassifier) -> None:
    """Refuse pieces that no fit has."""
    column: NDArray[Any] = np.asarray(getattr(estimator, "piece_columns_", np.zeros(0, dtype=np.int64)))
    known = column.ndim == 1 and column.dtype.kind == "i" and len(column) <= max(MAX_PIECES, 2 * MAX_PIECED_COLUMNS)
    if not known or not all(0 <= j < estimator.input_shape_[0] for j in column):
        raise ValueError("it cuts columns that its rows do not have")


def pieces_of(attributes: Mapping[str, Any]) -> ColumnPieces | None:
    """The pieces that the networks of a fit with these attributes see, wherever they may lie."""
    return ColumnPieces(attributes["piece_columns_"]) if "piece_columns_" in attributes else None


def place_pieces(module: nn.Module, knots: Knots) -> None:
    """Let the pieces that a module sees lie where they were learned."""
    for pieces in module.modules():
        if isinstance(pieces, ColumnPieces):
            pieces.place(list(knots.values()))
