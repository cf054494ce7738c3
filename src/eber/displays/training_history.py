"""The loss and its terms, pass after pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from eber.displays.axes import axes_for, shortened
from eber.displays.colours import DASHES, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class TrainingHistoryDisplay:
    """Learning curves of a fit: a line for the loss and for each of its terms, a point for each pass over the rows.

    A loss that still falls at the end asks for more epochs. Use `from_estimator` or `from_history` to create one.

    Parameters
    ----------
    history : mapping from a term's name to its mean in each pass
        As `history_` of a fitted classifier.
    name : str, optional
        What the fit is called in the legend, where several are drawn on the same axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
    lines_ : list of matplotlib Line2D
        One for each term that is shown.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from eber import ERMClassifier, TrainingHistoryDisplay
    >>> from eber.datasets.prototypes import draw
    >>> train = draw(random_state=0).train
    >>> clf = ERMClassifier(epochs=3, random_state=0).fit(train.X, train.y)
    >>> display = TrainingHistoryDisplay.from_estimator(clf, terms=["loss"])
    >>> len(display.history["loss"])
    3
    """

    history: Mapping[str, Sequence[float]]
    name: str | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)
    lines_: list[Any] = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        terms: Sequence[str] | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the `history_` of a fitted classifier; of several members it is their mean.

        Parameters
        ----------
        estimator : fitted classifier of this package, or a pipeline that ends in one
        terms : sequence of str, optional
            Those to show, all when not given.
        name : str, optional
        ax : matplotlib Axes, optional
            Where to draw; new axes when not given.
        **kwargs
            For matplotlib's `plot`.
        """
        check_is_fitted(estimator)
        fitted = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        if not hasattr(fitted, "history_"):
            raise TypeError(f"{type(fitted).__name__} keeps no history_: give a fitted classifier of eber.")
        return cls.from_history(fitted.history_, terms=terms, name=name, ax=ax, **kwargs)

    @classmethod
    def from_history(
        cls,
        history: Mapping[str, Sequence[float]],
        *,
        terms: Sequence[str] | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a history that is at hand, for instance one that a callback of `fit` has collected.

        Parameters
        ----------
        history : mapping from a term's name to its mean in each pass
        terms, name, ax, **kwargs
            As for `from_estimator`.
        """
        return cls(history, name).plot(ax=ax, terms=terms, **kwargs)

    def plot(self, ax: Axes | None = None, *, terms: Sequence[str] | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Several fits may be drawn on the same axes.
        terms : sequence of str, optional
            Those to show, all when not given.
        **kwargs
            For matplotlib's `plot`.
        """
        shown = list(self.history) if terms is None else list(terms)
        unknown = [term for term in shown if term not in self.history]
        if unknown:
            raise ValueError(f"There is no term {unknown[0]!r}; this fit has {', '.join(self.history)}.")
        self.ax_, self.figure_ = axes_for(ax)
        self.lines_ = []
        drawn = len(self.ax_.lines)
        for k, term in enumerate(shown, start=drawn):
            values = np.asarray(self.history[term], dtype=np.float64)
            words = term.replace("_", " ")
            label = words if self.name is None else f"{shortened(self.name)}, {words}" if len(shown) > 1 else self.name
            look = {
                "color": PALETTE[k % len(PALETTE)],
                "linestyle": DASHES[(k // len(PALETTE) + k) % len(DASHES)],
                "linewidth": 2.4 if term == "loss" else 1.5,
                "label": label,
            }
            self.lines_ += self.ax_.plot(np.arange(1, len(values) + 1), values, **{**look, **kwargs})
        self.ax_.set(xlabel="pass over the rows (epoch)", ylabel=shown[0] if len(shown) == 1 else "mean, nats a row")
        self.ax_.grid(axis="y", alpha=0.25, linewidth=0.6)
        self.ax_.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return self
