"""Downloads whose bytes nobody can know beforehand are held against what can be known of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.datasets import fetch as fetch_module
from eber.datasets.content import check_skyserver_answer, cohort_checksum, genus_checksum
from eber.datasets.download import DownloadError
from eber.datasets.fetch import fetch, verify
from eber.datasets.microbiomehd import GenusTable
from eber.datasets.sources import SOURCES, Source
from tests.datasets import test_fetch
from tests.datasets.test_fetch import Server, serve

ROWS = 12
server = test_fetch.server  # a fixture


def answer(**changes: object) -> str:
    """What SkyServer sends, with other values in its fourth row."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"objid": 83 * np.arange(10**15, 10**15 + ROWS), "specobjid": np.arange(ROWS)})
    table["class"] = ["QSO", "STAR"] * (ROWS // 2)
    table = table.assign(ra=rng.uniform(0, 360, ROWS), dec=0.5, **{band: rng.uniform(15, 21, ROWS) for band in "ugriz"})
    table = table.assign(redshift=0.1, zWarning=0, clean=1, mode=1)
    for name, value in changes.items():
        table[name] = [value if row == 3 else good for row, good in enumerate(table[name])]
    return "#Table1\n" + table.to_csv(index=False)


def test_an_answer_to_the_query_is_taken(tmp_path: Path) -> None:
    (tmp_path / "sky.csv").write_text(answer())
    check_skyserver_answer(tmp_path / "sky.csv", ROWS)


@pytest.mark.parametrize(
    ("changes", "demand"),
    [
        ({"objid": 83 * 10**15 + 1}, "objid is a multiple of 83"),
        ({"r": 23.0}, "14 <= r <= 22"),
        ({"r": np.nan}, "14 <= r <= 22"),
        ({"zWarning": 4}, "zWarning = 0"),
        ({"clean": 0}, "clean = 1"),
        ({"mode": 2}, "mode = 1"),
    ],
)
def test_a_row_that_was_not_asked_for_is_named(changes: dict[str, object], demand: str, tmp_path: Path) -> None:
    path = tmp_path / "sky.csv"
    path.write_text(answer(**changes))
    with pytest.raises(ValueError, match=rf"sky\.csv, line 6 is no answer to the query: {demand}"):
        check_skyserver_answer(path, ROWS)


@pytest.mark.parametrize("text", [answer(objid="x"), answer() + answer().split("\n")[2] + "\n", answer(r="bright")])
def test_what_is_no_table_of_objects_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "sky.csv").write_text(text)
    with pytest.raises(ValueError, match=r"sky\.csv"):
        check_skyserver_answer(tmp_path / "sky.csv", 2 * ROWS)


def test_more_rows_than_were_asked_for_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sky.csv").write_text(answer())
    with pytest.raises(ValueError, match=f"has {ROWS} rows; the query asks for {ROWS - 1} at most"):
        check_skyserver_answer(tmp_path / "sky.csv", ROWS - 1)


def served(name: str, server: Server) -> Source:
    """A source whose first file comes from the test's server."""
    source = SOURCES[name]
    return dataclasses.replace(source, files=(dataclasses.replace(source.files[0], urls=(server.url,)),))


def test_an_answer_to_another_query_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(answer(clean=0).encode())]
    with pytest.raises(DownloadError, match=r"not what was asked for.* clean = 1"):
        fetch(served("quasar", server), tmp_path, progress=False, attempts=1)
    assert not (tmp_path / "sdss" / "skyserver.csv").exists()
    server.answers = [serve(answer().encode())]
    (path,) = fetch(served("quasar", server), tmp_path, progress=False, attempts=1)
    assert path.read_text() == answer()


def genera() -> GenusTable:
    """Three samples of a cohort."""
    index = pd.Index(["c|s0", "c|s1", "c|s2"], name="sample")
    counts = pd.DataFrame({"k__B;g__A": [5, 0, 2], "k__B;g__C": [1, 7, 0]}, index=index)
    samples = pd.DataFrame({"disease_state": ["H", "CRC", None], "diagnosis": "", "cohort": "c"}, index=index)
    return GenusTable(counts, samples)


def test_a_checksum_of_genera_is_of_samples_labels_and_reads_alone() -> None:
    table = genera()
    known = genus_checksum(table)
    turned = GenusTable(table.counts.iloc[::-1, ::-1].assign(empty=0), table.samples.iloc[::-1].assign(diagnosis="x"))
    assert genus_checksum(turned) == known, "order, genera that nobody has and remarks do not count"
    more, other, fewer = table.counts.copy(), table.samples.copy(), table.counts.index[:2]
    more.iloc[0, 0] += 1
    other.iloc[0, 0] = "CRC"
    renamed = table.counts.rename(columns={"k__B;g__A": "k__B;g__B"})
    changed = [(more, table.samples), (table.counts, other), (table.counts.loc[fewer], table.samples.loc[fewer])]
    for counts, samples in [*changed, (renamed, table.samples)]:
        assert genus_checksum(GenusTable(counts, samples)) != known


def test_the_raw_files_of_a_cohort_hold_what_is_known(data_dir: Path) -> None:
    """The zip of the data folder, which is packed otherwise than Zenodo's archive."""
    known = {file.path: file.content_sha256 for file in SOURCES["microbiome"].files}
    found = cohort_checksum(data_dir / "microbiome" / "crc_zackular.zip")
    assert found == known["microbiome/crc_zackular_results.tar.gz"]


def test_verify_says_whether_a_cohort_holds_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said and not refused: the record has had several versions."""
    folder = tmp_path / "microbiome" / "crc_xiang_results"
    folder.mkdir(parents=True)
    (folder / "crc_xiang.metadata.txt").write_text("sample\tDiseaseState\ns0\tH\ns1\tCRC\n")
    otus = "".join(f"k__B;g__G{i};s__;d__{i}\t{60 + i}\t{70 + i}\n" for i in range(3))
    (folder / "crc_xiang.otu_table.txt").write_text("\ts0\ts1\n" + otus)
    assert ("microbiome/crc_xiang_results", "content other") in {found[:2] for found in verify(tmp_path)}
    source = SOURCES["microbiome"]
    files = [dataclasses.replace(file, content_sha256=cohort_checksum(folder)) for file in source.files]
    monkeypatch.setitem(fetch_module.SOURCES, "microbiome", dataclasses.replace(source, files=tuple(files)))
    assert ("microbiome/crc_xiang_results", "content right") in {found[:2] for found in verify(tmp_path)}
    (folder / "crc_xiang.otu_table.txt").write_text("damaged")
    assert ("microbiome/crc_xiang_results", "content other") in {found[:2] for found in verify(tmp_path)}
