"""Where the uncertainty of predictions comes from: within environments, or between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.displays.axes import axes_for, height_of, legend_above, rows_on
from eber.displays.colours import PALETTE
from eber.displays.rows import fitted_eber, grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "within_environments": "within: x does not tell y",
    "between_environments": "between: environments disagree",
    "between_members": "between members: fits disagree",
}
"""Columns of `EBERClassifier.explain_uncertainty` that add up to the total, and what they say."""


@dataclass
class UncertaintySplitDisplay:
    """Mean entropy of the predictions for groups of rows, split into where it comes from.

    What lies within environments would stay if one knew where a row comes from; what lies between them would go. Use
    `from_estimator` or `from_predictions` to create one.

    Parameters
    ----------
    means : DataFrame
        A row for each group, and the columns `within_environments` and `between_environments`, for a fit of several
        members also `between_members`; in nats.
    counts : array of shape (groups,)
        Rows of each group.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    bars_ : list of matplotlib BarContainer
        One for each column of `means`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from eber import EBERClassifier, UncertaintySplitDisplay
    >>> from eber.datasets.prototypes import draw
    >>> data = draw(random_state=0)
    >>> clf = EBERClassifier(epochs=5, random_state=0)
    >>> clf = clf.fit(data.train.X, data.train.y, environments=data.train.environments)
    >>> display = UncertaintySplitDisplay.from_estimator(clf, data.test.X, environments=data.test.environments)
    >>> list(display.means.columns)
    ['within_environments', 'between_environments']
    """

    means: pd.DataFrame
    counts: NDArray[np.int64]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)
    bars_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, environments: Any = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Ask a fitted classifier where its uncertainty comes from, and draw it.

        Parameters
        ----------
        estimator : fitted EBERClassifier, a pipeline that ends in one, or an EnvironmentSearch over one
        X : rows
        environments : array of shape (n,), optional
            Where each row comes from, training environments or new ones, or any other grouping; without it there is
            one bar.
        ax : matplotlib Axes, optional
            Where to draw; new axes when not given.
        **kwargs
            For matplotlib's `barh`.
        """
        eber, rows = fitted_eber(estimator, X, cls)
        return cls.from_predictions(eber.explain_uncertainty(rows), environments=environments, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, uncertainty: pd.DataFrame, *, environments: Any = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw a split that is at hand.

        Parameters
        ----------
        uncertainty : DataFrame
            What `EBERClassifier.explain_uncertainty` returned.
        environments, ax, **kwargs
            As for `from_estimator`.
        """
        lacking = [name for name in list(PARTS)[:2] if name not in uncertainty]
        if lacking:
            raise ValueError(
                f"uncertainty has no column {lacking[0]!r}; give what EBERClassifier.explain_uncertainty returned."
            )
        if len(uncertainty) == 0:
            raise ValueError("uncertainty has no rows; there is nothing to show.")
        parts = uncertainty[[name for name in PARTS if name in uncertainty]]
        groups = grouped(environments, len(parts))
        means = pd.DataFrame({name: parts.iloc[rows].mean() for name, rows in groups.items()}).T
        return cls(means, np.array([len(rows) for rows in groups.values()])).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For matplotlib's `barh`.
        """
        self.ax_, self.figure_ = axes_for(ax, height_of(len(self.means)))
        places = np.arange(len(self.means))
        start = np.zeros(len(self.means))
        self.bars_ = []
        for colour, part in zip(PALETTE, self.means.columns, strict=False):
            values = self.means[part].to_numpy()
            look = {"height": 0.65, "color": colour, "edgecolor": "white", "linewidth": 1.0, "label": PARTS[part]}
            self.bars_.append(self.ax_.barh(places, values, left=start, **{**look, **kwargs}))
            start = start + values
        rows_on(self.ax_, [str(name) for name in self.means.index])
        self.ax_.set_xlabel("mean entropy of p(y|x), nats")
        legend_above(self.ax_, 2)
        return self
