"""Tasks that any process may do in any order: who does them is somebody else's affair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from eber.io.text import count

MAX_LISTED = 3

Each = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[tuple[Any, Any]]]
"""Function and tasks -> each task with its answer, or the exception it ended in, in any order."""


def one_after_the_other(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """All tasks in this process."""
    for task in tasks:
        try:
            yield task, function(task)
        except Exception as error:  # one file that cannot be read does not stop the others
            yield task, error


def in_order(function: Callable[[Any], Any], tasks: Sequence[Any], each: Each) -> Iterator[Any]:
    """The answer to each task in the order of the tasks, whoever was first; what is not its turn yet is kept meanwhile.

    The first that cannot be done ends it, with its error.
    """
    early: dict[Any, Any] = {}
    turns = iter(tasks)
    turn = next(turns, None)
    for task, answer in each(function, tasks):
        if isinstance(answer, Exception):
            # Of another process there is a sentence and no exception.
            raise ValueError(str(answer)) if isinstance(answer, RuntimeError) else answer
        early[task] = answer
        while turn in early:
            yield early.pop(turn)
            turn = next(turns, None)


def all_answers(
    function: Callable[[Any], Any], tasks: Sequence[Any], each: Each, done: str, noun: str = "part"
) -> dict[Any, Any]:
    """The answer to each task; an error that says what those that have none could not be."""
    answers = dict(each(function, tasks))
    failed = {task: answer for task, answer in answers.items() if isinstance(answer, Exception)}
    if failed:
        sentences = "; ".join(str(error).rstrip(".") for error in list(failed.values())[:MAX_LISTED])
        more = f"; and {len(failed) - MAX_LISTED} more" if len(failed) > MAX_LISTED else ""
        raise ValueError(
            f"{len(failed)} of {count(len(tasks), noun)} could not be {done}: {sentences}{more}. The others are done; "
            "the same command does only these again."
        )
    return answers
