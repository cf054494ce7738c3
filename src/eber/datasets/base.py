"""The one container that every data source returns and everything downstream reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MultiEnvironmentData:
    """Rows from several environments.

    Parameters
    ----------
    X : array or DataFrame of shape (n, d), or array of shape (n, channels, height, width)
    y : array of shape (n,)
        Labels; a Series is taken as an array.
    environments : array of shape (n,)
        The environment each row came from; as for y.
    feature_names : sequence of str, optional
        One name for each column of a two-dimensional X.
    identifiers : array of shape (n,), optional
        What a row is of (patient, sample, object), where the source says so; the leak audit reads it.
    name : str
        What the data are called in tables and errors.
    extra : dict
        What belongs to the rows of one source only (coordinates, the latent z of a simulation), each of length n.
    weights : array of shape (n,), optional
        How much each row counts, in fits and in scores; None where all count alike.
    """

    X: Any
    y: NDArray[Any]
    environments: NDArray[Any]
    feature_names: tuple[str, ...] = ()
    identifiers: NDArray[Any] | None = None
    name: str = "data"
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for column in ("y", "environments"):  # a Series would be selected from by its index
            object.__setattr__(self, column, np.asarray(getattr(self, column)))
        n = len(self)
        columns = {"y": self.y, "environments": self.environments, **self.extra}
        if self.identifiers is not None:
            columns["identifiers"] = self.identifiers
        if self.weights is not None:
            columns["weights"] = self.weights
        for column, values in columns.items():
            if len(values) != n:
                raise ValueError(f"{self.name}: X has {n} rows, but {column} has {len(values)}.")
        if self.feature_names and len(self.feature_names) != self.X.shape[1]:
            raise ValueError(
                f"{self.name}: X has {self.X.shape[1]} columns, but {len(self.feature_names)} feature names were given."
            )

    def __len__(self) -> int:
        return int(np.shape(self.X)[0])  # a sparse matrix has no length of its own

    @property
    def environment_names(self) -> list[Any]:
        """The distinct environments, sorted."""
        return np.unique(self.environments).tolist()

    def require(self, names: Iterable[Any]) -> None:
        """Refuse to go on where one of the named environments is not there: what is left would be another task."""
        missing = [name for name in names if name not in self.environment_names]
        if missing:
            raise ValueError(
                f"{self.name}: {', '.join(map(repr, missing))} {'is' if len(missing) == 1 else 'are'} needed and not "
                f"in the data, which have {self.environment_names}. Download them with: eber data fetch {self.name}"
            )

    def select(self, rows: NDArray[Any]) -> MultiEnvironmentData:
        """The given rows (a mask or an index), everything else as it was."""
        return replace(
            self,
            X=self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows],
            y=self.y[rows],
            environments=self.environments[rows],
            identifiers=None if self.identifiers is None else self.identifiers[rows],
            extra={key: values[rows] for key, values in self.extra.items()},
            weights=None if self.weights is None else self.weights[rows],
        )

    def split(self, held_out: Any) -> tuple[MultiEnvironmentData, MultiEnvironmentData]:
        """Training rows and the rows of the held-out environment (or environments)."""
        names = np.atleast_1d(np.asarray(held_out))
        unknown = [name for name in names if name not in self.environments]
        if unknown:
            raise ValueError(f"{self.name} has no environment {unknown[0]!r}; it has {self.environment_names}.")
        mask = np.isin(self.environments, names)
        return self.select(~mask), self.select(mask)
