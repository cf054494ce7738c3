"""Does the held-out environment share rows or subjects with the training environments?

A score on a held-out environment says nothing about new environments when some of its rows were also trained on. The
audit looks for shared identifiers, for identical rows, and for rows that are nearer to a training row than chance
allows.

What is near by chance is not assumed but read off the training data. For a row that no training row equals, the ratio r
of `near_rows` is computed among the training rows, and compared with the same ratio for rows of each training
environment

- among the rows of the *other* training environments, and
- among the *other rows of the same* environment.

Subjects measured repeatedly within one environment spoil only the second reference, and a leak between all environments
only the first; so the smaller p-value counts, doubled.

A row that equals a training row is judged by `exact_copies`: whether its values are too rare together to occur
twice by chance, or, where rows do repeat by nature, whether more held-out rows have a copy in one training environment
than rows of the other environments, and of that environment itself, have there. Here too the smaller p-value counts,
doubled. All p-values go through the procedure of Benjamini and Hochberg.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from eber.datasets.base import MultiEnvironmentData
from eber.leaks.exact_copies import chance_of_copies, excess_of_copies
from eber.leaks.findings import ADVICE, LeakFinding
from eber.leaks.near_rows import (
    FloatArray,
    IntArray,
    Nearness,
    Rows,
    Transform,
    as_points,
    measure_nearness,
    tail_probability,
)


class LeakWarning(UserWarning):
    """Held-out rows were, or may have been, seen in training."""


@dataclass(frozen=True)
class LeakAudit:
    """What was found; every pair is (row of the training data, row of the held-out data).

    Parameters
    ----------
    n_train, n_held_out : int
        Rows compared.
    shared_identifiers : tuple
        The distinct identifiers that occur in both.
    identifier_pairs : array of shape (p, 2)
        One pair for each held-out row whose identifier also occurs in training.
    identical_pairs : array of shape (q, 2)
        One pair for each held-out row that equals a training row in every feature that varies in training.
    suspicious_pairs : array of shape (s, 2)
        One pair for each held-out row that is nearer to a training row than chance allows; identical rows are among
        them unless they too are usual in these data.
    p_values : array of shape (n_held_out,)
        How likely so near a training row is by chance; one where nothing could be compared.
    false_discovery_rate : float
        The level at which `suspicious_pairs` was drawn from `p_values`.
    """

    n_train: int
    n_held_out: int
    shared_identifiers: tuple[Any, ...]
    identifier_pairs: IntArray
    identical_pairs: IntArray
    suspicious_pairs: IntArray
    p_values: FloatArray
    false_discovery_rate: float

    @property
    def leaked_rows(self) -> IntArray:
        """Held-out rows that share an identifier with training or are suspiciously near to it, sorted."""
        return np.union1d(self.identifier_pairs[:, 1], self.suspicious_pairs[:, 1])

    @property
    def found(self) -> bool:
        """Whether there is anything to warn about."""
        return len(self.leaked_rows) > 0

    @property
    def found_by_features(self) -> int:
        """Of the held-out rows with a shared identifier, how many their features alone give away."""
        return int(np.isin(self.identifier_pairs[:, 1], self.suspicious_pairs[:, 1]).sum())

    @property
    def findings(self) -> tuple[LeakFinding, ...]:
        """One for each kind that there is, the gravest first."""
        sharing, near = len(self.identifier_pairs), len(self.suspicious_pairs)
        identical = int(np.isin(self.suspicious_pairs[:, 1], self.identical_pairs[:, 1]).sum())
        usual = len(self.identical_pairs) - identical
        n = self.n_held_out
        examples = ", ".join(str(name) for name in self.shared_identifiers[:3])
        found = (
            LeakFinding(
                "shared_identifiers",
                sharing,
                n,
                f"{sharing} of {n} held-out rows carry an identifier that is also in the training data (such as "
                f"{examples}); the features alone give away {self.found_by_features} of them.",
            ),
            LeakFinding(
                "near_rows",
                near,
                n,
                f"{near} of {n} held-out rows are nearer to a training row than chance allows (false discovery rate "
                f"{self.false_discovery_rate:g}); {identical} of them equal it in every feature.",
            ),
            LeakFinding(
                "usual_copies",
                usual,
                n,
                f"{usual} of {n} held-out rows equal a training row, but not clearly more often than rows of the "
                "training data equal each other, and are not counted.",
            ),
        )
        return tuple(finding for finding in found if finding.n_rows)

    @property
    def summary(self) -> list[str]:
        """The findings in plain sentences, the gravest first; or that there are none."""
        sentences = [finding.sentence for finding in self.findings]
        return sentences or [
            f"No shared identifier and no suspiciously near row among {self.n_held_out} held-out rows."
        ]

    def warn(self) -> None:
        """Issue a `LeakWarning` with the summary when there is something to warn about."""
        if self.found:
            warnings.warn(" ".join([*self.summary, ADVICE]), LeakWarning, stacklevel=2)


def leak_audit(
    train: MultiEnvironmentData,
    held_out: MultiEnvironmentData,
    *,
    transform: Transform | None = None,
    false_discovery_rate: float = 0.01,
    n_neighbors: int = 10,
    max_reference: int = 2000,
    random_state: int = 0,
) -> LeakAudit:
    """Look for rows and subjects of the held-out data in the training data.

    Parameters
    ----------
    train, held_out : MultiEnvironmentData
        With the same features. Missing values count as equal to each other.
    transform : callable, optional
        Maps rows, shape (n, d), to points whose Euclidean distance means something; for compositions, logarithms.
        Without it the columns of tables are standardised, and images are taken as they are.
    false_discovery_rate : float
        Expected share of false alarms among the suspicious rows.
    n_neighbors : int
        k, the neighbour whose distance is the yardstick: the audit sees through up to k - 2 near-copies of one row in
        the training data. Environments with fewer different rows serve for no reference.
    max_reference : int
        Training rows that are drawn for each reference.
    random_state : int
        Seed of that draw.
    """
    if train.X.shape[1:] != held_out.X.shape[1:]:
        raise ValueError(
            f"rows of {train.name} have shape {train.X.shape[1:]}, rows of {held_out.name} {held_out.X.shape[1:]}: the "
            "audit compares rows with the same features."
        )
    rows, queries = as_points(train.X, held_out.X, transform)
    found = measure_nearness(queries, rows, n_neighbors)
    p_values = np.ones(len(queries))
    if found is not None:
        rng = np.random.default_rng(random_state)
        own, other = _references(rows, train.environments, n_neighbors, max_reference, rng)
        p_values = _p_values(found, own, other, len(np.unique(train.environments)), rows.Z.shape[1])
        by_chance = chance_of_copies(rows, queries, train.environments, rng)
        as_many = excess_of_copies(rows, queries, train.environments)
        p_values = np.where(found.copies > 0, np.minimum(1.0, 2 * np.minimum(by_chance, as_many)), p_values)
    suspicious = np.flatnonzero(_adjusted(p_values) <= false_discovery_rate)
    identifier_pairs = _identifier_pairs(train, held_out)
    shared = () if held_out.identifiers is None else np.unique(held_out.identifiers[identifier_pairs[:, 1]]).tolist()
    return LeakAudit(
        n_train=len(rows),
        n_held_out=len(queries),
        shared_identifiers=tuple(shared),
        identifier_pairs=identifier_pairs,
        identical_pairs=_pairs(rows.keys, queries.keys),
        suspicious_pairs=_stack(found.nearest[suspicious] if found else suspicious, suspicious),
        p_values=p_values,
        false_discovery_rate=false_discovery_rate,
    )


def _references(
    rows: Rows, environments: NDArray[Any], k: int, max_reference: int, rng: np.random.Generator
) -> tuple[Nearness | None, Nearness | None]:
    """Training rows compared within their own environment, and with the other environments."""
    share = min(1.0, max_reference / len(rows))
    own, other = [], []
    for environment in np.unique(environments):
        inside = np.flatnonzero(environments == environment)
        drawn = rows.select(rng.choice(inside, size=int(np.ceil(share * len(inside))), replace=False))
        own.append(measure_nearness(drawn, rows.select(inside), k, from_pool=True))
        other.append(measure_nearness(drawn, rows.select(environments != environment), k))
    return _join(own), _join(other)


def _join(parts: list[Nearness | None]) -> Nearness | None:
    usable = [part for part in parts if part is not None]
    if not usable:
        return None
    return Nearness(
        ratios=np.concatenate([part.ratios for part in usable]),
        copies=np.concatenate([part.copies for part in usable]),
        nearest=np.concatenate([part.nearest for part in usable]),
        differing=np.concatenate([part.differing for part in usable]),
    )


def _p_values(
    found: Nearness, own: Nearness | None, other: Nearness | None, n_environments: int, dimensions: int
) -> FloatArray:
    candidates = []
    if own is not None:
        # A single environment is a smaller pool than all of them together, with fewer chances to be near.
        within = tail_probability(found, own, dimensions)
        candidates.append(1 - (1 - within) ** n_environments)
    if other is not None:
        candidates.append(tail_probability(found, other, dimensions))
    if not candidates:
        return np.ones(len(found.ratios))
    return np.minimum(1.0, len(candidates) * np.min(candidates, axis=0))


def _adjusted(p_values: FloatArray) -> FloatArray:
    return false_discovery_control(p_values, method="bh") if len(p_values) else p_values


def _identifier_pairs(train: MultiEnvironmentData, held_out: MultiEnvironmentData) -> IntArray:
    if train.identifiers is None or held_out.identifiers is None:
        return np.empty((0, 2), dtype=np.int64)
    return _pairs(train.identifiers, held_out.identifiers)


def _pairs(train: NDArray[Any], held_out: NDArray[Any]) -> IntArray:
    """One pair (first training row with it, held-out row) for each held-out row whose value occurs in training."""
    first = pd.Series(np.arange(len(train)), index=pd.Index(train))
    first = first[first.index.notna() & ~first.index.duplicated()]
    matches = first.reindex(pd.Index(held_out)).to_numpy()
    rows = np.flatnonzero(~np.isnan(matches))
    return _stack(matches[rows], rows)


def _stack(train_rows: NDArray[Any], held_out_rows: NDArray[Any]) -> IntArray:
    return np.column_stack([train_rows, held_out_rows]).astype(np.int64).reshape(-1, 2)
