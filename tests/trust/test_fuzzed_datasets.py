"""Dataset files that were damaged, or made to do harm, are refused by name; nothing is run, written or filled up."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.datasets import idx, microbiome, microbiomehd, quasar
from eber.datasets.archive import UnsafeArchiveError
from eber.datasets.idx import read_idx
from eber.datasets.microbiome import load_microbiome
from eber.datasets.microbiomehd import read_microbiomehd_archive
from eber.datasets.quasar import load_quasar
from eber.datasets.sepsis_records import COLUMNS, read_parquet, read_psv
from tests.trust.effort import times
from tests.trust.mutations import mutants, refused_or_read

Tally = Callable[[str, int], None]
rng = np.random.default_rng(0)

IDX = struct.pack(">IIII", 0x803, 5, 4, 4) + rng.bytes(80)


def _sky(n: int) -> bytes:
    table = pd.DataFrame({"objid": range(n), "class": ["QSO", "STAR"] * (n // 2), "ra": rng.uniform(0, 360, n)})
    table = table.assign(dec=rng.uniform(-90, 90, n), **{band: rng.uniform(15, 21, n) for band in "ugriz"})
    return b"#Table1\n" + table.assign(zWarning=0, clean=1, mode=1).round(4).to_csv(index=False).encode()


def _stay(hours: int) -> pd.DataFrame:
    table = pd.DataFrame(rng.normal(size=(hours, len(COLUMNS))).round(2), columns=list(COLUMNS))
    table.iloc[0, 3] = np.nan
    return table.assign(ICULOS=range(1, hours + 1), SepsisLabel=0)


def _lines(head: str, rows: list[str]) -> bytes:
    return "\n".join([head, *rows, ""]).encode()


def _reads(separator: str, n: int) -> str:
    return separator.join(map(str, rng.integers(1, 90, n)))


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


SKY = _sky(60)
PSV = _stay(8).to_csv(index=False, sep="|", na_rep="NaN").encode()
STAYS = io.BytesIO()
pd.concat([_stay(6).assign(patient_id=f"p{k}", source="A") for k in range(4)]).to_parquet(STAYS)
OTU = _lines(
    "\t" + "\t".join(f"s{j}" for j in range(6)),
    [f"k__B;g__G{i % 4};s__;d__{i}\t{_reads(chr(9), 6)}" for i in range(20)],
)
METADATA = _lines("sample\tDiseaseState\tdiagnosis_s", [f"s{j}\t{'H' if j % 2 else 'CRC'}\tx" for j in range(6)])
GENERA = _lines(
    "sample," + ",".join(f"k__B;g__{j}" for j in range(4)), [f"crc_zhao|s{i},{_reads(',', 4)}" for i in range(10)]
)
SAMPLES = _lines(
    "sample,cohort,disease_state,diagnosis", [f"crc_zhao|s{i},crc_zhao,{'H' if i % 2 else 'CRC'}," for i in range(10)]
)


def _cohort(path: Path) -> None:
    read_microbiomehd_archive(path, min_sample_reads=1, min_otu_reads=1)


def _hours(folder: Path) -> None:
    window = read_psv([folder], 24)
    assert all(len(window.column(name)) == window.lengths.sum() for name in COLUMNS)


def _parquet(path: Path) -> None:
    window = read_parquet(path, 24)
    assert all(len(window.column(name)) == window.lengths.sum() for name in COLUMNS)


# Parser to: the file that is damaged, its content, the good files beside it, and what reads the file or its folder.
PARSERS: dict[str, tuple[str, bytes, dict[str, bytes], Callable[[Path], object]]] = {
    "idx": ("images", IDX, {}, lambda path: read_idx(path, 3)),
    "idx, gzipped": ("images", gzip.compress(IDX, mtime=0), {}, lambda path: read_idx(path, 3)),
    "SkyServer CSV": ("sky.csv", SKY, {}, load_quasar),
    "SkyServer CSV, gzipped": ("sky.csv", gzip.compress(SKY, mtime=0), {}, load_quasar),
    "psv": ("p000001.psv", PSV, {"p000002.psv": PSV}, lambda path: _hours(path.parent)),
    "sepsis parquet": ("stays.parquet", STAYS.getvalue(), {}, _parquet),
    "OTU table": ("crc_x.otu_table.txt", OTU, {"crc_x.metadata.txt": METADATA}, lambda path: _cohort(path.parent)),
    "metadata": ("crc_x.metadata.txt", METADATA, {"crc_x.otu_table.txt": OTU}, lambda path: _cohort(path.parent)),
    "OTU zip": ("crc_x.zip", _zip({"crc_x.otu_table.txt": OTU, "crc_x.metadata.txt": METADATA}), {}, _cohort),
    "genus table": (
        *("crc_genus_counts.csv", GENERA, {"crc_samples.csv": SAMPLES}),
        lambda path: load_microbiome(path.parent),
    ),
    "sample table": (
        *("crc_samples.csv", SAMPLES, {"crc_genus_counts.csv": GENERA}),
        lambda path: load_microbiome(path.parent),
    ),
}


@pytest.mark.parametrize("parser", PARSERS)
def test_a_damaged_file_is_read_or_refused(parser: str, tmp_path: Path, tally: Tally) -> None:
    """Seen to fail: a read count of 1e300, a zip entry packed in an unknown way, a parquet column without its pages."""
    name, good, beside, read = PARSERS[parser]
    folder = tmp_path / "data"
    folder.mkdir()
    for other, content in beside.items():
        (folder / other).write_bytes(content)
    path = folder / name
    path.write_bytes(good)
    read(path)
    count = times(120, 4000)
    for content in mutants(good, count, np.random.default_rng(1)):
        path.write_bytes(content)
        with refused_or_read(str(folder)):
            read(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == sorted(["data", name, *beside])
    tally("inputs fuzzed", count)


BOMB = gzip.compress(b"1,2,3\n" * 700_000, mtime=0)  # 4 MB in 6 kB


@pytest.mark.parametrize(
    ("module", "name", "content", "read"),
    [
        (idx, "images", gzip.compress(IDX + bytes(4_000_000)), lambda path: read_idx(path, 3)),
        (quasar, "sky.csv.gz", gzip.compress(SKY + b"1,QSO,1,1,15,15,15,15,15,0,1,1\n" * 100_000), load_quasar),
        (microbiome, "crc_genus_counts.csv.gz", BOMB, lambda path: load_microbiome(path.parent)),
        (microbiomehd, "crc_x.zip", _zip({"crc_x.metadata.txt": METADATA, "crc_x.otu_table.txt": OTU * 4000}), _cohort),
    ],
    ids=["idx", "SkyServer CSV", "genus table", "OTU zip"],
)
def test_a_bomb_is_refused_at_the_limit(
    module: object,
    name: str,
    content: bytes,
    read: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the limit at 1 MB. Seen to fail when the budget is not paid."""
    monkeypatch.setattr(module, "_MAX_BYTES", 1_000_000)
    (tmp_path / "crc_samples.csv").write_bytes(SAMPLES)
    (tmp_path / name).write_bytes(content)
    assert len(content) < 200_000
    with pytest.raises(UnsafeArchiveError, match="unpacks to more than 1000000 bytes"):
        read(tmp_path / name)


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crc_x.metadata.txt").write_bytes(METADATA)
    (tmp_path / "crc_x.otu_table.txt").write_bytes(b"\ts" * 2_000_000)
    with pytest.raises(ValueError, match="first line of more than"):
        _cohort(tmp_path)
