"""Cells that are built on others wait for them, and are handed what they found."""

from __future__ import annotations

from collections.abc import Iterable

from eber.runs.cell import Cell
from eber.runs.schedule import Key, Schedule


def cell(method: str, setting: str = "s", seed: int = 0) -> Cell:
    return Cell("toy", setting, method, seed, {})


PARTS: dict[Key, Iterable[Key]] = {cell("Pool").key: [cell("a").key, cell("b").key]}


def test_a_cell_waits_until_what_it_is_built_on_is_finished() -> None:
    schedule = Schedule([cell("Pool"), cell("a"), cell("b"), cell("a", "t")], [], PARTS)
    assert schedule.next() == [cell("a")]
    assert schedule.next(running=[cell("a")]) == [cell("b")]
    assert schedule.next(running=[cell("a"), cell("b")]) == [cell("a", "t")]
    assert schedule.next(running=[cell("b"), cell("a", "t")]) == [], "the last part is still running"
    assert len(schedule) == 1
    assert schedule.next(running=[cell("a", "t")]) == [cell("Pool")]


def test_a_cell_whose_parts_are_finished_does_not_wait() -> None:
    assert Schedule([cell("Pool")], [], PARTS).next() == [cell("Pool")]


def test_times_of_groundwork_and_of_results_are_told_apart() -> None:
    schedule = Schedule([cell("a"), cell("a", "below 2"), cell("b")], [], groundwork=("below 1", "below 2"))
    schedule.learn(cell("a", "below 1"), 60.0)
    assert [schedule.next()[0].key for _ in range(2)] == [cell("a").key, cell("b").key], (
        "nobody knows how long they take"
    )
    assert schedule.seconds_left([], 1) == 60.0


def test_a_guess_stands_in_for_a_method_s_time_times_how_far_off_guesses_were() -> None:
    guesses = {"a": 10.0, "b": 30.0}
    schedule = Schedule([cell("a"), cell("a", "t"), cell("b")], [], guess=lambda of: guesses.get(of.method))
    assert schedule.seconds_left([], 1) == 50.0, "before anything is finished"
    (first,) = schedule.next()
    schedule.learn(first, 25.0)
    off = (25.0 + 5.0) / (10.0 + 5.0)  # a tenth of the work counts as guessed rightly
    assert schedule.seconds_left([], 1) == 25.0 + 30.0 * off, "the one as seen, the other by the guess"
    schedule.add(cell("c"))
    assert schedule.seconds_left([], 1) == 25.0 + 30.0 * off + 25.0, "without a guess as what is finished"


def test_a_setting_that_takes_one_method_longer_takes_others_longer() -> None:
    schedule = Schedule([cell("b", "wide"), cell("b", "deep")], [])
    for setting, seconds in (("narrow", 10.0), ("wide", 60.0)):
        schedule.learn(cell("a", setting), seconds)
    schedule.learn(cell("b", "narrow"), 2.0)
    assert schedule.seconds_left([], 1) == 12.0 + 7.0, "six times as long; a setting that nobody has seen is in between"
    assert [one.setting for one in schedule.next()] == ["wide"]
