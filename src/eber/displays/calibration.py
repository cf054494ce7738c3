"""Calibration by environment: what was promised and what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from eber.displays.axes import axes_for, series_style, shortened
from eber.displays.colours import PALETTE, QUIET
from eber.displays.rows import grouped
from eber.estimators.validation import one_entry_per_row
from eber.evaluation.metrics import ECE_BINS, Reliability, expected_calibration_error, reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_CURVES = 8
"""Environments that have a colour and a mark of their own; more are drawn in grey below the curve of all rows."""


@dataclass
class EnvironmentCalibrationDisplay:
    """A calibration curve for each environment.

    On the diagonal, of the rows that were promised 30 % so many have the event; below it, probabilities are too high
    there. Curves that lie apart say that one recalibration for all environments cannot help. Use `from_estimator` or
    `from_predictions` to create one.

    Parameters
    ----------
    curves : mapping from an environment's name to `eber.evaluation.metrics.Reliability`
        Rows, mean probability and share of events in each bin.
    errors : mapping from an environment's name to float
        Expected calibration error over ten bins, whatever the bins of the curves are.
    pooled : Reliability
        Of all rows together.
    event : str
        What the probabilities are of.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    lines_ : list of matplotlib Line2D
        One for each environment, in the order of `curves`; where they are grey, that of all rows follows.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.linear_model import LogisticRegression
    >>> from eber import EnvironmentCalibrationDisplay
    >>> from eber.datasets.prototypes import draw
    >>> train = draw(random_state=0).train
    >>> clf = LogisticRegression().fit(train.X, train.y)
    >>> display = EnvironmentCalibrationDisplay.from_estimator(
    ...     clf, train.X, train.y, environments=train.environments, n_bins=5
    ... )
    >>> sorted(display.errors)
    ['0', '1', '2', '3', '4', '5']
    """

    curves: Mapping[str, Reliability]
    errors: Mapping[str, float]
    pooled: Reliability
    event: str
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)
    lines_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        environments: Any = None,
        n_bins: int = ECE_BINS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Ask any fitted classifier for probabilities, and draw how they compare with the labels.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : rows and their labels
        environments : array of shape (n,), optional
            Where each row comes from, training environments or new ones; without it there is one curve.
        n_bins : int, default=10
            Bins of equal width; fewer have more rows each, which small environments need.
        ax : matplotlib Axes, optional
            Where to draw; new axes when not given.
        **kwargs
            For `plot`.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{cls.__name__} needs probabilities, and {type(estimator).__name__} has no predict_proba.")
        proba = estimator.predict_proba(X)
        return cls.from_predictions(
            y, proba, classes=estimator.classes_, environments=environments, n_bins=n_bins, ax=ax, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        classes: Sequence[Any] | NDArray[Any] = (0, 1),
        environments: Any = None,
        n_bins: int = ECE_BINS,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw probabilities that are at hand.

        Parameters
        ----------
        y_true : array of shape (n,)
        proba : array of shape (n, K)
            Of two classes, those of the second are shown; of more, the confidence in the predicted one.
        classes : sequence of length K, default=(0, 1)
            The class of each column.
        environments, n_bins, ax, **kwargs
            As for `from_estimator`.
        """
        if n_bins < 1:
            raise ValueError(f"n_bins is {n_bins}; a curve needs at least one bin.")
        labels, p = np.asarray(y_true), np.asarray(proba)
        pooled = reliability(labels, p, classes, n_bins)  # refuses what are no probabilities, by row
        one_entry_per_row(labels, len(p), "y_true")
        groups = grouped(environments, len(labels))
        curves = {name: reliability(labels[rows], p[rows], classes, n_bins) for name, rows in groups.items()}
        errors = {name: expected_calibration_error(labels[rows], p[rows], classes) for name, rows in groups.items()}
        event = str(np.asarray(classes)[1]) if len(classes) == 2 else ""
        return cls(curves, errors, pooled, event).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, intervals: bool = False, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        intervals : bool, default=False
            Draw the 95 % interval (Clopper and Pearson) of each share.
        **kwargs
            For matplotlib's `plot`.
        """
        self.ax_, self.figure_ = axes_for(ax, 4.4, 6.8)
        self.ax_.plot([0, 1], [0, 1], color=QUIET, linestyle=":", linewidth=1, zorder=1)
        few = len(self.curves) <= MAX_CURVES
        self.lines_ = []
        for k, (name, curve) in enumerate(self.curves.items()):
            label = f"{shortened(name)} (ECE {self.errors[name]:.3f})"
            quiet = {"color": QUIET, "alpha": 0.5, "linewidth": 0.8}
            look = {"label": label, "linewidth": 1.5, "markersize": 6, **series_style(k)} if few else quiet
            self._draw(curve, intervals and few, {**look, **kwargs})
        if not few:
            self.lines_[-1].set_label(f"{len(self.curves)} environments")
            look = {"label": "all rows", "linewidth": 2.2, "marker": "o", "color": PALETTE[0]}
            self._draw(self.pooled, intervals, {**look, **kwargs})
        what = f"p({shortened(self.event)})" if self.event else "confidence"
        self.ax_.set(xlabel=f"promised {what}", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        self.ax_.set_aspect("equal")
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        self.ax_.legend(frameon=False, **beside if few else {"loc": "lower right"})
        return self

    def _draw(self, curve: Reliability, intervals: bool, look: dict[str, Any]) -> None:
        known = curve.count > 0
        promised, observed = curve.promised[known], curve.observed[known]
        if intervals:
            low, high = curve.interval()
            self.ax_.vlines(promised, low[known], high[known], color=look.get("color"), linewidth=1, alpha=0.6)
        self.lines_ += self.ax_.plot(promised, observed, **look)
