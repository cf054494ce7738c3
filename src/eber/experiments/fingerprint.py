"""A short text that changes whenever the content of data files does."""

from __future__ import annotations

import hashlib
from pathlib import Path

from eber.datasets.checks import dataset_folder

_BLOCK = 2**20


def fingerprint_files(data_dir: Path, folder: str, patterns: tuple[str, ...], fetch_name: str) -> str:
    """Number, size and SHA-256 of the files of a data set; neither place nor date has a part in it.

    Parameters
    ----------
    data_dir : Path
        The data folder.
    folder : str
        The data set's own folder within it, where there is one.
    patterns : tuple of str
        Which files belong to the data set, at any depth.
    fetch_name : str
        What ``eber data fetch`` calls the data set, for the advice where it is missing.
    """
    root = dataset_folder(data_dir, folder)
    paths = sorted({path for pattern in patterns for path in root.rglob(pattern) if path.is_file()})
    if not paths:
        raise FileNotFoundError(
            f"{root} has no file named like {' or '.join(patterns)}. Download the data with: eber data fetch "
            f"{fetch_name}"
        )
    digest, size = hashlib.sha256(), 0
    for path in paths:
        size += path.stat().st_size
        digest.update(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return f"{len(paths)} files, {size} bytes, sha256 {digest.hexdigest()}"
