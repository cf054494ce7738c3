"""Download the data sets from their official sources, and check what is there.

Layout of a data folder: ``mnist/``, ``sdss/``, ``microbiome/``, ``sepsis/``, and ``SHA256SUMS`` with the checksums of
all downloaded files, in the format of ``sha256sum``.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from eber.datasets.archive import unpack
from eber.datasets.checks import optional_module
from eber.datasets.download import DownloadError, ResumingDownloader
from eber.datasets.sources import SOURCES, Source, SourceFile
from eber.io.files import lock, write_atomically

CHECKSUMS = "SHA256SUMS"
PART = ".part"
"""What the name of a file ends in while it is being downloaded."""
_LEADING_BYTES = {"gzip": b"\x1f\x8b", "zip": b"PK\x03\x04"}

State = Literal[
    "checksum right", "missing", "unfinished", "checksum wrong", "unknown", "content right", "content other"
]


class Finding(NamedTuple):
    """The state of one file: "unknown" is a file that is there, but for which no checksum is known.

    "content right" and "content other" are about what an archive was unpacked to, whatever its bytes.
    """

    path: str
    state: State
    detail: str


def default_data_dir() -> Path:
    """`EBER_DATA` where it is set, else the user's cache folder for eber."""
    named = os.environ.get("EBER_DATA")
    if named:
        return Path(named)
    return Path(optional_module("pooch", "to find the cache folder").os_cache("eber"))


def fetch(
    source: str | Source,
    data_dir: str | Path,
    progress: bool = True,
    *,
    attempts: int = 5,
    backoff: float = 1.0,
) -> list[Path]:
    """Download a data set; files that are already there and right are left alone.

    Parameters
    ----------
    source : str or Source
        A name in `SOURCES`.
    data_dir : path
        Data folder; made if need be.
    progress : bool
        Show a progress bar.
    attempts : int
        Requests for each address of a file before the next is tried.
    backoff : float
        Seconds to wait after the first failure, doubled after each further one.

    Returns
    -------
    list of Path
        The files, or the folders they were unpacked to.
    """
    if isinstance(source, str):
        if source not in SOURCES:
            raise ValueError(f"there is no data set {source!r}; there are {', '.join(SOURCES)}.")
        source = SOURCES[source]
    data_dir = Path(data_dir)
    data_dir.mkdir(parents=True, exist_ok=True)
    places = []
    # Two processes that wrote to the same part would spoil it for each other.
    with lock(data_dir / ".fetch.lock", wait=True), _progress_bar(progress) as new_task:
        for file in source.files:
            path = data_dir / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            report = new_task(path.name)
            try:
                _download(file, path, attempts, backoff, report)
            except DownloadError as error:
                raise DownloadError(
                    f"{error}\nIt can also be downloaded by hand from {source.page} into {path.parent}."
                ) from error
            report(path.stat().st_size, path.stat().st_size)
            _record_checksum(data_dir, file)
            if file.unpack_to is None:
                places.append(path)
                continue
            target = data_dir / file.unpack_to
            places.append(target if target.exists() else unpack(path, target, file.wanted))
            if (found := _content(file, data_dir)) is not None and found.state == "content other":
                warnings.warn(f"{target}: {found.detail}.", stacklevel=2)
    return places


def verify(data_dir: str | Path) -> list[Finding]:
    """Check the files of a data folder against ``SHA256SUMS`` and the known checksums.

    A data set of which nothing is there at all is reported as missing, under its name.
    """
    data_dir = Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"{data_dir} is not a folder.")
    known = {file.path: file.sha256 for source in SOURCES.values() for file in source.files if file.sha256}
    listed = read_checksums(data_dir)
    expected = {**listed, **known}
    present = {
        path.relative_to(data_dir).as_posix()
        for source in SOURCES.values()
        for path in (data_dir / source.folder).rglob("*")
        if path.is_file()
    }
    unpacked = tuple(f"{file.unpack_to}/" for source in SOURCES.values() for file in source.files if file.unpack_to)
    findings = []
    for path in sorted(present | set(listed)):
        if not (data_dir / path).is_file():
            findings.append(Finding(path, "missing", f"it is listed in {CHECKSUMS}"))
        elif path in expected:
            found = _sha256(data_dir / path)
            right = found == expected[path]
            detail = "" if right else f"sha256 is {found} instead of {expected[path]}; download it again"
            findings.append(Finding(path, "checksum right" if right else "checksum wrong", detail))
        elif path.endswith(PART):
            findings.append(Finding(path, "unfinished", "eber data fetch goes on with it"))
        elif not path.startswith(unpacked):
            findings.append(Finding(path, "unknown", "no checksum is known for it"))
    contents = (_content(file, data_dir) for source in SOURCES.values() for file in source.files)
    findings += [found for found in contents if found is not None]
    for source in SOURCES.values():
        findings += _missing(source, {path for path in present | set(listed) if not path.endswith(PART)})
    return findings


def _content(file: SourceFile, data_dir: Path) -> Finding | None:
    """Whether what an archive was unpacked to holds what the known copy does; None where nothing is known or there."""
    if file.content is None or file.unpack_to is None or not (data_dir / file.unpack_to).is_dir():
        return None
    try:
        right = file.content(data_dir / file.unpack_to) == file.content_sha256
    except (ValueError, OSError) as error:
        return Finding(file.unpack_to, "content other", str(error).rstrip("."))
    other = "it holds other samples, labels or reads than the copy that the stated results were computed from"
    return Finding(file.unpack_to, *(("content right", "") if right else ("content other", other)))


def _missing(source: Source, there: set[str]) -> list[Finding]:
    """The data set where nothing of it is there, or those of its files that are not beside others that are."""
    advice = f"download it with: eber data fetch {source.name}"
    if not any(path.startswith(f"{source.folder}/") for path in there):
        return [Finding(source.name, "missing", advice)]
    files = [file.path for file in source.files]
    begun = any(path in there for path in files)  # else the data came from elsewhere, in files of other names
    return [Finding(path, "missing", advice) for path in files if begun and path not in there]


def read_checksums(data_dir: Path) -> dict[str, str]:
    """The sha256 of each file, by its path relative to the data folder, as ``SHA256SUMS`` has them."""
    path = data_dir / CHECKSUMS
    if not path.exists():
        return {}
    sums = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        digest, _, name = line.strip().partition(" ")
        name = name.strip().removeprefix("*").removeprefix("./")
        if not line.strip():
            continue
        inside = name and not Path(name).is_absolute() and ".." not in Path(name).parts
        if len(digest) != 64 or not inside:
            raise ValueError(f"{path}, line {number}: expected a sha256 and a path within the folder, not {line!r}.")
        sums[name] = digest.lower()
    return sums


def _download(
    file: SourceFile, path: Path, attempts: int, backoff: float, report: Callable[[int, int | None], None]
) -> None:
    pooch = optional_module("pooch", "to download data")
    pooch.get_logger().setLevel(logging.WARNING)
    known_hash = None if file.sha256 is None else f"sha256:{file.sha256}"
    trouble: Exception | None = None
    for url in file.urls:
        downloader = ResumingDownloader(
            path.with_name(f"{path.name}{PART}"),
            checked=known_hash is not None,
            attempts=attempts,
            backoff=backoff,
            report=report,
        )
        # What was damaged on the way may arrive whole the second time.
        for _ in range(2):
            try:
                pooch.retrieve(url, known_hash, fname=path.name, path=path.parent, downloader=downloader)
                _check_kind(file, path, url)
                _check(file, path, url)
                return
            except DownloadError as error:
                trouble = error
                break
            except ValueError as error:  # pooch: the checksum is wrong
                trouble = error
    raise DownloadError(f"{path.name}: {trouble}") from trouble


def _check_kind(file: SourceFile, path: Path, url: str) -> None:
    """Some servers send a page with an error message and call it a success."""
    with path.open("rb") as content:
        start = content.read(400)
    if file.kind == "csv":
        right = b"class" in start.lower() and b"," in start and not start.lstrip().startswith((b"<", b"{"))
    else:
        right = start.startswith(_LEADING_BYTES[file.kind])
    if not right:
        path.unlink()
        raise DownloadError(f"{url}: the answer is not a {file.kind} file; it begins with {start[:60]!r}.")


def _check(file: SourceFile, path: Path, url: str) -> None:
    try:
        if file.check is not None:
            file.check(path)
    except ValueError as error:
        path.unlink()
        raise DownloadError(f"{url}: what came is not what was asked for. {error}") from error


def _record_checksum(data_dir: Path, file: SourceFile) -> None:
    sums = {**read_checksums(data_dir), file.path: _sha256(data_dir / file.path)}
    write_atomically(data_dir / CHECKSUMS, "".join(f"{digest}  ./{path}\n" for path, digest in sorted(sums.items())))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _progress_bar(shown: bool) -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Give a function that begins a line of the display and returns that line's report function."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), disable=not shown) as bar:

        def new_task(name: str) -> Callable[[int, int | None], None]:
            task = bar.add_task(name, total=None)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield new_task
