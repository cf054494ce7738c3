"""What follows when everybody above a threshold is treated: counts at every per cent, and decision curves.

A row is called positive when its probability is at least t. The net benefit (Vickers and Elkin 2006) is

    TP/n - FP/n * t / (1 - t)

the share of true positives, less that of false ones at the rate at which somebody who acts from t on weighs them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from eber.displays.colours import PALETTE, QUIET
from eber.report.charts import Chart, new_figure
from eber.report.held_out import HeldOut

PERCENT = np.arange(101)
SHOWN_PERCENT = (1, *range(5, 100, 5))
"""Of the curve, in the table beside it."""
ALL = "All together"


@dataclass(frozen=True)
class Counts:
    """Rows of one environment, or of all, that are called positive at each threshold.

    Parameters
    ----------
    name : str
    positive, negative : int
        Rows with and without the event.
    true_positive, false_positive : array of shape (101,)
        Of those, the rows whose probability is at least 0, 0.01, ..., 1.
    """

    name: str
    positive: int
    negative: int
    true_positive: NDArray[np.int64]
    false_positive: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Rows."""
        return self.positive + self.negative

    def measures(self, percent: int) -> dict[str, tuple[int, int]]:
        """Each share at a threshold as (so many, of so many)."""
        tp, fp = int(self.true_positive[percent]), int(self.false_positive[percent])
        return {
            "called": (tp + fp, self.n),
            "sensitivity": (tp, self.positive),
            "specificity": (self.negative - fp, self.negative),
            "ppv": (tp, tp + fp),
            "npv": (self.negative - fp, self.n - tp - fp),
        }

    def net_benefit(self, percent: int) -> float:
        """Of treating those who are called positive; NaN at 100 %."""
        return self._benefit(int(self.true_positive[percent]), int(self.false_positive[percent]), percent)

    def net_benefit_of_all(self, percent: int) -> float:
        """Of treating everybody."""
        return self._benefit(self.positive, self.negative, percent)

    def _benefit(self, tp: int, fp: int, percent: int) -> float:
        return math.nan if percent == 100 else (tp - fp * percent / (100 - percent)) / self.n


def threshold_counts(held: HeldOut, method: str, k: int) -> list[Counts]:
    """Counts of class k against the others, of a method: all folds together first, then one by one, seeds together."""
    counts = []
    for fold in held.summary.folds:
        if parts := held.predictions(method, fold):
            labels, proba = (np.concatenate([part[j] for part in parts]) for j in (0, 1))
            counts.append(count_at_thresholds(fold, labels == k, proba[:, k]))
    total = Counts(
        ALL,
        sum(each.positive for each in counts),
        sum(each.negative for each in counts),
        np.sum([each.true_positive for each in counts], axis=0),
        np.sum([each.false_positive for each in counts], axis=0),
    )
    return [total, *counts]


def count_at_thresholds(name: str, event: NDArray[np.bool_], probability: NDArray[np.float64]) -> Counts:
    """Rows with probability at least t, for each t, of those with and without the event."""
    inside, outside = np.sort(probability[event]), np.sort(probability[~event])
    return Counts(
        name,
        len(inside),
        len(outside),
        len(inside) - np.searchsorted(inside, PERCENT / 100, side="left"),
        len(outside) - np.searchsorted(outside, PERCENT / 100, side="left"),
    )


def first_threshold(total: Counts) -> int:
    """Where the reader begins: the share of rows with the event, in per cent."""
    return int(np.clip(round(100 * total.positive / total.n), 1, 99))


def useful_range(total: Counts) -> tuple[int, int] | None:
    """The longest run of thresholds, in per cent, at which predictions beat treating all and treating nobody."""
    better = [
        percent
        for percent in range(1, 100)
        if total.net_benefit(percent) > max(total.net_benefit_of_all(percent), 0.0) + 1e-12
    ]
    runs = np.split(better, np.flatnonzero(np.diff(better) > 1) + 1) if better else []
    longest = max(runs, key=len, default=None)
    return None if longest is None else (int(longest[0]), int(longest[-1]))


def counts_as_json(classes: Sequence[str], counts: Sequence[Sequence[Counts]]) -> Markup:
    """All that the page's script needs, for a `<script type="application/json">`; no text in it can end that."""
    content = {
        "classes": list(classes),
        "counts": [
            [
                {
                    "name": each.name,
                    "positive": each.positive,
                    "negative": each.negative,
                    "tp": each.true_positive.tolist(),
                    "fp": each.false_positive.tolist(),
                }
                for each in of_class
            ]
            for of_class in counts
        ],
    }
    return Markup(json.dumps(content, separators=(",", ":")).replace("<", r"\u003c"))


def decision_chart(total: Counts, method: str, percent: int) -> Chart:
    """Decision curves of all held-out rows: the method, treating all, treating nobody. A script shows the others."""
    figure = new_figure(380)
    x = list(range(1, 100))
    curves = (
        (method, [total.net_benefit(p) for p in x], {"color": PALETTE[0], "width": 2.5}),
        ("treat all", [total.net_benefit_of_all(p) for p in x], {"color": PALETTE[1], "width": 2, "dash": "dash"}),
        ("treat nobody", [0.0] * len(x), {"color": QUIET, "width": 2, "dash": "dot"}),
    )
    for name, y, line in curves:
        figure.add_scatter(
            x=x, y=y, mode="lines", name=name, line=line, hovertemplate="%{x} %: %{y:.3f}<extra>" + name + "</extra>"
        )
    top = max(total.positive / total.n, 0.01)
    figure.update_xaxes(title_text="threshold, %", range=[0, 100])
    figure.update_yaxes(title_text="net benefit", range=[-0.25 * top, 1.1 * top])
    figure.add_shape(
        type="line",
        x0=percent,
        x1=percent,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": QUIET, "width": 1.5, "dash": "dot"},
    )
    lines = [
        [f"{p} %", number(total.net_benefit(p)), number(total.net_benefit_of_all(p)), number(0.0)]
        for p in SHOWN_PERCENT
    ]
    heads = ("Threshold", method, "Treat all", "Treat nobody")
    return Chart("decision", figure, f"Net benefit of {method} against treating all and nobody.", heads, lines)


def threshold_lines(counts: Sequence[Counts], percent: int) -> list[list[str]]:
    """The table at one threshold, as the script writes it at the others."""
    return [
        [
            each.name,
            *(share(*pair, "\n") for pair in each.measures(percent).values()),
            number(each.net_benefit(percent)),
        ]
        for each in counts
    ]


def share(part: int, of: int, between: str = " (") -> str:
    """A share in per cent with what it is made of, in brackets or below; a dash where there is nothing to share."""
    if not of:
        return "–"
    return f"{100 * part / of:.1f} %{between}{part} of {of}{')' if '(' in between else ''}"


def number(value: float) -> str:
    """A net benefit; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:z.3f}".replace("-", "−")
