"""The sections on a new environment: how far off a probability may be there, and what a few labels would change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from eber.compare.few_labels import (
    DRAWS,
    HARMFUL,
    LabelGain,
    RateCheck,
    calibration,
    calibrations_of_others,
    label_gains,
    rate_checks,
    share_inside,
)
from eber.compare.record import ComparisonRecord
from eber.displays.colours import PALETTE, QUIET
from eber.evaluation.wording import format_interval, format_signed
from eber.io.text import count
from eber.report.charts import Chart, new_figure, plain, rows_on
from eber.report.held_out import HeldOut
from eber.tuning.calibration import MIN_ENVIRONMENTS, Calibration

LEVEL = 0.9
EXAMPLES = (0.05, 0.2, 0.5)
"""Probabilities of which it is said what they may be elsewhere."""
ROW_HEIGHT = 34


@dataclass(frozen=True)
class NewEnvironment:
    """What the two sections show of the advised method.

    Parameters
    ----------
    distance, labels : str
        The answers.
    distance_chart : Chart, optional
    label_heads, label_lines : sequences
        The table of what labels buy; no lines where it cannot be said.
    """

    distance: str
    labels: str
    distance_chart: Chart | None
    label_heads: Sequence[str]
    label_lines: Sequence[Sequence[str]]


LABEL_HEADS = (
    "Labels",
    "Held-out environments",
    "NLL without",
    "NLL with",
    "Change (95 % interval)",
    "Better in",
    f"Worse by more than {HARMFUL:g}",
)


def new_environment(held: HeldOut, record: ComparisonRecord) -> NewEnvironment:
    """Both sections, from predictions that the comparison has."""
    method = held.summary.recommended.method
    found = {fold: held.predictions(method, fold) for fold in held.summary.folds}
    rows = {fold: seeds[0] for fold, seeds in found.items() if seeds}
    priors = calibrations_of_others(rows)
    if not priors:
        few = f"That cannot be said from {held.summary.held_out}: it takes at least {MIN_ENVIRONMENTS + 1}."
        return NewEnvironment(few, few, None, LABEL_HEADS, ())
    everywhere = np.concatenate([labels for labels, _ in rows.values()])
    k = 1 if len(record.classes) == 2 else int(np.bincount(everywhere).argmax())
    event = f"{record.label} = {record.classes[k]}"
    checks, gains = rate_checks(rows, priors, k, LEVEL), label_gains(rows, priors)
    unit = "environment" if held.summary.alone else "group of environments"
    return NewEnvironment(
        f"{say_examples(calibration(rows), record, unit)}{say_checks(checks, event)}",
        say_gains(gains, method),
        distance_chart(checks, method, event),
        LABEL_HEADS,
        [_line(gain) for gain in gains],
    )


def say_examples(differ: Calibration, record: ComparisonRecord, unit: str) -> str:
    """What a probability may be in a new environment, for two classes; empty for more."""
    if len(record.classes) != 2:
        return ""
    given = np.array([[1 - p, p] for p in EXAMPLES])
    low, high = differ.interval(given, LEVEL)
    low, high = np.minimum(low, given), np.maximum(high, given)
    ranges = [f"{_percent(p)} is {_percent(low[i, 1])} to {_percent(high[i, 1])}" for i, p in enumerate(EXAMPLES)]
    return f"In 9 of 10 new {unit}s, what it calls {', '.join(ranges[:-1])} and {ranges[-1]}. "


def say_checks(checks: Sequence[RateCheck], event: str) -> str:
    """Whether rates lay where they were said to lie, and how much that says."""
    inside, low, high = share_inside(checks)
    n = len(checks)
    verdict = "is no sign against it" if low <= LEVEL <= high else "is fewer than it should be"
    return (
        f"Put to the test: the share of {event} lay within its {_percent(LEVEL)} interval in {inside} of "
        f"{n} held-out environments, each judged by how the others differ. {inside} of {n} {verdict}; so few "
        f"environments only say that it holds in {_percent(low)} to {_percent(high)} of all."
    )


def say_gains(gains: Sequence[LabelGain], method: str) -> str:
    """What labels of its own would do for a new environment."""
    if not gains:
        return "No held-out environment has rows enough to set some aside as labelled."
    parts = [f"{gain.n_labels} labels {_changed(gain)}" for gain in gains]
    clear = [gain for gain in gains if gain.high < 0]
    if clear:
        verdict = f"{clear[0].n_labels} labelled rows of the new environment already help {method}"
    elif any(gain.low > 0 for gain in gains):
        verdict = f"Not for {method}: labels made it worse here"
    else:
        verdict = f"There is no telling whether labels help {method} here"
    return f"{verdict}: {'; '.join(parts)}."


def distance_chart(checks: Sequence[RateCheck], method: str, event: str) -> Chart:
    """Of each held-out environment the interval of its rate, and the rate."""
    figure = new_figure(130 + ROW_HEIGHT * len(checks))
    middle = [float(special.expit((special.logit(c.low) + special.logit(c.high)) / 2)) for c in checks]
    names = [plain(check.environment) for check in checks]
    figure.add_scatter(
        x=middle,
        y=list(range(len(checks))),
        customdata=[f"{name}: {check.low:.2f} to {check.high:.2f}" for name, check in zip(names, checks, strict=True)],
        mode="markers",
        name=f"{_percent(LEVEL)} interval",
        marker={"symbol": "line-ew", "size": 14, "line": {"width": 6, "color": QUIET}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [check.high - x for check, x in zip(checks, middle, strict=True)],
            "arrayminus": [x - check.low for check, x in zip(checks, middle, strict=True)],
            "thickness": 6,
            "width": 0,
            "color": QUIET,
        },
        hovertemplate="%{customdata}<extra></extra>",
    )
    for title, symbol, colour, values in (
        ("said", "circle-open", PALETTE[1], [check.said for check in checks]),
        ("came", "diamond", PALETTE[0], [check.observed for check in checks]),
    ):
        figure.add_scatter(
            x=values,
            y=list(range(len(checks))),
            customdata=names,
            mode="markers",
            name=title,
            marker={"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2}},
            hovertemplate="%{customdata}: " + title + " %{x:.2f}<extra></extra>",
        )
    rows_on(figure, [check.environment for check in checks])
    figure.update_xaxes(title_text=f"share of {plain(event)}", range=[0, 1])
    lines = [
        (
            check.environment,
            str(check.n_rows),
            f"{check.said:.3f}",
            f"{check.low:.3f} to {check.high:.3f}",
            f"{check.observed:.3f}",
            "yes" if check.inside else "no",
        )
        for check in checks
    ]
    heads = ("Held out", "Rows", "Mean prediction", f"{_percent(LEVEL)} interval", "What came", "Inside")
    text = "; ".join(f"{line[0]} {line[3]}, came {line[4]}" for line in lines)
    return Chart("distance", figure, f"Where {method} said that the share of {event} lies: {text}.", heads, lines)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _changed(gain: LabelGain) -> str:
    better = f"{gain.better} of {count(gain.n_environments, 'held-out environment')}"
    if gain.after < gain.before:
        return f"lower its NLL from {gain.before:.3f} to {gain.after:.3f} on average, and in {better}"
    return f"raise its NLL from {gain.before:.3f} to {gain.after:.3f} on average, and lower it in {better}"


def _line(gain: LabelGain) -> list[str]:
    interval = "" if math.isnan(gain.low) else f" ({format_interval(gain.low, gain.high)})"
    return [
        str(gain.n_labels),
        str(gain.n_environments),
        f"{gain.before:.3f}",
        f"{gain.after:.3f}",
        f"{format_signed(gain.after - gain.before)}{interval}",
        f"{gain.better} of {gain.n_environments}",
        f"{_percent(gain.harmed)} of {gain.n_environments * DRAWS} draws",
    ]
