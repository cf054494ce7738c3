"""Reading and unpacking archives that nobody has vouched for.

A name that leaves the target folder, a link, a device, more files than any of our data sets has, or more bytes than
were promised (a decompression bomb) is refused before anything of it reaches the disk or fills the memory.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pandas as pd

from eber.datasets.checks import naming_damage, read_csv

MAX_BYTES = 8 * 2**30
MAX_FILES = 200_000
_CHUNK = 2**20

Wanted = Callable[[str], bool]


class UnsafeArchiveError(ValueError):
    """An archive holds something that must not be unpacked."""


def members(
    path: str | Path, wanted: Wanted | None = None, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> Iterator[tuple[str, IO[bytes]]]:
    """The files in a .zip, a .tar.gz or a folder, as pairs of a relative name and a readable stream.

    Parameters
    ----------
    path : path
        Archive or folder.
    wanted : callable, optional
        Takes a name and says whether the file is to be given.
    max_bytes : int
        Limit for what is decompressed, all files together; what an archive says of itself is not believed.
    max_files : int
        Limit for the number of entries.

    Yields
    ------
    name : str
        With forward slashes; zips and folders in the order of their names, tars in their own.
    stream : file-like
        Valid until the next pair is asked for.
    """
    path = Path(path)
    wanted = wanted or (lambda _: True)
    if path.is_dir():
        entries = _folder(path, wanted, max_files)
    elif zipfile.is_zipfile(path):
        entries = _zip(path, wanted, max_files, _Budget(path, max_bytes))
    else:
        entries = _tar(path, wanted, max_files, _Budget(path, max_bytes))
    while True:
        with naming_damage(path):
            entry = next(entries, None)
        if entry is None:
            return
        name, stream = entry
        with stream:
            yield name, stream


def unpack(
    path: str | Path,
    target: str | Path,
    wanted: Wanted | None = None,
    *,
    max_bytes: int = MAX_BYTES,
    max_files: int = MAX_FILES,
) -> Path:
    """Unpack a .zip or .tar.gz into the folder `target`, which appears only when it is complete.

    Parameters
    ----------
    path : path
        The archive.
    target : path
        Must not exist yet.
    wanted, max_bytes, max_files
        As in `members`.

    Returns
    -------
    Path
        The target.
    """
    path, target = Path(path), Path(target)
    if target.exists():
        raise FileExistsError(f"{target} is already there. Remove it to unpack {path} again.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, stream in members(path, wanted, max_bytes=max_bytes, max_files=max_files):
            place = partial.joinpath(*PurePosixPath(name).parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                file = place.open("xb")
            except (FileExistsError, NotADirectoryError) as error:
                raise UnsafeArchiveError(f"{path} holds {name!r} twice. Nothing was unpacked.") from error
            with file:
                shutil.copyfileobj(stream, file, _CHUNK)
        partial.chmod(0o755)
        os.replace(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return target


def open_bounded(path: str | Path, max_bytes: int) -> io.BufferedReader:
    """A file for reading, unpacked if it is gzipped (by content, not by name), that ends in an error at the limit."""
    path = Path(path)
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    stream = (gzip.open if gzipped else open)(path, "rb")
    return io.BufferedReader(_Metered(stream, _Budget(path, max_bytes)), _CHUNK)


def read_bounded_csv(path: Path, max_bytes: int, **options: Any) -> pd.DataFrame:
    """`pandas.read_csv` of a file that may be gzipped, and that is refused when it holds more bytes than that."""
    with open_bounded(path, max_bytes) as stream:
        return read_csv(stream, path, **options)


def _safe_name(name: str, path: Path) -> str:
    pure = PurePosixPath(name.replace("\\", "/"))
    drive = re.match(r"[A-Za-z]:", name)
    if not name:
        raise UnsafeArchiveError(f"{path} holds a file without a name. Nothing was unpacked.")
    if pure.is_absolute() or drive or ".." in pure.parts or "\0" in name:
        raise UnsafeArchiveError(
            f"{path} holds the name {name!r}, which leads out of the folder. Nothing was unpacked."
        )
    return str(pure)


def _too_many(path: Path, max_files: int) -> UnsafeArchiveError:
    return UnsafeArchiveError(f"{path} holds more than {max_files} files. Nothing more was read.")


def _zip(path: Path, wanted: Wanted, max_files: int, budget: _Budget) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > max_files:
            raise _too_many(path, max_files)
        files = []
        for entry in entries:
            name = _safe_name(entry.filename, path)
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UnsafeArchiveError(f"{path} holds a link or a device, {name!r}. Nothing was unpacked.")
            if not entry.is_dir() and wanted(name):
                files.append((name, entry))
        for name, entry in sorted(files, key=lambda pair: pair[0]):
            try:
                stream = archive.open(entry)
            except RuntimeError as error:  # encrypted, or packed in a way that Python does not know
                raise ValueError(f"{path}, {name!r} cannot be unpacked ({error}). Download it again.") from error
            yield name, io.BufferedReader(_Metered(stream, budget), _CHUNK)


def _tar(path: Path, wanted: Wanted, max_files: int, budget: _Budget) -> Iterator[tuple[str, IO[bytes]]]:
    with gzip.open(path) as unzipped:
        content = io.BufferedReader(_Metered(unzipped, budget), _CHUNK)
        with tarfile.open(fileobj=content, mode="r|") as archive:
            for count, entry in enumerate(archive):
                if count >= max_files:
                    raise _too_many(path, max_files)
                name = _safe_name(entry.name, path)
                if not (entry.isreg() or entry.isdir()):
                    raise UnsafeArchiveError(f"{path} holds a link or a device, {name!r}. Nothing was unpacked.")
                if entry.isreg() and wanted(name):
                    stream = archive.extractfile(entry)
                    assert stream is not None  # a regular file always has content
                    # What tarfile gives in this mode lacks half of a file's methods.
                    yield name, io.BufferedReader(_Metered(stream, _Budget(path, entry.size)), _CHUNK)
        # tarfile takes a file that breaks off between two entries for complete; the end of the gzip stream tells.
        while content.read(_CHUNK):
            pass


def _folder(path: Path, wanted: Wanted, max_files: int) -> Iterator[tuple[str, IO[bytes]]]:
    names = []
    for folder, _, files in os.walk(path):
        for file in files:
            name = Path(folder, file).relative_to(path).as_posix()
            if wanted(name):
                names.append(name)
        if len(names) > max_files:
            raise _too_many(path, max_files)
    for name in sorted(names):
        yield name, (path / name).open("rb")


class _Budget:
    """Bytes that may still be read from one archive."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.used = 0

    def spend(self, count: int) -> None:
        self.used += count
        if self.used > self.max_bytes:
            raise UnsafeArchiveError(
                f"{self.path} unpacks to more than {self.max_bytes} bytes, which none of the known data sets does."
            )


class _Metered(io.RawIOBase):
    """A stream whose every byte is paid from the budget."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, budget: _Budget) -> None:
        self._stream = stream
        self._budget = budget

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with naming_damage(self._budget.path):
            data = self._stream.read(len(buffer))
        self._budget.spend(len(data))
        buffer[: len(data)] = data
        return len(data)
