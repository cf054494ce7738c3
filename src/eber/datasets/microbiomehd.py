"""One cohort as MicrobiomeHD ships it: sample metadata and a table of operational taxonomic units (OTUs)."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from eber.datasets.archive import members
from eber.datasets.checks import check_columns, check_unique, naming_damage, numeric_column, read_csv
from eber.io.text import shortened

# The names on Zenodo, and those of the two zips that hold just these files. Archives made on a Mac carry a shadow
# "._name" of every file.
_METADATA = re.compile(r"(?!\._)(?P<cohort>\w+)\.metadata\.txt")
_OTU_TABLE = re.compile(r"(?!\._)\w+\.otu_table(\.100\.denovo\.rdp_assigned|\.txt)")
# Two samples are spelt differently in crc_zackular's OTU table and metadata.
_MISSPELT = {"Ademona1-2065": "Adenoma1-2065", "ADenoma12-2799": "Adenoma12-2799"}
_ROWS_AT_ONCE = 4000
_MAX_READS = 10**12
# The largest cohort's table has 134 MB, its header 5 kB.
_MAX_BYTES = 2**30
_MAX_HEADER = 2**20


class GenusTable(NamedTuple):
    """Reads of each genus in each sample.

    Attributes
    ----------
    counts : DataFrame of shape (samples, genera)
        Indexed by ``cohort|sample``; columns are lineages such as ``k__Bacteria;...;g__Blautia``.
    samples : DataFrame
        Same index; columns ``cohort``, ``disease_state``, ``diagnosis``.
    """

    counts: pd.DataFrame
    samples: pd.DataFrame


class _OtuTable(NamedTuple):
    samples: list[str]
    genera: list[str]  # of each OTU
    reads: sparse.csr_array  # (OTUs, samples)


def read_microbiomehd_archive(path: str | Path, *, min_sample_reads: int = 100, min_otu_reads: int = 10) -> GenusTable:
    """Read a cohort and collapse its OTUs to genera.

    Samples without metadata (mock communities) are dropped, then shallow samples, then rare OTUs, as in MicrobiomeHD's
    own analysis.

    Parameters
    ----------
    path : path
        ``crc_baxter_results.tar.gz``, a .zip of the same files, or the unpacked folder. Needed are
        ``<cohort>.metadata.txt`` with a column ``DiseaseState`` and the RDP-annotated table
        ``<cohort>.otu_table.100.denovo.rdp_assigned`` (or ``<cohort>.otu_table.txt``), at any depth.
    min_sample_reads : int
        Samples with fewer reads are dropped.
    min_otu_reads : int
        OTUs with fewer reads in all remaining samples together are dropped.
    """
    path = Path(path)
    metadata: dict[str, pd.DataFrame] = {}
    otu_tables: list[_OtuTable] = []
    for name, stream in members(path, is_needed, max_bytes=_MAX_BYTES):
        base = PurePosixPath(name).name
        if found := _METADATA.fullmatch(base):
            metadata[found["cohort"]] = _read_metadata(stream, f"{path}: {name}")
        else:
            otu_tables.append(_read_otu_table(stream, f"{path}: {name}"))
    if len(metadata) != 1 or len(otu_tables) != 1:
        raise ValueError(
            f"{path} has {len(metadata)} files *.metadata.txt and {len(otu_tables)} OTU tables "
            "(*.otu_table.100.denovo.rdp_assigned or *.otu_table.txt); one of each is expected."
        )
    [(cohort, labels)], [table] = metadata.items(), otu_tables
    return _collapse(cohort, labels, table, min_sample_reads, min_otu_reads, path)


def is_needed(name: str) -> bool:
    """Whether a file of the archive is one of the two that are read."""
    base = PurePosixPath(name).name
    return bool(_METADATA.fullmatch(base) or _OTU_TABLE.fullmatch(base))


def _read_metadata(stream: IO[bytes], path: str) -> pd.DataFrame:
    # Some files hold stray bytes that are not UTF-8, in columns that are not used here.
    table = read_csv(stream, path, sep="\t", dtype="string", encoding="latin-1")
    check_columns(list(table.columns), ("DiseaseState",), path)
    check_unique(table.iloc[:, 0], path, first_line=2)
    table.index = pd.Index(table.iloc[:, 0], name="sample")
    diagnosis = table["diagnosis_s"] if "diagnosis_s" in table else pd.Series(pd.NA, table.index, dtype="string")
    return pd.DataFrame({"disease_state": table["DiseaseState"], "diagnosis": diagnosis})


def _read_otu_table(stream: IO[bytes], path: str) -> _OtuTable:
    """Read the table piece by piece: it is a hundred times larger as text than as a sparse matrix."""
    header = stream.readline(_MAX_HEADER + 1)
    if len(header) > _MAX_HEADER:
        raise ValueError(f"{path} has a first line of more than {_MAX_HEADER} bytes, which no OTU table has.")
    samples = header.decode("utf-8", "replace").rstrip("\r\n").split("\t")[1:]
    samples = [_MISSPELT.get(name, name) for name in samples]
    check_unique(pd.Series(samples, name="sample"), f"{path}, header", first_line=1)
    pieces = read_csv(
        stream, path, sep="\t", header=None, names=["OTU", *samples], index_col=0, chunksize=_ROWS_AT_ONCE
    )
    genera: list[str] = []
    reads = []
    with naming_damage(path):
        for piece in pieces:
            line = 2 + len(genera)
            if piece.shape[1] != len(samples):
                raise ValueError(f"{path}, line {line}: rows have {piece.shape[1]} samples, the header {len(samples)}.")
            genera += [_genus(str(lineage), path, line + row) for row, lineage in enumerate(piece.index)]
            reads.append(sparse.csr_array(_counts(piece, path, line)))
    if not reads or not samples:
        raise ValueError(f"{path} has no samples or no OTUs.")
    return _OtuTable(samples, genera, sparse.vstack(reads, format="csr"))


def _counts(piece: pd.DataFrame, path: str, line: int) -> NDArray[np.int64]:
    if not all(dtype.kind == "i" for dtype in piece.dtypes):
        piece = piece.apply(lambda column: pd.Series(numeric_column(column, path, line), column.index))
    values = piece.to_numpy()
    bad = np.argwhere(~are_reads(values))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"{path}, line {line + row}, column {shortened(piece.columns[column])}: {values[row, column]} is not a "
            "number of reads."
        )
    return values.astype(np.int64)


def are_reads(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where values are numbers of reads: whole, not negative, and not beyond what any sequencer gives."""
    return (values >= 0) & (values <= _MAX_READS) & (values == np.floor(values))


def _genus(lineage: str, path: str, line: int) -> str:
    genus = lineage.split(";s__", 1)[0]
    if ";g__" not in genus:
        raise ValueError(f"{path}, line {line}: {shortened(lineage)} names no genus (k__...;g__...;s__...;d__...).")
    return genus


def _collapse(
    cohort: str, labels: pd.DataFrame, table: _OtuTable, min_sample_reads: int, min_otu_reads: int, path: Path
) -> GenusTable:
    known = pd.Index(table.samples).isin(labels.index)  # numpy would take a name with a trailing zero byte for another
    deep = np.asarray(table.reads.sum(axis=0)) >= min_sample_reads
    columns = np.flatnonzero(known & deep)
    if not len(columns):
        raise ValueError(f"{path}: no sample of the OTU table has metadata and {min_sample_reads} reads.")
    reads = table.reads[:, columns]
    frequent = np.flatnonzero(np.asarray(reads.sum(axis=1)) >= min_otu_reads)
    names, genus = np.unique(np.asarray(table.genera)[frequent], return_inverse=True)
    membership = sparse.csr_array(
        (np.ones(len(frequent), dtype=np.int64), (genus, np.arange(len(frequent)))), shape=(len(names), len(frequent))
    )
    samples = [table.samples[column] for column in columns]
    index = pd.Index([f"{cohort}|{name}" for name in samples], name="sample")
    counts = pd.DataFrame((membership @ reads[frequent]).T.toarray(), index=index, columns=names)
    return GenusTable(counts, labels.loc[samples].set_axis(index).assign(cohort=cohort))
