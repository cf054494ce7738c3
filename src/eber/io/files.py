"""Whole files or none, and locks that die with their process."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import itertools
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

_TEMPORARY = re.compile(r"\.\d+-[0-9a-f]{8}\.tmp$")


def write_atomically(path: Path, content: bytes | str, mode: int | None = None) -> None:
    """Write a file so that a reader, or a machine that lost power, finds the old content or the new, never a part.

    Parameters
    ----------
    path : Path
        Its folder must exist.
    content : bytes or str
        Text is written as UTF-8, line ends as they are.
    mode : int, optional
        As for `replacing`.
    """
    with replacing(path, mode) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def read_regular(path: Path, limit: int) -> bytes:
    """The content of an ordinary file of at most so many bytes.

    Pipes, which may never end or never begin, and devices are refused without waiting for them.

    Raises
    ------
    ValueError
        Where it is none, or larger.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is no ordinary file.")
        if status.st_size > limit:
            raise ValueError(f"{path} is larger than the {limit} bytes that such a file may have.")
        return file.read(status.st_size)  # and no more, should it be growing


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """A name beside `path` to write to; when the block ends well, what stands there takes the place of `path`.

    When it does not, nothing is left of it, and an error of the system says which file could not be written. The new
    file may be read and written by those who might the old one, from its first byte on. Links are treated as `rename`
    treats them: the link itself is replaced by the file, and what it pointed to stays as it was.

    Parameters
    ----------
    mode : int, optional
        Permissions of a file that is new under its name, and replaces one of another name.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        mode = permissions(path, mode)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        os.close(descriptor)
        yield temporary
        _sync(temporary)
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # "No space left on device" alone does not say where; a temporary name says it to nobody.
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    if os.name != "nt":  # a folder cannot be opened there
        _sync(path.parent)  # so that the renaming itself survives a loss of power


@contextlib.contextmanager
def leaving_no_empty_folder(folder: Path) -> Iterator[None]:
    """Should the block end otherwise than well, remove the folder and those above it that are new and empty.

    Of a folder that was not there before, empty ones within it go as well.
    """
    missing = list(itertools.takewhile(lambda place: not place.exists(), (folder, *folder.parents)))
    try:
        yield
    except BaseException:
        within = sorted(filter(Path.is_dir, folder.rglob("*")), reverse=True) if missing else []  # the deepest first
        for place in (*within, *missing):
            with contextlib.suppress(OSError):  # it holds something, or was never made
                place.rmdir()
        raise


def sweep_temporaries(path: Path) -> None:
    """Remove what killed writers of a file, or into a folder, left; for those who alone may write there."""
    folder, name = (path, "*") if path.is_dir() else (path.parent, glob.escape(path.name))
    for leftover in folder.glob(f".{name}.*.tmp"):
        if _TEMPORARY.search(leftover.name):  # a folder may hold hidden files of others
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Be the only one who writes a file, or into a folder, while the block runs, and sweep what killed writers left.

    Raises
    ------
    BlockingIOError
        When another process is at it.
    """
    if os.name == "nt":  # where nothing is locked, nothing can be swept either
        yield
        return
    place = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    with lock(place, wait=False) as held:
        if not held:
            raise BlockingIOError(f"Another process is writing {path} just now: wait for it, or give another name.")
        sweep_temporaries(path)
        yield


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
        try:
            # Not through a link, which somebody may have put there to have a file made elsewhere.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            # Else it is the folder that cannot be written to, and the folder that the user knows.
            place = path if error.errno == errno.ELOOP else path.parent
            raise OSError(error.errno, os.strerror(error.errno or 0), str(place)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # The previous holder may have removed the file between our open and our lock: a lock on a file that has
            # no name any more would exclude nobody.
            if _is_named(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:  # "no locks available", which does not say where
            os.close(descriptor)
            raise OSError(error.errno, os.strerror(error.errno or 0), str(path.parent)) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def permissions(path: Path, otherwise: int | None = None) -> int | None:
    """The permissions of what stands under a name, also behind a link."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return otherwise


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
