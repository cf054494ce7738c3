"""The idx format, in which MNIST is distributed."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eber.datasets.archive import open_bounded

_UNSIGNED_BYTES = 0x08
# MNIST's largest file has 47 MB; nothing that claims to be far more is read into memory.
_MAX_BYTES = 2**28


def read_idx(path: str | Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file of unsigned bytes.

    Parameters
    ----------
    path : path
        Gzipped or not; the content decides, not the name.
    dimensions : int
        How many dimensions the array must have: 1 for labels, 3 for images.

    Returns
    -------
    array of uint8
    """
    with open_bounded(path, _MAX_BYTES) as file:
        raw = file.read()
    header = 4 + 4 * dimensions
    if len(raw) < header:
        raise ValueError(f"{path} has {len(raw)} bytes, too few for the header of an idx file ({header}).")
    magic = int.from_bytes(raw[:4], "big")
    expected = (_UNSIGNED_BYTES << 8) | dimensions
    if magic != expected:
        raise ValueError(
            f"{path} begins with the magic number {magic:#010x} instead of {expected:#010x} (unsigned bytes in "
            f"{dimensions} dimensions): it is another file, or not an idx file."
        )
    shape = struct.unpack(f">{dimensions}I", raw[4:header])
    if len(raw) - header != math.prod(shape):
        raise ValueError(
            f"{path} announces {' x '.join(map(str, shape))} = {math.prod(shape)} bytes of data but has "
            f"{len(raw) - header}: it is damaged or cut off. Download it again."
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=header).reshape(shape)
