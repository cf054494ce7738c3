"""The cohorts: labels, abundances, subjects, and the raw archives against the table of genera."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eber.datasets.microbiome import load_microbiome, subject
from eber.datasets.microbiomehd import read_microbiomehd_archive

LINEAGE = "k__Bacteria;p__Firmicutes;c__Clostridia;o__Clostridiales;f__Lachnospiraceae;g__{}"


@pytest.fixture
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two cohorts of six samples: two cancers, two controls, an adenoma, one without label."""
    rng = np.random.default_rng(0)
    samples = pd.DataFrame(
        {
            "sample": [f"{cohort}|s{k}" for cohort in ("crc_xiang", "crc_zhao") for k in range(6)],
            "cohort": np.repeat(["crc_xiang", "crc_zhao"], 6),
            "disease_state": ["CRC", "CRC", "H", "H", "nonCRC", None] * 2,
            "diagnosis": "",
        }
    )
    counts = pd.DataFrame(rng.integers(1, 50, (12, 3)), columns=[LINEAGE.format(genus) for genus in "ABC"])
    counts[LINEAGE.format("Rare")] = 0
    return counts.assign(sample=samples["sample"]), samples


def write(folder: Path, counts: pd.DataFrame, samples: pd.DataFrame) -> Path:
    (folder / "crc_genus_counts.csv.gz").write_bytes(gzip.compress(counts.to_csv(index=False).encode()))
    samples.to_csv(folder / "crc_samples.csv", index=False)
    return folder


def test_only_cancers_and_controls_are_kept_as_relative_abundances(
    tmp_path: Path, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    data = load_microbiome(write(tmp_path, *tables))
    assert len(data) == 8
    np.testing.assert_array_equal(data.y, [1, 1, 0, 0] * 2)
    np.testing.assert_allclose(data.X.sum(axis=1), 1)
    assert data.feature_names == tuple(LINEAGE.format(genus) for genus in "ABC")
    assert [str(name) for name in data.environment_names] == ["crc_xiang", "crc_zhao"]


def test_prevalence_counts_the_kept_samples_of_all_cohorts(
    tmp_path: Path, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    counts, samples = tables
    counts.loc[0, LINEAGE.format("Rare")] = 5
    write(tmp_path, counts, samples)
    assert len(load_microbiome(tmp_path, min_prevalence=1 / 8).feature_names) == 4
    assert len(load_microbiome(tmp_path, min_prevalence=0.13).feature_names) == 3


def test_a_cohort_with_one_class_is_left_out_with_a_warning(
    tmp_path: Path, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    counts, samples = tables
    samples.loc[samples["cohort"] == "crc_zhao", "disease_state"] = "H"
    with pytest.warns(UserWarning, match="crc_zhao is left out"):
        data = load_microbiome(write(tmp_path, counts, samples))
    assert [str(name) for name in data.environment_names] == ["crc_xiang"]


def test_bad_tables_are_refused_with_the_place(tmp_path: Path, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    counts, samples = tables
    genus = LINEAGE.format("B")
    twice = samples.assign(sample=samples["sample"].where(samples.index != 4, samples["sample"][2]))
    with pytest.raises(ValueError, match=r"crc_samples\.csv, line 6, column 'sample': .* already on line 4"):
        load_microbiome(write(tmp_path, counts, twice))
    with pytest.raises(ValueError, match=r"'crc_zhao\|s5' is in only one of"):
        load_microbiome(write(tmp_path, counts.iloc[:-1], samples))
    text = counts.astype({genus: object})
    text.loc[3, genus] = "many"
    with pytest.raises(ValueError, match=r"counts\.csv\.gz, line 5, column '.*g__B': 'many' is not a number"):
        load_microbiome(write(tmp_path, text, samples))
    with pytest.raises(ValueError, match=r"line 2, column '.*g__B': -1\.0 is not a number of reads"):
        load_microbiome(write(tmp_path, counts.assign(**{genus: [-1, *[1] * 11]}), samples))
    with pytest.raises(ValueError, match="no column 'disease_state'"):
        load_microbiome(write(tmp_path, counts, samples.drop(columns="disease_state")))
    with pytest.raises(ValueError, match=r"crc_samples\.csv, line 2: 'crc_xiang\|s0' does not begin with its cohort"):
        load_microbiome(write(tmp_path, counts, samples.assign(cohort="crc_zhao")))
    with pytest.raises(ValueError, match="'healthyish' is none of"):
        load_microbiome(write(tmp_path, counts, samples.replace("nonCRC", "healthyish")))
    write(tmp_path, counts, samples)
    packed = (tmp_path / "crc_genus_counts.csv.gz").read_bytes()
    (tmp_path / "crc_genus_counts.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ValueError, match="damaged, cut off"):
        load_microbiome(tmp_path)


def test_a_repeated_genus_is_named(tmp_path: Path, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    counts, samples = tables
    repeated = pd.concat([counts, counts.iloc[:, 1:2]], axis=1)
    with pytest.raises(ValueError, match=r"header.*genus"):
        load_microbiome(write(tmp_path, repeated, samples))


def test_cohorts_that_are_to_be_trained_on_must_be_there(
    tmp_path: Path, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    data = load_microbiome(write(tmp_path, *tables))
    data.require(data.environment_names)
    with pytest.raises(ValueError, match=r"'crc_xiangg' is needed .* eber data fetch microbiome"):
        data.require([*data.environment_names, "crc_xiangg"])


def test_an_empty_folder_is_told_what_to_fetch(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="eber data fetch microbiome"):
        load_microbiome(tmp_path)


def cohort_files(cohort: str, names: dict[str, str], reads: list[list[object]]) -> dict[str, bytes]:
    """A cohort as on Zenodo; `names` maps samples to their labels."""
    metadata = "#SampleID\tnote\tDiseaseState\n" + "".join(f"{name}\t\xae\t{state}\n" for name, state in names.items())
    table = "\t".join(["", *names, "mock1"]) + "\n"
    for number, (genus, row) in enumerate(zip("AABC", reads, strict=True)):
        table += "\t".join([f"{LINEAGE.format(genus)};s__;d__denovo{number}", *map(str, row)]) + "\n"
    return {
        f"{cohort}_results/{cohort}.metadata.txt": metadata.encode("latin-1"),
        f"{cohort}_results/RDP/{cohort}.otu_table.100.denovo.rdp_assigned": table.encode(),
        f"{cohort}_results/RDP/._{cohort}.otu_table.100.denovo.rdp_assigned": b"shadow",
        f"{cohort}_results/{cohort}.otu_seqs.100.fasta": b">denovo0\nACGT\n",
    }


NAMES = {"a": "CRC", "b": "H", "shallow": "H"}
READS: list[list[object]] = [[90, 40, 20, 7], [30, 60, 20, 7], [0, 8, 1, 900], [5, 5, 9, 0]]


def as_archive(files: dict[str, bytes], path: Path) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    elif path.suffix == ".gz":
        with tarfile.open(path, "w:gz") as tar:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    else:
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["crc_xiang.zip", "crc_xiang_results.tar.gz", "crc_xiang_results"])
def test_otus_are_cleaned_and_collapsed_to_genera(tmp_path: Path, name: str) -> None:
    table = read_microbiomehd_archive(as_archive(cohort_files("crc_xiang", NAMES, READS), tmp_path / name))
    # The mock community has no metadata, "shallow" has 50 reads, and B has 8 reads without them.
    assert table.counts.to_dict("index") == {
        "crc_xiang|a": {LINEAGE.format("A"): 120, LINEAGE.format("C"): 5},
        "crc_xiang|b": {LINEAGE.format("A"): 100, LINEAGE.format("C"): 5},
    }
    assert list(table.samples["disease_state"]) == ["CRC", "H"]


def test_cohorts_are_combined_and_missing_genera_are_zero(tmp_path: Path) -> None:
    as_archive(cohort_files("crc_xiang", NAMES, READS), tmp_path / "crc_xiang_results.tar.gz")
    other: list[list[object]] = [[0, 0, 0, 0], [0, 0, 0, 0], [90, 40, 200, 0], [50, 70, 90, 0]]
    as_archive(cohort_files("crc_zhao", NAMES, other), tmp_path / "crc_zhao.zip")
    data = load_microbiome(tmp_path)
    assert len(data) == 5
    np.testing.assert_allclose(data.X.sum(axis=1), 1)
    genus_a = data.feature_names.index(LINEAGE.format("A"))
    assert not data.X[data.environments == "crc_zhao", genus_a].any()


def test_a_sample_whose_name_ends_in_a_zero_byte_is_another_sample(tmp_path: Path) -> None:
    """To numpy both names are the same."""
    files = cohort_files("crc_xiang", NAMES, READS)
    damaged = {
        name: content if "metadata" in name else content.replace(b"\ta\t", b"\ta\0\t", 1)
        for name, content in files.items()
    }
    table = read_microbiomehd_archive(as_archive(damaged, tmp_path / "crc_xiang.zip"))
    assert "crc_xiang|a" not in table.counts.index


def test_bad_archives_are_refused_with_the_place(tmp_path: Path) -> None:
    def read(files: dict[str, bytes], name: str = "crc_xiang.zip") -> None:
        (tmp_path / name).unlink(missing_ok=True)
        read_microbiomehd_archive(as_archive(files, tmp_path / name))

    files = cohort_files("crc_xiang", NAMES, READS)
    with pytest.raises(ValueError, match=r"0 files .*metadata\.txt and 1 OTU tables"):
        read({name: content for name, content in files.items() if "metadata" not in name})
    text: list[list[object]] = [*READS[:2], [0, "x", 1, 9], READS[3]]
    with pytest.raises(ValueError, match=r"rdp_assigned, line 4, column 'b': 'x' is not a number"):
        read(cohort_files("crc_xiang", NAMES, text))
    negative: list[list[object]] = [*READS[:2], [0, -8, 1, 9], READS[3]]
    with pytest.raises(ValueError, match="line 4, column 'b': -8 is not a number of reads"):
        read(cohort_files("crc_xiang", NAMES, negative))
    with pytest.raises(ValueError, match=r"line 3: .* names no genus"):
        read({name: content.replace(b"g__A;s__;d__denovo1", b"denovo1") for name, content in files.items()})
    with pytest.raises(ValueError, match="no column 'DiseaseState'"):
        read({name: content.replace(b"DiseaseState", b"Disease") for name, content in files.items()})
    with pytest.raises(ValueError, match="'a' was already on line"):
        read({name: content.replace(b"\nb\t", b"\na\t") for name, content in files.items()})
    read(files, "crc_xiang.tar.gz")
    whole = (tmp_path / "crc_xiang.tar.gz").read_bytes()
    (tmp_path / "crc_xiang.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"crc_xiang\.tar\.gz.*cut off"):
        read_microbiomehd_archive(tmp_path / "crc_xiang.tar.gz")


@pytest.mark.parametrize(
    ("cohort", "sample", "expected"),
    [
        ("crc_baxter", "2065653", "glne|2065"),
        ("crc_zackular", "Adenoma1-2065", "glne|2065"),
        ("crc_zackular", "Healthy30-3291-66", "glne|3291"),
        ("crc_zeller", "FR-026", "crc_zeller|FR-026"),
        ("crc_xiang", "2065653", "crc_xiang|2065653"),
    ],
)
def test_subjects_of_the_two_michigan_cohorts_are_named_alike(cohort: str, sample: str, expected: str) -> None:
    assert subject(cohort, sample) == expected


def test_the_real_cohorts_have_the_known_sizes(data_dir: Path) -> None:
    data = load_microbiome(data_dir)
    sizes = {str(name): int(np.sum(data.environments == name)) for name in data.environment_names}
    assert sizes == {"crc_baxter": 292, "crc_xiang": 43, "crc_zackular": 60, "crc_zeller": 116, "crc_zhao": 99}
    assert data.y[data.environments == "crc_zhao"].sum() == 44
    assert np.sum(data.extra["diagnosis"] == "Small adenoma") == 25


def test_84_subjects_of_zackular_are_also_in_baxter(data_dir: Path) -> None:
    samples = pd.read_csv(data_dir / "microbiome" / "crc_samples.csv")["sample"].str.split("|")
    subjects = {
        cohort: {subject(cohort, name) for found, name in samples if found == cohort}
        for cohort in ("crc_baxter", "crc_zackular")
    }
    assert len(subjects["crc_zackular"]) == 90
    assert len(subjects["crc_zackular"] & subjects["crc_baxter"]) == 84


@pytest.mark.parametrize("cohort", ["crc_zackular", "crc_baxter"])
def test_the_raw_archive_gives_exactly_the_table_of_genera(data_dir: Path, cohort: str) -> None:
    folder = data_dir / "microbiome"
    raw = read_microbiomehd_archive(folder / f"{cohort}.zip")
    table = pd.read_csv(folder / "crc_genus_counts.csv.gz", index_col="sample")
    table = table[table.index.str.startswith(f"{cohort}|")]
    table = table.loc[:, (table > 0).any()]
    pd.testing.assert_frame_equal(raw.counts.loc[table.index, table.columns], table, check_names=False)
    assert raw.counts.shape == table.shape
