"""What a command that Ctrl-C ended says: what was kept and how to go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def saying_what_is_kept(say: Callable[[str], None], kept: Callable[[], str]) -> Iterator[None]:
    """Should Ctrl-C end the block, say what is kept.

    Parameters
    ----------
    say : callable
    kept : callable
        -> a sentence; asked when all else is done.
    """
    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped. {kept()}")
        raise
