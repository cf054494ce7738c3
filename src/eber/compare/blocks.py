"""Which environments are left out together while settings are tried, so that few fits serve every held-out one.

A fit that has seen neither a nor b can judge settings in b while a is held out, and in a while b is. So all settings
are fitted without each *block* of environments; while a is held out, those blocks judge that a is in, each in what else
it leaves out. What is asked of the blocks: every two environments are in one, so that all others are judged while a is
held out, and a is in four of them at most.

- Up to five environments: the blocks are all pairs.
- Up to thirteen: the lines of the projective plane of order 3, which has 13 points and 13 lines of four points. Every
  two points are on one line, and every point is on four. Points that no environment takes are left away.
- More: environments share the points. Two at the same point are left out by the same fits.

Eight environments need 12 fits of a setting in this way, where four for each of them would be 32; thirteen need 13
in place of 52.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eber.io.text import natural_order

Block = tuple[str, ...]
"""Names of the environments that are left out together."""

MOST_IN_PAIRS = 5
LEAST_JUDGED = 3
"""Environments in which settings are judged for a held-out one; with four environments there are as many."""
POINTS = 13
LINES = tuple(frozenset((i + difference) % POINTS for difference in (0, 1, 3, 9)) for i in range(POINTS))
"""Of the differences of 0, 1, 3 and 9 every number modulo 13 but zero is one, and one only: two points, one line."""
TAKEN = (6, 7, 8, 10, 11, 12, 5, 4, 2, 9, 3, 1, 0)
"""The order in which points are taken: the last four are a line, and the three before them are on none, so that few
lines are left for few environments."""


def lines_through(n: int) -> list[tuple[int, ...]]:
    """Which of n units are left out together: every two of them once, where they are thirteen at most."""
    if n <= MOST_IN_PAIRS:
        return list(combinations(range(n), 2))
    at: dict[int, list[int]] = {}
    for unit in range(n):
        at.setdefault(TAKEN[unit % POINTS], []).append(unit)
    lines = (tuple(sorted(unit for point in line for unit in at.get(point, ()))) for line in LINES)
    return [line for line in lines if len(line) > 1]


def plan_blocks(folds: Iterable[Sequence[str]], y: NDArray[Any], environments: NDArray[Any]) -> tuple[Block, ...]:
    """The blocks of a comparison; none where too few environments would be left to learn from.

    A block is used if two environments or more and every class are left without it, and some fold is judged by it.

    Parameters
    ----------
    folds : environments that are held out together
        Others are only trained on; they are units of their own, so that settings are judged in them too.
    y, environments : arrays of shape (n,)
    """
    held_out = [tuple(fold) for fold in folds]
    alone = {name for fold in held_out for name in fold}
    names = sorted(set(environments.tolist()), key=natural_order)
    units = [*held_out, *((name,) for name in names if name not in alone)]
    blocks = []
    for line in lines_through(len(units)):
        block = tuple(name for unit in line for name in units[unit])
        left = ~np.isin(environments, block)
        enough = len(np.unique(environments[left])) > 1 and len(np.unique(y[left])) == len(np.unique(y))
        if enough:
            blocks.append(block)
    used = {block for fold in held_out for block in blocks_for(fold, blocks)}
    return tuple(block for block in blocks if block in used)


def blocks_for(fold: Collection[str], blocks: Iterable[Block]) -> list[Block]:
    """The blocks that judge settings while a fold is held out: those that all of its environments are in.

    None where they leave out fewer than `LEAST_JUDGED` others: the search is then made for this fold alone.
    """
    own = [block for block in blocks if set(fold) <= set(block)]
    judged = {name for block in own for name in block} - set(fold)
    return own if len(judged) >= LEAST_JUDGED else []


def folds_judged(block: Block, folds: Mapping[str, Sequence[str]], blocks: Sequence[Block]) -> list[list[str]]:
    """The held-out folds, as lists of environments, that a block judges settings for."""
    return [list(fold) for fold in folds.values() if block in blocks_for(fold, blocks)]
