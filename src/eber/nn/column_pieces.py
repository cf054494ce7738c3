"""Columns cut into pieces, so that a small network can follow bends and steps that it is too smooth for.

Beside a column x a network sees, for each of its pieces [a, b],

    clamp((x - a) / (b - a), 0, 1) - 1/2,

which rises along the piece and is level elsewhere: a linear layer on them is any function that is linear in each piece
(Gorishniy, Rubachev & Babenko 2022, "On embeddings for numerical features in tabular deep learning"). Where pieces
begin and end is learned from the training rows and not trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MAX_PIECES = 384
"""Of all columns together, where these are not so many that two for each are more."""
MAX_PIECED_COLUMNS = 384
"""With more columns that could be cut, none is."""
ROWS_LOOKED_AT = 100_000


class ColumnPieces(nn.Module):
    """The pieces of d columns, P in all.

    Parameters
    ----------
    column : (P,) int
        The column that each piece is of.
    """

    column: Tensor
    start: Tensor
    slope: Tensor

    def __init__(self, column: Sequence[int] | NDArray[np.int64]) -> None:
        super().__init__()
        # Which columns are cut is known before the weights are; where they are is among these.
        self.register_buffer("column", torch.as_tensor(np.asarray(column, dtype=np.int64)), persistent=False)
        self.register_buffer("start", torch.zeros(len(column)))
        self.register_buffer("slope", torch.zeros(len(column)))

    def place(self, knots: Sequence[NDArray[np.float32]]) -> None:
        """Let the pieces of each cut column lie between its knots."""
        self.start.copy_(torch.from_numpy(np.concatenate([k[:-1] for k in knots])))
        self.slope.copy_(torch.from_numpy(np.concatenate([1 / np.diff(k) for k in knots])))

    def forward(self, x: Tensor) -> Tensor:
        """(B, d) -> (B, d + P)."""
        return _beside(x, self.column, self.start, self.slope)


def through_pieces(pieces: Sequence[ColumnPieces], x: Tensor) -> Tensor:
    """The rows of S models, each through its own pieces of the same columns: (S, B, d) -> (S, B, d + P)."""
    start, slope = (torch.stack([getattr(own, name) for own in pieces])[:, None] for name in ("start", "slope"))
    return _beside(x, pieces[0].column, start, slope)


def _beside(x: Tensor, column: Tensor, start: Tensor, slope: Tensor) -> Tensor:
    rise = ((x[..., column] - start) * slope).clamp_(0, 1).sub_(0.5)
    return torch.cat([x, rise], -1)


def knots_of(X: NDArray[np.float32], pieces: int) -> dict[int, NDArray[np.float32]]:
    """Where the columns of training rows are cut, for those that are: k pieces lie between k + 1 increasing knots.

    Columns with two values or fewer are left as they are; one with few values is cut between all of them, another at
    its quantiles, or where one value is so frequent that these coincide, at the quantiles of its different values.
    """
    rows = X[:: -(-len(X) // ROWS_LOOKED_AT)]
    values = {j: np.unique(rows[:, j]) for j in range(rows.shape[1])}
    cut = [j for j, distinct in values.items() if len(distinct) > 2]
    if not cut or len(cut) > MAX_PIECED_COLUMNS:
        return {}
    most = min(pieces, max(2, MAX_PIECES // len(cut)))
    return {j: _knots(rows[:, j], values[j], most) for j in cut}


def _knots(column: NDArray[np.float32], distinct: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    if len(distinct) <= most + 1:
        return distinct
    levels = np.linspace(0, 1, most + 1)
    for source in (column, distinct):
        knots: NDArray[np.float32] = np.quantile(source, levels, method="inverted_cdf")
        if (np.diff(knots) > 0).all():
            break
    return knots
