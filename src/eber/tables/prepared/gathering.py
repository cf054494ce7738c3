"""The end: each bucket is collected from all blocks, shuffled in memory, and laid behind the one before it.

A row's bucket and its place in the bucket are drawn evenly, so that any order of all rows is as likely as any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from eber.io.checksummed_json import encode_checksummed, read_checksummed
from eber.io.files import write_atomically
from eber.tables.prepared.layout import Rows, joined
from eber.tables.prepared.scattering import block_path

BUCKET_FORMAT, VERSION = "eber-prepared-bucket", 1


@dataclass(frozen=True)
class Gathering:
    """What is done with each bucket; it can be pickled.

    Parameters
    ----------
    folder : Path
        With the blocks.
    out : Path
        With the files of the table, in their full size.
    sizes : sequence of sequences of sequences of int
        Of each section and block, the rows of each bucket.
    n_columns, seed : int
    """

    folder: Path
    out: Path
    sizes: Sequence[Sequence[Sequence[int]]]
    n_columns: int
    seed: int

    def gather(self, bucket: int) -> str:
        """Gather one bucket, unless that is done; the digest of its rows."""
        done = bucket_path(self.folder, bucket)
        try:
            known: str = read_checksummed(done, BUCKET_FORMAT, VERSION, "")["sha256"]
            return known
        except (FileNotFoundError, ValueError):
            pass
        parts = []
        for section, blocks in enumerate(self.sizes):
            for block, of_buckets in enumerate(blocks):
                parts.append(self._stretch(block_path(self.folder, section, block), of_buckets, bucket))
        rows = joined(parts, self.n_columns)
        del parts
        rows = rows.select(np.random.default_rng([self.seed, 2, bucket]).permutation(len(rows)))
        first = sum(sum(block[:bucket]) for blocks in self.sizes for block in blocks)
        rows.write(self.out, first)
        sha256 = digest(rows)
        write_atomically(done, encode_checksummed({"sha256": sha256}, BUCKET_FORMAT, VERSION))
        return sha256

    def _stretch(self, path: Path, of_buckets: Sequence[int], bucket: int) -> Rows:
        """The rows of a bucket in one block."""
        d, n = self.n_columns, sum(of_buckets)
        if path.stat().st_size != n * (4 * d + 5):
            raise ValueError(f"{path} is damaged; remove the folder that it lies in, and give the command again.")
        first, size = sum(of_buckets[:bucket]), of_buckets[bucket]
        X = np.fromfile(path, np.float32, size * d, offset=4 * d * first).reshape(size, d)
        y = np.fromfile(path, np.uint8, size, offset=4 * d * n + first)
        e = np.fromfile(path, np.int32, size, offset=(4 * d + 1) * n + 4 * first)
        return Rows(X, y, e)


def bucket_path(folder: Path, bucket: int) -> Path:
    """What says that a bucket is done."""
    return folder / f"bucket-{bucket:06d}.json"


def bucket_ends(sizes: Sequence[Sequence[Sequence[int]]], n_buckets: int) -> list[int]:
    """Where each bucket ends among all rows."""
    of_bucket = [sum(block[b] for blocks in sizes for block in blocks) for b in range(n_buckets)]
    return list(accumulate(of_bucket))


def digest(rows: Rows) -> str:
    """SHA-256 of rows as they lie in the files."""
    found = hashlib.sha256()
    for values in (rows.X, rows.y, rows.e):
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()
