"""What a summary says in words: how the tests came out, and where our figures are not the paper's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from eber.evaluation.metrics import Quantity
from eber.evaluation.wording import LEVEL, format_estimate, listed, p_with_sign
from eber.methods import find_method
from eber.runs.holdout_summary import HoldoutSummary
from eber.runs.results import MAX_COUNTED_DEVIATION, MAX_USUAL_DEVIATION, Estimate, Role, Summary
from eber.runs.spec import SECONDS

NO_TIMES = (
    "No times: fits of several seeds and penalty weights are trained side by side here, so that none has a time of its "
    "own; docs/speed.md has what fits cost when they are measured alone."
)
FEW_SEEDS = 5
"""A test on fewer seeds says how many they are."""


def verdict(summary: Summary | HoldoutSummary) -> str:
    """How the reference method fared against the others, in no stronger words than the tests allow."""
    sentences = _family_verdict(summary, "method", summary.reference)
    if isinstance(summary, Summary):
        sentences += [*_family_verdict(summary, "tuned", summary.tuned_reference), *_below_the_floor(summary)]
    return " ".join(sentences)


def _below_the_floor(summary: Summary) -> list[str]:
    """What every method has to beat, where the reference method does not."""
    metric = summary.primary
    means = {row.label: row.estimates[metric.name].mean for row in summary.rows if metric.name in row.estimates}
    return [
        f"{row.label} has a better {metric.in_words} than {summary.reference} ({metric.format(means[row.label])})."
        for row in summary.rows
        if row.role == "floor" and metric.is_better(means[row.label], means.get(summary.reference, math.nan))
    ]


def _family_verdict(summary: Summary | HoldoutSummary, role: Role, reference: str) -> list[str]:
    """The same of the rows that were tested together."""
    tested = [row for row in summary.rows if row.role == role and row.comparison is not None]
    groups: dict[str, list[str]] = {"better": [], "worse": [], "open": [], "untested": []}
    for row in tested:
        comparison = row.comparison
        assert comparison is not None
        if math.isnan(comparison.p_corrected):
            groups["untested"].append(f"{row.label} ({comparison.reason})")
        elif comparison.p_corrected < LEVEL:
            groups["better"].append(f"{row.label} (p {p_with_sign(comparison.p_corrected)})")
        elif comparison.high < 0:
            metric = summary.primary
            interval = f"{metric.format(comparison.low)} to {metric.format(comparison.high)}".replace("-", "−")
            groups["worse"].append(f"{row.label} (advantage {interval}, 95 % interval)")
        else:
            side = "ahead" if comparison.advantage > 0 else "behind" if comparison.advantage < 0 else "level"
            groups["open"].append(f"{row.label} ({side}, p {p_with_sign(comparison.p_corrected)})")
    noun, sentences = summary.primary.in_words, []
    if groups["better"]:
        few = _few_seeds(summary, role)
        sentences.append(
            f"The {noun} of {reference} is significantly better than that of {listed(groups['better'])}{few}."
        )
    if groups["worse"]:
        sentences.append(f"The {noun} of {reference} is worse than that of {listed(groups['worse'])}.")
    if groups["open"]:
        sentences.append(f"No significant advantage in {noun} is shown over {listed(groups['open'])}.")
    if groups["untested"]:
        sentences.append(f"Not tested: {listed(groups['untested'])}.")
    return sentences


def _few_seeds(summary: Summary | HoldoutSummary, role: Role) -> str:
    """How few seeds a test rests on, where they are few; that environments are few is said by `caution`."""
    if isinstance(summary, HoldoutSummary):
        return ""
    fewest = min(row.comparison.n_units for row in summary.rows if row.role == role and row.comparison is not None)
    return f", on {fewest} seeds only" if fewest < FEW_SEEDS else ""


def deviations(summary: Summary) -> list[str]:
    """A sentence for each mean that differs from the paper's by more than two of the paper's standard deviations.

    Times are left out: they are of other machines.
    """
    return [
        _deviation(row.label, column, row.estimates[column.name], summary.source)
        for row in summary.rows
        for column in summary.columns
        if column.name != SECONDS.name
        and column.name in row.estimates
        and abs(row.estimates[column.name].deviation) > MAX_USUAL_DEVIATION
    ]


def seeds_of(summary: Summary) -> str:
    """How many seeds the rows rest on."""
    counts = {row.n_seeds for row in summary.rows}
    if len(counts) == 1:
        (n,) = counts
        return f"{n} seed" if n == 1 else f"{n} seeds"
    return f"seeds, as many as each row has ({', '.join(f'{row.label} {row.n_seeds}' for row in summary.rows)})"


def caption(summary: Summary, *, with_deviations: bool = True) -> str:
    """What a reader must know to read the table, where our deviations from the paper stand in brackets, or do not."""
    parts = ["One seed." if seeds_of(summary) == "1 seed" else f"Mean ± standard deviation over {seeds_of(summary)}."]
    parts += changed(summary.changes)
    if summary.source:
        brackets = "; in brackets our mean minus the paper's, in the paper's standard deviations"
        parts.append(f"Paper: {summary.source}{brackets if with_deviations else ''}.")
    parts += how_tested(summary, "seed")
    parts += [
        f"{row.label}: {find_method(row.label).purpose}; tested against nothing."
        for row in summary.rows
        if row.role == "floor"
    ]
    if summary.penalty_weights:
        chosen = "; ".join(f"{label} {_counted(weights)}" for label, weights in summary.penalty_weights.items())
        parts.append(f"Penalty weights chosen on {summary.weights_chosen_on}, by seed: {chosen}.")
    if summary.fitted_together:
        parts.append(NO_TIMES)
    return " ".join(parts)


def changed(changes: Mapping[str, Any]) -> list[str]:
    """A sentence on the parameters that a run changed; none where it changed none."""
    pairs = ", ".join(f"{name} = {value}" for name, value in changes.items())
    return [f"Changed for this run: {pairs}."] if changes else []


def how_tested(summary: Summary | HoldoutSummary, unit: str) -> list[str]:
    """A sentence on the tests of a table; none where nothing was tested."""
    if not any(row.comparison for row in summary.rows):
        return []
    against, over = f"{summary.reference} against each method", "the methods of this table"
    if isinstance(summary, Summary) and summary.tuned_reference:
        against += f" and of {summary.tuned_reference} against each tuned one"
        over = "the methods and over the tuned ones of this table, each apart"
    return [
        f"p: one-sided t-test, paired by {unit}, of {against} on {summary.primary.in_words}, Benjamini-Yekutieli "
        f"corrected over {over}."
    ]


def _counted(weights: tuple[float, ...]) -> str:
    """Weights, the most frequent first, with how many seeds chose them where they did not all choose the same."""
    counts = Counter(weights).most_common()
    return ", ".join(
        f"{weight:g}" if len(counts) == 1 else f"{weight:g} ({n} of {len(weights)})" for weight, n in counts
    )


def _counted_deviation(estimate: Estimate) -> str:
    size = abs(estimate.deviation)
    return f"{size:.1f}" if size <= MAX_COUNTED_DEVIATION else f"more than {MAX_COUNTED_DEVIATION:.0f}"


def _deviation(label: str, column: Quantity, estimate: Estimate, source: str) -> str:
    assert estimate.paper is not None
    direction = "above" if estimate.deviation > 0 else "below"
    judgement = ""
    if column.higher_is_better is not None:
        judgement = " (better)" if column.is_better(estimate.mean, estimate.paper[0]) else " (worse)"
    ours, printed = format_estimate(column, estimate.mean, estimate.sd), format_estimate(column, *estimate.paper)
    return (
        f"{label}: {column.label} {ours} is {_counted_deviation(estimate)} of the paper's standard deviations "
        f"{direction} its {printed} in {source}{judgement}."
    )
