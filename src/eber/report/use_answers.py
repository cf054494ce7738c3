"""What a reader can do with the advised method: the verdict in two words, thresholds, columns, adaptation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eber.compare.column_summary import MIN_FOLDS, ColumnSummary, mean_interval
from eber.compare.summary import ComparisonSummary, MethodSummary
from eber.evaluation.wording import format_interval, format_signed, listed, p_with_sign
from eber.io.text import count
from eber.method.inference import entropy
from eber.methods import NO_MODEL
from eber.report.held_out import EBER, HeldOut
from eber.report.thresholds import Counts, share, useful_range

MAX_NAMED = 5


@dataclass(frozen=True)
class Badge:
    """The verdict in a few words.

    Parameters
    ----------
    text : str
    kind : {"good", "even", "bad"}
        Its colour on the page.
    """

    text: str
    kind: Literal["good", "even", "bad"]


def badge(summary: ComparisonSummary) -> Badge:
    """A clear winner, a tie, nothing better than the average rate, or too few environments to say."""
    if len(summary.folds) < MIN_FOLDS:
        return Badge("Not enough environments", "bad")
    if not summary.beats_no_model and summary.ahead_everywhere:
        return Badge("Too few environments to be sure", "even")
    if not summary.beats_no_model:
        return Badge("Nothing better than the average rate", "bad")
    if len(summary.rows) == 1:
        return Badge("Compared with nothing", "even")
    if all(row in (summary.leader, summary.no_model) for row in summary.rows):
        return Badge("Better than the average rate", "good")
    if summary.rivals:
        return Badge("Tie", "even")
    return Badge("Clear winner", "good")


def reference(summary: ComparisonSummary) -> str:
    """Whether the advised method is better than saying the average rate to everybody."""
    metric, leader, advised, average = summary.metric, summary.leader, summary.recommended, summary.no_model
    if average is None:
        return (
            f"Whether {advised.method} is better than giving everybody the average rate is not known: {NO_MODEL}, the "
            "share that each class has in the other environments, was not among the methods that were compared. Name "
            "it too, and the answer stands here."
        )
    if math.isnan(average.means[metric.name]):
        return ""
    rate = (
        "Without any method, the share that each class has in the other environments, given to every row alike "
        f"({NO_MODEL} in the ranking), has {metric.label} {metric.format(average.means[metric.name])}"
    )
    if len(summary.folds) < MIN_FOLDS:
        return f"{rate}; {summary.held_out} cannot show whether a method is better."
    if not summary.beats_no_model and summary.ahead_everywhere:
        return f"{rate}; {leader.method} does better in each of {summary.held_out}, too few for a test to confirm it."
    if not summary.beats_no_model or average.test is None:
        return (
            f"{rate}, and no method is significantly better: nothing here is known to predict a new environment better "
            "than its average rate."
        )
    better = f"{rate}; {leader.method} is significantly better (p {p_with_sign(average.test.p_corrected)})"
    if advised is leader:
        return f"{better}."
    own = metric.format(advised.means[metric.name])
    return f"{better}. {advised.method}, which is advised and cannot be told from it, has {own}."


def action(counts: Sequence[Counts], method: str, event: str, percent: int) -> str:
    """From which probabilities acting on the method does good, and what it finds at the first threshold."""
    total = counts[0]
    found = total.measures(percent)
    at_first = (
        f"At {percent} %, the share of {event} among all held-out rows, it finds {share(*found['sensitivity'])} of "
        f"them, and {share(*found['ppv'])} of those that it calls are."
    )
    helpful = useful_range(total)
    if helpful is None:
        return (
            f"No: at no threshold is treating those whom {method} calls better than treating everybody or nobody. "
            f"{at_first}"
        )
    where = f"from {helpful[0]} % on" if helpful[0] == helpful[1] else f"between {helpful[0]} % and {helpful[1]} %"
    better = sum(each.net_benefit(percent) > max(each.net_benefit_of_all(percent), 0.0) for each in counts[1:])
    return (
        f"Yes, if you act from a probability {where} on: there {method} is better than treating everybody and than "
        f"treating nobody, over all held-out environments together. {at_first} There it is better than both in "
        f"{better} of {count(len(counts) - 1, 'held-out environment')}."
    )


def importance(columns: Sequence[ColumnSummary], method: str) -> str:
    """Which columns the method lives on, and which stop working somewhere."""
    if not columns:
        return "This was not measured when these results were computed; give the command again into another folder."
    if math.isnan(columns[0].low):
        order = listed([column.name for column in columns[:MAX_NAMED]])
        return f"{order} raise the NLL of {method} most when they are shuffled, in too few environments to be sure."
    mattering = [column.name for column in columns if column.matters]
    if not mattering:
        return f"None is clearly above zero over the held-out environments: {method} lives on no single column."
    more = f" and {len(mattering) - MAX_NAMED} more" if len(mattering) > MAX_NAMED else ""
    named = ", ".join(mattering[:MAX_NAMED]) + more if more else listed(mattering)
    stops = [f"{column.name} in {listed(column.stops_in)}" for column in columns if column.stops_in]
    where = (
        f" They do not work everywhere: {'; '.join(stops)}. See whether they are measured in another way there."
        if stops
        else " None of them clearly stops working in one of the environments."
    )
    verb = "raises" if len(mattering) == 1 else "raise"
    return f"{named} clearly {verb} the error of {method} in environments that it has not seen, when shuffled.{where}"


def adaptation(summary: ComparisonSummary) -> str:
    """Whether to adapt EBER to the rows of a new environment, as far as the held-out ones say; empty without EBER."""
    plain = next((row for row in summary.rows if row.method == EBER), None)
    if summary.adapted is None or plain is None:
        return ""
    gains = _gains(plain, summary.adapted, summary)
    if not gains:
        return ""
    metric, n = summary.metric, len(gains)
    low, high = mean_interval(gains)
    helped = sum(gain > 0 for gain in gains)
    figures = (
        f"EBER's mean {metric.label} goes from {metric.format(plain.means[metric.name])} to "
        f"{metric.format(summary.adapted.means[metric.name])}, and it is better in {helped} of "
        f"{count(n, 'held-out environment' if summary.alone else 'held-out fold')}"
    )
    interval = f"(mean gain {format_signed(float(np.mean(gains)))}, 95 % interval {format_interval(low, high)})"
    if math.isnan(low):
        answer = f"That cannot be said from {count(n, 'environment')}: {figures}."
    elif low > 0:
        answer = f"Yes, for EBER: {figures} {interval}."
    elif high < 0:
        answer = f"No: {figures} {interval}."
    else:
        answer = f"There is no telling, so rather not: {figures} {interval}, which chance can do."
    advised = summary.recommended.method
    return answer if advised == EBER else f"{answer} {advised}, which is advised here, has nothing to adapt."


def own_uncertainty(held: HeldOut) -> str:
    """How unsure the advised method's own predictions are, and how unsure they should be."""
    row = held.summary.recommended
    parts = [part for fold in held.summary.folds for part in held.predictions(row.method, fold)[:1]]
    unsure = float(np.mean([entropy(proba).mean() for _, proba in parts]))
    more = row.means["nll"] - unsure
    return (
        f"The predictions of {row.method} have a mean entropy of {unsure:.3f} nats in held-out environments, and a "
        f"mean NLL of {row.means['nll']:.3f}. The two are equal for honest probabilities; by this it is "
        f"{abs(more):.3f} nats {'surer' if more > 0 else 'less sure'} than it should be."
    )


def of_eber(summary: ComparisonSummary) -> str:
    """What a section on EBER is for where another method is advised; empty where EBER is, or was not compared."""
    advised = summary.recommended.method
    if advised == EBER or all(row.method != EBER for row in summary.rows):
        return ""
    return (
        f"This is what EBER sees in the same rows, whichever method predicts; {advised} does not say such things. It "
        "is for knowing the data, and none of it changes the predictions of the advised method."
    )


def _gains(plain: MethodSummary, adapted: MethodSummary, summary: ComparisonSummary) -> list[float]:
    """How much better EBER is when adapted, in each fold where both have a score."""
    metric = summary.metric
    sign = 1 if metric.higher_is_better else -1
    gains = [
        sign * (scores[metric.name] - plain.by_fold[fold][metric.name])
        for fold, scores in adapted.by_fold.items()
        if fold in plain.by_fold
    ]
    return [gain for gain in gains if not math.isnan(gain)]
