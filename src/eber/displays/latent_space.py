"""E[z|x], where a fit puts rows in its latent space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from eber.displays.axes import axes_for, height_of, legend_above, rows_on, series_style, shortened
from eber.displays.rows import fitted_eber, grouped
from eber.displays.strips import strip_heights
from eber.estimators.validation import one_entry_per_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class LatentSpaceDisplay:
    """E[z|x] of rows: one coordinate as a strip of points for each environment, two as a scatter plot, by class.

    Where the assumption holds, a place in the latent space means the same in every environment: classes separate
    alike, and environments differ in how many rows they have where. Use `from_estimator` or `from_predictions` to
    create one.

    Parameters
    ----------
    z : array of shape (n, L)
    labels : array of shape (n,)
        What the colours stand for.
    groups : dict from a name to its rows
        The lines of strips.
    components : tuple of int
        Which columns of z are shown, one or two.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    points_ : list of matplotlib PathCollection
        One for each class.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from eber import EBERClassifier, LatentSpaceDisplay
    >>> from eber.datasets.prototypes import draw
    >>> train = draw(random_state=0).train
    >>> clf = EBERClassifier(epochs=5, random_state=0).fit(train.X, train.y, environments=train.environments)
    >>> display = LatentSpaceDisplay.from_estimator(clf, train.X, train.y, environments=train.environments)
    >>> display.z.shape
    (6000, 1)
    """

    z: NDArray[np.float64]
    labels: NDArray[Any]
    groups: dict[str, NDArray[np.int64]]
    components: tuple[int, ...]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)
    points_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        environments: Any = None,
        components: Sequence[int] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Ask a fitted classifier for E[z|x] of rows, and draw it.

        Parameters
        ----------
        estimator : fitted EBERClassifier, a pipeline that ends in one, or an EnvironmentSearch over one
            The columns of several members stand side by side; choose those of one with `components`.
        X : rows
        y : array of shape (n,), optional
            Their labels; without them, colours are of the predicted class.
        environments : array of shape (n,), optional
            Where each row comes from, training environments or new ones.
        components : sequence of one or two int, optional
            Columns of E[z|x] to show; the first two, or the only one.
        ax : matplotlib Axes, optional
            Where to draw; new axes when not given.
        **kwargs
            For matplotlib's `scatter`.
        """
        eber, rows = fitted_eber(estimator, X, cls)
        z = eber.transform(rows)
        labels = eber.predict(rows) if y is None else y
        return cls.from_predictions(z, labels, environments=environments, components=components, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        z: Any,
        y: Any,
        *,
        environments: Any = None,
        components: Sequence[int] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a representation that is at hand.

        Parameters
        ----------
        z : array of shape (n, L)
        y : array of shape (n,)
        environments, components, ax, **kwargs
            As for `from_estimator`.
        """
        points = np.asarray(z, dtype=np.float64)
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(f"z has shape {points.shape}; give a row for each row and a column for each coordinate.")
        chosen = tuple(range(min(2, points.shape[1]))) if components is None else tuple(components)
        if len(chosen) not in (1, 2) or not all(0 <= j < points.shape[1] for j in chosen):
            raise ValueError(f"components is {chosen}; choose one or two of the columns 0 to {points.shape[1] - 1}.")
        labels = one_entry_per_row(y, len(points), "y")
        return cls(points, labels, grouped(environments, len(points)), chosen).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For matplotlib's `scatter`.
        """
        strips = len(self.components) == 1
        self.ax_, self.figure_ = axes_for(ax, height_of(len(self.groups)) + 0.3 if strips else 4.4)
        x = self.z[:, self.components[0]]
        classes = np.unique(self.labels)
        heights = self._strips(classes) if strips else self.z[:, self.components[1]]
        self.points_ = []
        for k, label in enumerate(classes):
            mine = self.labels == label
            look = {**series_style(k), "s": 9, "alpha": 0.6, "linewidths": 0, "label": shortened(str(label))}
            self.points_.append(self.ax_.scatter(x[mine], heights[mine], **{**look, **kwargs}))
        if strips:
            rows_on(self.ax_, list(self.groups))
            self.ax_.set_xlabel("E[z|x]" if self.z.shape[1] == 1 else f"E[z|x], coordinate {self.components[0] + 1}")
        else:
            first, second = (f"E[z|x], coordinate {j + 1}" for j in self.components)
            self.ax_.set(xlabel=first, ylabel=second)
        legend_above(self.ax_, 6, enlarged=2.5)
        return self

    def _strips(self, classes: NDArray[Any]) -> NDArray[np.float64]:
        rng = np.random.default_rng(0)
        heights = np.empty(len(self.z))
        for place, rows in enumerate(self.groups.values()):
            for k, label in enumerate(classes):
                mine = rows[self.labels[rows] == label]
                heights[mine] = place + strip_heights(len(mine), k, len(classes), rng)
        return heights
