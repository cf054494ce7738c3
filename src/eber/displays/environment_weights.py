"""p(e|x): which training environments rows resemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from eber.displays.axes import axes_for, height_of, rows_on, shortened
from eber.displays.rows import checked_matrix, fitted_eber, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WRITTEN = 12
"""Columns for which a heat map has room to write its values."""
DARK_FROM = 0.6
"""Share of the largest value from which on a cell is so dark that its number is written in white."""


@dataclass
class EnvironmentWeightsDisplay:
    """Mean p(e|x) of groups of rows: a line for each group, a column for each training environment.

    Rows of training environments should have their weight on the diagonal, as far as x tells environments apart. A line
    of a new environment says which training environments it resembles; nearly equal values say that x does not tell, or
    that none is like it. Use `from_estimator` or `from_predictions` to create one.

    Parameters
    ----------
    weights : array of shape (groups, m)
        Mean over the rows of each group.
    groups, environments : sequence of str
        What lines and columns stand for.
    counts : array of shape (groups,)
        Rows of each group.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    image_ : matplotlib QuadMesh
    texts_ : list of matplotlib Text
        The numbers, row by row; empty where there are too many columns to write them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from eber import EBERClassifier, EnvironmentWeightsDisplay
    >>> from eber.datasets.parametric import draw
    >>> train = draw(random_state=0).train
    >>> clf = EBERClassifier(epochs=10, random_state=0).fit(train.X, train.y, environments=train.environments)
    >>> display = EnvironmentWeightsDisplay.from_estimator(clf, train.X, environments=train.environments)
    >>> display.weights.shape
    (6, 6)
    """

    weights: NDArray[np.float64]
    groups: Sequence[str]
    environments: Sequence[str]
    counts: NDArray[np.int64]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)
    image_: Any = field(init=False, repr=False)
    texts_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, environments: Any = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Ask a fitted classifier for p(e|x) of rows, and draw it.

        Parameters
        ----------
        estimator : fitted EBERClassifier, a pipeline that ends in one, or an EnvironmentSearch over one
        X : rows
        environments : array of shape (n,), optional
            Where each row comes from, training environments or new ones; without it all rows are one line.
        ax : matplotlib Axes, optional
            Where to draw; new axes when not given.
        **kwargs
            For matplotlib's `pcolormesh`.
        """
        eber, rows = fitted_eber(estimator, X, cls)
        p_e_given_x = eber.predict_environment_proba(rows)
        return cls.from_predictions(
            p_e_given_x, training_environments=eber.environments_, environments=environments, ax=ax, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        p_e_given_x: Any,
        *,
        training_environments: Sequence[Any] | NDArray[Any],
        environments: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw p(e|x) that is at hand.

        Parameters
        ----------
        p_e_given_x : array of shape (n, m)
        training_environments : sequence of length m
            What the columns stand for, such as `environments_` of the fit.
        environments, ax, **kwargs
            As for `from_estimator`.
        """
        names = [str(name) for name in training_environments]
        proba = checked_matrix(p_e_given_x, len(names), "p_e_given_x", f"{len(names)} training environments")
        groups = grouped(environments, len(proba))
        weights = np.stack([proba[rows].mean(0) for rows in groups.values()])
        counts = np.array([len(rows) for rows in groups.values()])
        return cls(weights, list(groups), names, counts).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, cmap: str = "Blues", colorbar: bool = True, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        cmap : str, default="Blues"
            Shades from zero to the largest value.
        colorbar : bool, default=True
        **kwargs
            For matplotlib's `pcolormesh`.
        """
        shape = self.weights.shape
        self.ax_, self.figure_ = axes_for(ax, height_of(shape[0]) + 0.4)
        options = {"cmap": cmap, "vmin": 0.0, "vmax": self.weights.max(), "edgecolors": "white", "linewidth": 1.5}
        edges = [np.arange(size + 1) - 0.5 for size in reversed(shape)]
        self.image_ = self.ax_.pcolormesh(*edges, self.weights, **{**options, **kwargs})
        rows_on(self.ax_, self.groups)
        few = shape[1] <= MAX_WRITTEN
        names = [shortened(name) for name in self.environments]
        slanted = max(map(len, names)) > 3
        self.ax_.set_xticks(range(shape[1]), names, rotation=40 if few and slanted else (0 if few else 90))
        for tick in self.ax_.get_xticklabels() if few and slanted else []:
            tick.set_horizontalalignment("right")
            tick.set_rotation_mode("anchor")
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.set(xlabel="training environment", ylabel="rows from" if len(self.groups) > 1 else "")
        self.texts_ = []
        for (i, j), value in np.ndenumerate(self.weights) if few else ():
            colour = "white" if value > DARK_FROM * self.weights.max() else "black"
            text = self.ax_.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize="small")
            self.texts_.append(text)
        if colorbar:
            self.figure_.colorbar(self.image_, ax=self.ax_, label="mean p(e|x)")
        return self
