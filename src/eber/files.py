"""Whole files or none, and locks that die with their process."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that a reader, or a machine that lost power, finds the old content or the new, never a part.

    Parameters
    ----------
    path : Path
        Its folder must exist.
    content : bytes or str
        Text is written as UTF-8, line ends as they are.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def sweep_temporaries(path: Path) -> None:
    """Remove what killed writers of `path` left behind; only whoever alone may write `path` may call this."""
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def lock(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold an exclusive lock, named by a file, while the block runs.

    The kernel releases it when the process ends in whatever way, so that no lock outlives its owner.

    Parameters
    ----------
    path : Path
        The lock file; it is removed when the lock is released.
    wait : bool
        Wait for another holder to finish; otherwise give up at once.

    Yields
    ------
    bool
        Whether the lock is held. Always true with `wait`.
    """
    descriptor = _acquire(path, wait)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, wait: bool) -> int | None:
    import fcntl  # not on Windows, where everything but resumable runs works

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # The previous holder may have removed the file between our open and our lock: a lock on a file that has
            # no name any more would exclude nobody.
            if _is_named(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself survive a loss of power."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
