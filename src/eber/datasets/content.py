"""What a download must hold where a checksum of its bytes cannot be known beforehand.

SkyServer writes its answer anew for each query, so that it is held against the query itself. Of MicrobiomeHD's archives
no checksum is published that we could compare with; what they hold is: reads of each genus in each sample, however they
are packed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from eber.datasets.archive import read_bounded_csv
from eber.datasets.checks import check_columns, check_unique, numeric_column
from eber.datasets.microbiomehd import GenusTable, read_microbiomehd_archive

EVERY = 83
"""Of the object numbers of SkyServer, the multiples of this are asked for."""
MAGNITUDES = (14, 22)
"""In r."""
_MAX_BYTES = 2**30
_ROUNDING = 1e-4  # SkyServer compares more digits than it writes


def check_skyserver_answer(path: Path, limit: int) -> None:
    """Refuse a file with a row that is no answer to `eber.datasets.sources.skyserver_query`.

    Raises
    ------
    ValueError
        With the line.
    """
    skip = 1 if path.read_bytes()[:1] == b"#" else 0
    table = read_bounded_csv(path, _MAX_BYTES, skiprows=skip, low_memory=False)
    table.columns = table.columns.str.strip().str.lower()
    check_columns(list(table.columns), ("objid", "class", "ra", "dec", *"ugriz", "zwarning", "clean", "mode"), path)
    if not 0 < len(table) <= limit:
        raise ValueError(f"{path} has {len(table)} rows; the query asks for {limit} at most.")
    if table["objid"].dtype.kind not in "iu":
        raise ValueError(f"{path} has object numbers that are none.")
    first_line = skip + 2
    check_unique(table["objid"], path, first_line)
    r = numeric_column(table["r"], path, first_line)
    demands = {
        f"objid is a multiple of {EVERY}": (table["objid"] % EVERY == 0).to_numpy(),
        f"{MAGNITUDES[0]} <= r <= {MAGNITUDES[1]}": (r > MAGNITUDES[0] - _ROUNDING) & (r < MAGNITUDES[1] + _ROUNDING),
        "zWarning = 0": numeric_column(table["zwarning"], path, first_line) == 0,
        "clean = 1": numeric_column(table["clean"], path, first_line) == 1,
        "mode = 1": numeric_column(table["mode"], path, first_line) == 1,
    }
    for demand, held in demands.items():
        if not held.all():
            raise ValueError(f"{path}, line {int(np.argmin(held)) + first_line} is no answer to the query: {demand}.")


def cohort_checksum(path: Path) -> str:
    """SHA-256 of what a cohort of MicrobiomeHD holds: a folder, a .zip or a .tar.gz."""
    return genus_checksum(read_microbiomehd_archive(path))


def genus_checksum(table: GenusTable) -> str:
    """SHA-256 of samples with their disease states and the reads of each genus, whatever their order."""
    digest = hashlib.sha256()
    counts = table.counts.sort_index(axis=0).sort_index(axis=1)
    states = table.samples["disease_state"].fillna("")
    genera = counts.columns.to_numpy(dtype=str)
    for sample, reads in zip(counts.index, counts.to_numpy(), strict=True):
        digest.update(f"{sample}\t{states[sample]}\n".encode())
        for genus in np.flatnonzero(reads):
            digest.update(f"{genera[genus]}\t{reads[genus]}\n".encode())
    return digest.hexdigest()
