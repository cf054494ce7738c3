"""A comparison in a few sentences: what to use, in no stronger words than the tests allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eber.evaluation.wording import listed, p_with_sign
from eber.methods import NO_MODEL

if TYPE_CHECKING:
    from eber.compare.summary import ComparisonSummary


def verdict(summary: ComparisonSummary) -> str:
    """What to use: a tie is called one, and what nobody can know with so few environments is said not to be known."""
    leader = summary.leader
    best = f"{summary.metric.label} {summary.metric.format(leader.means[summary.metric.name])}"
    if len(summary.rows) == 1:
        return f"{leader.method} was compared with nothing; over {summary.held_out} it has {best}."
    if len(summary.folds) < 2:
        return f"{leader.method} is ahead ({best}), but a single held-out environment cannot show how sure that is."
    if not summary.beats_no_model:
        return _too_few(summary, best) if summary.ahead_everywhere else _nothing_found(summary, best)
    if not summary.rivals:
        return (
            f"Use {leader.method}: over {summary.held_out} it is significantly better ({best}) than {_worse(summary)}."
        )
    return _tie(summary, best)


def _too_few(summary: ComparisonSummary, best: str) -> str:
    """The leader beats the average rate wherever one looks, but there are too few places to look at."""
    rate = _no_models_score(summary)
    return (
        f"Too few environments to be sure: {summary.leader.method} does better than {NO_MODEL} in each of "
        f"{summary.held_out} ({best} against {rate} on average), but a test that pays for all methods that were "
        f"compared cannot confirm it with so few.{_for_those_in_need(summary)}"
    )


def _nothing_found(summary: ComparisonSummary, best: str) -> str:
    """No method is better than the average rate, as far as the tests can tell."""
    leader = summary.leader
    nothing = (
        f"Nothing here predicts a new {summary.environment} better than its average rate, as far as {summary.held_out} "
        "can tell."
    )
    if leader is summary.no_model:
        return f"{nothing} {leader.method}, the training environments' share of each class, is ahead ({best})."
    return (
        f"{nothing} {leader.method} is ahead of {NO_MODEL} ({best} against {_no_models_score(summary)}), which so few "
        f"environments cannot tell from chance.{_for_those_in_need(summary)}"
    )


def _for_those_in_need(summary: ComparisonSummary) -> str:
    """What is simpler than the leader and still ahead of the average rate; empty where nothing is."""
    metric, advised = summary.metric, summary.recommended
    if advised is summary.leader:
        return ""
    own = metric.format(advised.means[metric.name])
    return f" Whoever needs a model all the same: {advised.method} is the simplest of those ahead ({own})."


def _no_models_score(summary: ComparisonSummary) -> str:
    assert summary.no_model is not None
    return summary.metric.format(summary.no_model.means[summary.metric.name])


def _tie(summary: ComparisonSummary, best: str) -> str:
    """Several methods lead, and cannot be told apart."""
    metric, leader, advised = summary.metric, summary.leader, summary.recommended
    parts = [f"It is a tie: over {summary.held_out}, {listed([leader.method, *summary.rivals])} cannot be told apart."]
    passed_over = [
        row.method for row in summary.rows if row.method in summary.rivals and row.simplicity < advised.simplicity
    ]
    if advised is leader:
        others = "none of the others is simpler"
        if passed_over:
            others = f"{listed(passed_over)}, though simpler, did worse than {NO_MODEL}"
        parts.append(f"Use {leader.method}: it is ahead ({best}), and {others}.")
    else:
        simplest = f"the simplest of these that did better than {NO_MODEL}" if passed_over else "the simplest of these"
        parts.append(
            f"Use {advised.method}, {simplest}, unless something else speaks for another: "
            f"{leader.method} is ahead ({best} against {metric.format(advised.means[metric.name])}), which so few "
            "environments cannot tell from chance."
        )
    if _worse(summary):
        parts.append(f"{leader.method} is significantly better than {_worse(summary)}.")
    return " ".join(parts)


def _worse(summary: ComparisonSummary) -> str:
    """Methods that the leader is significantly better than, with their p; empty for none."""
    worse = [row for row in summary.rows[1:] if row.method not in summary.rivals and row.test]
    return listed([f"{row.method} (p {p_with_sign(row.test.p_corrected)})" for row in worse if row.test])
