"""What adapting to the rows of a new environment did to the mixture of environments, and what it did before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from eber.displays.axes import axes_for, height_of, legend_above, rows_on
from eber.displays.colours import PALETTE, QUIET
from eber.displays.rows import fitted_eber
from eber.method.adaptation import AdaptationRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("mixture", "record")


@dataclass
class AdaptationDisplay:
    """The mixture of training environments before and after adapting to new rows, or the record of adapting.

    The record is what adapting did to the NLL in training environments that were left out, which `EnvironmentSearch`
    keeps. Use `from_estimator` or `from_predictions` to create one.

    Parameters
    ----------
    before, after : arrays of shape (m,)
        How much each training environment counts.
    environments : sequence of str
    reasons : tuple of str
        Why the adaptation should not be trusted; empty when nothing speaks against it.
    record : AdaptationRecord, optional

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from eber import AdaptationDisplay, EBERClassifier
    >>> from eber.datasets.prototypes import draw
    >>> data = draw(random_state=0)
    >>> clf = EBERClassifier(epochs=10, random_state=0)
    >>> clf = clf.fit(data.train.X, data.train.y, environments=data.train.environments)
    >>> display = AdaptationDisplay.from_estimator(clf, data.test.X)
    >>> display.environments[display.after.argmax()]  # the training environment that is nearest to the new one
    '5'
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    environments: Sequence[str]
    reasons: tuple[str, ...] = ()
    record: AdaptationRecord | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, kind: str = "mixture", ax: Axes | None = None, force: bool = False
    ) -> Self:
        """Adapt a fitted classifier to rows, and draw what that did; the classifier itself is not changed.

        Parameters
        ----------
        estimator : fitted EBERClassifier, a pipeline that ends in one, or an EnvironmentSearch over one
        X : rows of the new environment, optional
            Not needed for a copy that `adapt` has returned, nor for the record.
        kind : {"mixture", "record"}, default="mixture"
        ax : matplotlib Axes, optional
            Where to draw; new axes when not given.
        force : bool, default=False
            As for `EBERClassifier.adapt`.
        """
        eber, rows = fitted_eber(estimator, X, cls)
        before, adapted = eber.environment_mixture(before_adapting=True), eber
        if rows is not None:
            adapted = eber.adapt(rows, force=force)
        elif not hasattr(eber, "adaptation_") and kind == "mixture":
            raise ValueError("This classifier was not adapted: give X, the unlabelled rows to adapt to.")
        reasons = adapted.adaptation_.reasons if hasattr(adapted, "adaptation_") else ()
        return cls.from_predictions(
            before,
            adapted.environment_mixture(),
            environments=eber.environments_,
            reasons=reasons,
            record=getattr(eber, "adaptation_record_", None),
            kind=kind,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        before: Any,
        after: Any,
        *,
        environments: Sequence[Any] | NDArray[Any],
        reasons: tuple[str, ...] = (),
        record: AdaptationRecord | None = None,
        kind: str = "mixture",
        ax: Axes | None = None,
    ) -> Self:
        """Draw mixtures that are at hand.

        Parameters
        ----------
        before, after : arrays of shape (m,)
        environments : sequence of length m
        reasons, record
            As for the class.
        kind, ax
            As for `from_estimator`.
        """
        names = [str(name) for name in environments]
        mixtures = [np.asarray(mixture, dtype=np.float64) for mixture in (before, after)]
        for which, mixture in zip(("before", "after"), mixtures, strict=True):
            if mixture.shape != (len(names),):
                raise ValueError(f"{which} has shape {mixture.shape}; give a weight for each of {len(names)} names.")
        return cls(mixtures[0], mixtures[1], names, tuple(reasons), record).plot(ax=ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: str = "mixture") -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {"mixture", "record"}, default="mixture"
            The mixture before and after, or NLL before and after in environments that were left out.
        """
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; choose 'mixture' or 'record'.")
        if kind == "record" and self.record is None:
            raise ValueError(
                "This classifier has no record of adapting: EnvironmentSearch(EBERClassifier(...)) keeps one in the "
                "adaptation_record_ of what it chose."
            )
        names = self.environments if kind == "mixture" or self.record is None else self.record.environments
        self.ax_, self.figure_ = axes_for(ax, height_of(len(names)) + 0.2)
        if kind == "mixture":
            title = "nothing speaks against it" if not self.reasons else "not to be trusted: see reasons"
            self._dumbbells(self.before, self.after, names)
            self.ax_.set(xlabel="weight in the mixture", xlim=(-0.02, None))
        elif self.record is not None:
            title = "adapting helped" if self.record.helped else "adapting did not help"
            self._dumbbells(self.record.before, self.record.after, names)
            self.ax_.set(xlabel="NLL in an environment that was left out (lower is better)")
        legend_above(self.ax_, 2)
        self.ax_.set_title(title, loc="left", fontsize="medium", pad=24)  # above the legend
        return self

    def _dumbbells(self, before: NDArray[np.float64], after: NDArray[np.float64], names: Sequence[str]) -> None:
        places = np.arange(len(names))
        self.ax_.hlines(places, before, after, color=QUIET, linewidth=1.5, zorder=1)
        self.ax_.plot(before, places, "o", color=QUIET, markerfacecolor="white", markersize=8, label="before adapting")
        self.ax_.plot(after, places, "D", color=PALETTE[0], markersize=7, label="after")
        rows_on(self.ax_, names)
        self.ax_.grid(axis="x", alpha=0.25, linewidth=0.6)
