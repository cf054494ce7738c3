"""Colorectal cancer from gut microbes: the MicrobiomeHD cohorts, one environment a cohort.

Samples labelled CRC (y = 1) or H (y = 0) are kept; adenomas, which MicrobiomeHD labels nonCRC, and unlabelled samples
are not. Features are relative abundances of genera that occur in at least 1 % of the samples of all cohorts together
(Appendix "Microbiome classification"); standardising them belongs to the fit on training cohorts.

Two of the cohorts overlap. Baxter and Zackular drew on the same recruitment (the Great Lakes-New England clinical
group of the Early Detection Research Network), and both sample names carry its four-digit subject number:
``2065653`` in crc_baxter and ``Adenoma1-2065`` in crc_zackular. 84 of Zackular's 90 subjects are in Baxter.
`identifiers` are made from that number, so that `eber.leaks.audit.leak_audit` finds them.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eber.datasets.archive import read_bounded_csv
from eber.datasets.base import MultiEnvironmentData
from eber.datasets.checks import (
    check_columns,
    check_unique,
    dataset_folder,
    numeric_column,
    one_class_environments,
)
from eber.datasets.microbiomehd import GenusTable, are_reads, read_microbiomehd_archive
from eber.io.text import shortened

COHORTS = ("crc_baxter", "crc_xiang", "crc_zackular", "crc_zeller", "crc_zhao")
_LABELS = {"CRC": 1, "H": 0}
_EXCLUDED = {"nonCRC", "adenoma", "polyp"}
_SMALL_ADENOMA = "Small adenoma"
# The table of genera of all cohorts has 1 MB.
_MAX_BYTES = 2**28
_SUBJECT_NUMBER = {
    "crc_baxter": re.compile(r"(\d{4})\d{3}"),
    "crc_zackular": re.compile(r"[A-Za-z]+\d+-(\d{4})(?:-\d+)?"),
}


def load_microbiome(
    data_dir: str | Path, *, min_prevalence: float = 0.01, small_adenomas: bool = True
) -> MultiEnvironmentData:
    """Read the cohorts.

    Parameters
    ----------
    data_dir : path
        Folder, or a folder with a folder ``microbiome``, that has either ``crc_genus_counts.csv.gz`` with
        ``crc_samples.csv``, or the cohorts as MicrobiomeHD ships them (``crc_baxter_results.tar.gz`` and so on; .zip
        and unpacked folders are read too). The table of genera is preferred where both are there.
    min_prevalence : float
        Least share of all kept samples in which a genus must occur.
    small_adenomas : bool
        Whether samples labelled H whose diagnosis is a small adenoma are kept: crc_zeller has 25, which that study
        counts as controls.

    Returns
    -------
    MultiEnvironmentData
        X of shape (n, genera). `identifiers` name subjects. `extra` holds ``sample`` and ``diagnosis``.
    """
    folder = dataset_folder(data_dir, "microbiome")
    table = _read_genus_table(folder) or _read_archives(folder)
    states = table.samples["disease_state"].astype("string").str.strip()
    unknown = states[states.notna() & ~states.isin([*_LABELS, *_EXCLUDED])]
    if len(unknown):
        raise ValueError(
            f"{folder}, sample {shortened(unknown.index[0])}: the disease state {shortened(unknown.iloc[0])} is none "
            f"of {', '.join([*_LABELS, *sorted(_EXCLUDED)])}."
        )
    kept = states.isin(list(_LABELS)).to_numpy(dtype=bool)
    if not small_adenomas:
        kept = kept & (table.samples["diagnosis"].fillna("") != _SMALL_ADENOMA).to_numpy(dtype=bool)
    samples, counts = table.samples[kept], table.counts[kept].to_numpy(dtype=np.float64)
    if not kept.any():
        raise ValueError(f"{folder} has no sample labelled CRC or H.")
    reads = counts.sum(axis=1)
    if np.any(reads == 0):
        raise ValueError(f"{folder}, sample {shortened(samples.index[int(np.argmin(reads))])} has no reads at all.")
    prevalent = (counts > 0).mean(axis=0) >= min_prevalence
    names = [str(name).split("|", 1)[1] for name in samples.index]
    data = MultiEnvironmentData(
        X=(counts / reads[:, None])[:, prevalent],
        y=states[kept].map(_LABELS).to_numpy(dtype=np.int64),
        environments=samples["cohort"].to_numpy(dtype=np.str_),
        feature_names=tuple(table.counts.columns[prevalent]),
        identifiers=np.array([subject(cohort, name) for cohort, name in zip(samples["cohort"], names, strict=True)]),
        name="microbiome",
        extra={"sample": np.array(names), "diagnosis": samples["diagnosis"].fillna("").to_numpy(dtype=np.str_)},
    )
    return _drop_one_class_cohorts(data)


def subject(cohort: str, sample: str) -> str:
    """Name the subject that a sample was taken from; the same in both cohorts for subjects of Baxter and Zackular."""
    pattern = _SUBJECT_NUMBER.get(cohort)
    found = pattern.fullmatch(sample) if pattern else None
    return f"glne|{found[1]}" if found else f"{cohort}|{sample}"


def log_abundance(X: NDArray[Any]) -> NDArray[np.float64]:
    """log(x + 1e-4): relative abundances on a scale where distances between samples mean something.

    Passed as `transform` to the leak audit. Abundances span five orders of magnitude, and two samples of one subject
    agree in orders of magnitude; on the raw scale the few most abundant genera decide every distance.
    """
    return np.log(np.asarray(X, dtype=np.float64) + 1e-4)


def _drop_one_class_cohorts(data: MultiEnvironmentData) -> MultiEnvironmentData:
    for cohort, label in one_class_environments(data).items():
        warnings.warn(f"{cohort} is left out: all its samples have label {label}.", stacklevel=3)
        data = data.select(data.environments != cohort)
    if not len(data):
        raise ValueError("no cohort has both cancers and controls.")
    return data


def _read_archives(folder: Path) -> GenusTable:
    tables = []
    for cohort in COHORTS:
        stems = (f"{cohort}_results", cohort)
        paths = [folder / f"{stem}{ending}" for stem in stems for ending in ("", ".tar.gz", ".zip")]
        present = [path for path in paths if path.exists()]
        if present:
            tables.append(read_microbiomehd_archive(present[0]))
    if not tables:
        raise FileNotFoundError(
            f"{folder} has neither crc_genus_counts.csv.gz with crc_samples.csv nor any cohort such as "
            "crc_baxter_results.tar.gz. Download them with: eber data fetch microbiome"
        )
    counts = pd.concat([table.counts for table in tables]).fillna(0).astype(np.int64)
    return GenusTable(counts, pd.concat([table.samples for table in tables]))


def _read_genus_table(folder: Path) -> GenusTable | None:
    paths = [path for name in ("crc_genus_counts.csv.gz", "crc_genus_counts.csv") if (path := folder / name).exists()]
    if not paths:
        return None
    counts_path, samples_path = paths[0], folder / "crc_samples.csv"
    if not samples_path.exists():
        raise FileNotFoundError(f"{counts_path} is there, but {samples_path} with its labels is not.")
    samples = read_bounded_csv(samples_path, _MAX_BYTES, dtype="string")
    check_columns(list(samples.columns), ("sample", "cohort", "disease_state", "diagnosis"), samples_path)
    check_unique(samples["sample"], samples_path, first_line=2)
    # The header is read apart, since pandas would rename a repeated column and so hide it.
    header = read_bounded_csv(counts_path, _MAX_BYTES, header=None, nrows=1, dtype="string").iloc[0]
    check_unique(header.rename("genus"), f"{counts_path}, header", first_line=1)
    counts = read_bounded_csv(counts_path, _MAX_BYTES, dtype={"sample": "string"})
    check_columns(list(counts.columns), ("sample",), counts_path)
    check_unique(counts["sample"], counts_path, first_line=2)
    unmatched = set(counts["sample"]) ^ set(samples["sample"])
    if unmatched:
        raise ValueError(f"{shortened(min(unmatched))} is in only one of {counts_path} and {samples_path}.")
    for line, (name, cohort) in enumerate(zip(samples["sample"], samples["cohort"], strict=True), start=2):
        if not name.startswith(f"{cohort}|"):
            raise ValueError(
                f"{samples_path}, line {line}: {shortened(name)} does not begin with its cohort, {shortened(cohort)}."
            )
    genera = [name for name in counts.columns if name != "sample"]
    for genus in genera:
        numbers = numeric_column(counts[genus], counts_path, first_line=2)
        bad = np.flatnonzero(~are_reads(numbers))
        if len(bad):
            raise ValueError(
                f"{counts_path}, line {bad[0] + 2}, column {shortened(genus)}: {numbers[bad[0]]} is not a number "
                "of reads."
            )
    counts = counts.set_index("sample")[genera].astype(np.int64)
    return GenusTable(counts, samples.set_index("sample").loc[counts.index])
