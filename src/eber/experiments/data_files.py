"""The files of a data set: a text that changes whenever their content does, and a watch over them during a run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from eber.datasets.checks import dataset_folder

_BLOCK = 2**20

WHILE_RUNNING, SINCE_THE_RUN = "while the experiment ran", "after its results were computed"

Traces = tuple[tuple[int, ...], ...]
"""What the file system notes of each file and folder. It changes with every write, renaming or replacement, and nobody
can put back the time of the last change."""


@dataclass(frozen=True)
class DataFiles:
    """Which files a data set consists of.

    Parameters
    ----------
    folder : str
        The data set's own folder within the data folder, where there is one.
    patterns : tuple of str
        Which files belong to the data set, at any depth.
    fetch_name : str
        What ``eber data fetch`` calls the data set, for the advice where it is missing.
    """

    folder: str
    patterns: tuple[str, ...]
    fetch_name: str

    def paths(self, data_dir: Path) -> tuple[Path, list[Path]]:
        """The folder of the data set, and its files in order."""
        root = dataset_folder(data_dir, self.folder)
        paths = sorted({path for pattern in self.patterns for path in root.rglob(pattern) if path.is_file()})
        if not paths:
            raise FileNotFoundError(
                f"{root} has no file named like {' or '.join(self.patterns)}. Download the data with: eber data fetch "
                f"{self.fetch_name}"
            )
        return root, paths

    def fingerprint(self, data_dir: Path) -> str:
        """Number, size and SHA-256 of the files; neither place nor date has a part in it."""
        root, paths = self.paths(data_dir)
        digest, size = hashlib.sha256(), 0
        for path in paths:
            size += path.stat().st_size
            digest.update(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        return f"{len(paths)} files, {size} bytes, sha256 {digest.hexdigest()}"

    def traces(self, data_dir: Path) -> Traces:
        """Of the files, the folders that they are in, and the links on the way to them."""
        root, paths = self.paths(data_dir)
        folders = {parent for path in paths for parent in path.parents if parent.is_relative_to(root)}
        links = {part for path in paths for part in (path, *path.absolute().parents) if part.is_symlink()}
        noted = [path.stat() for path in (*paths, *sorted(folders))] + [link.lstat() for link in sorted(links)]
        return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in noted)

    def require_unchanged(self, data_dir: Path, fingerprint: str, when: str = WHILE_RUNNING) -> None:
        """Refuse files that are not, or were for a while not, those that a run was planned for.

        Called before files are read and again when results are at hand. The first call in a process compares their
        content, all calls their traces: what a process has read in between, and may keep, is then of that content.

        Parameters
        ----------
        data_dir : Path
        fingerprint : str
            Of the content that the run was planned for.
        when : str
            For the error: when they must have changed.

        Raises
        ------
        ValueError
        """
        if self.traces(data_dir) != _verified_traces(self, data_dir, fingerprint, when):
            raise _changed(self, data_dir, when)


@cache
def _verified_traces(files: DataFiles, data_dir: Path, fingerprint: str, when: str) -> Traces:
    """The traces of files whose content was seen to have a fingerprint."""
    traces = files.traces(data_dir)
    if files.fingerprint(data_dir) != fingerprint or files.traces(data_dir) != traces:
        raise _changed(files, data_dir, when)
    return traces


def _changed(files: DataFiles, data_dir: Path, when: str) -> ValueError:
    return ValueError(
        f"{dataset_folder(data_dir, files.folder)} changed {when}: its files are not those that the run was planned "
        "for. Give the command again once nobody writes to it."
    )
