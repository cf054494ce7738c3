"""Where the data sets come from, under which licence, and whom to cite.

Checksums are given where the file is fixed and its checksum is known; those of PhysioNet's archives are the ones that
the package tsdm (R. Scholz) records for the same addresses. A SkyServer answer is made anew for each query, and every
row of it is held against the query; for the archives of Zenodo no checksum is at hand, and what they hold is compared
with a copy that is known. For both, `eber.datasets.fetch.fetch` notes the checksum of the first download, and later
checks are against that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from eber.datasets.content import EVERY, MAGNITUDES, check_skyserver_answer, cohort_checksum
from eber.datasets.microbiome import COHORTS
from eber.datasets.microbiomehd import is_needed


@dataclass(frozen=True)
class SourceFile:
    """One file to download.

    Parameters
    ----------
    path : str
        Where it goes, relative to the data folder.
    urls : tuple of str
        The official address and mirrors of the same file, tried in this order.
    kind : {"gzip", "zip", "csv"}
        What the content must look like, so that a page with an error message is not taken for data.
    sha256 : str, optional
        Known checksum.
    unpack_to : str, optional
        Folder, relative to the data folder, that an archive is unpacked to. Archives without it are read as they are.
    wanted : callable, optional
        Which files of the archive to unpack, by name; all by default.
    check : callable, optional
        Refuses, with a ValueError, what cannot be the file.
    content : callable, optional
        From the folder that an archive was unpacked to, the checksum of what it holds, and
    content_sha256 : str, optional
        what that is in the copy that is known.
    """

    path: str
    urls: tuple[str, ...]
    kind: Literal["gzip", "zip", "csv"]
    sha256: str | None = None
    unpack_to: str | None = None
    wanted: Callable[[str], bool] | None = None
    check: Callable[[Path], None] | None = None
    content: Callable[[Path], str] | None = None
    content_sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """A data set: its files, and what its makers ask of those who use it.

    Parameters
    ----------
    name : str
        As in ``eber data fetch NAME``.
    title, licence, citation : str
    page : str
        Where a person finds the data.
    folder : str
        Folder of the data set within the data folder.
    files : tuple of SourceFile
    """

    name: str
    title: str
    licence: str
    citation: str
    page: str
    folder: str
    files: tuple[SourceFile, ...]


SKYSERVER_ROWS = 50_000
# Of the table of genera of all five cohorts that the results here were computed from. The raw files of crc_baxter and
# crc_zackular were seen to give the same; an archive of another version of the record may hold more or fewer samples.
_COHORT_CONTENT = {
    "crc_baxter": "6331c08c9f4e24ff5b87f279b25e7d44a699a5c7b82c4604a0f200062184552c",
    "crc_xiang": "5a40b6e1dce5e145c62f97ded79f485beed15fc3b07ffbacfef9080f13c1f0c6",
    "crc_zackular": "d684f9dc3fc6430a328a7866c5e92750e08ee68756cdc92ee550f875411610c4",
    "crc_zeller": "29d60b1f5ec384558803bb9edc93cb19048afe4784a36805c9cdd9447a9eba4e",
    "crc_zhao": "710796eb4b004c0c22cdd0a6abc94b8e24c9be8f6d85923b0924749346e91234",
}


def skyserver_query(limit: int = SKYSERVER_ROWS) -> str:
    """The SQL query for spectroscopic objects with good flags and 14 <= r <= 22, in SkyServer's dialect.

    SkyServer gives rows in the order of its index, that is, from one corner of the sky. Taking every 83rd object number
    spreads the rows over the whole survey.
    """
    return (
        f"SELECT TOP {limit} p.objid, s.specobjid, s.class, p.ra, p.dec, p.u, p.g, p.r, p.i, p.z, "
        "s.z AS redshift, s.zWarning, p.clean, p.mode "
        "FROM PhotoObj AS p JOIN SpecObj AS s ON s.bestobjid = p.objid "
        "WHERE s.zWarning = 0 AND p.clean = 1 AND p.mode = 1 "
        f"AND p.r BETWEEN {MAGNITUDES[0]} AND {MAGNITUDES[1]} AND p.objid % {EVERY} = 0"
    )


def skyserver_url(release: str = "dr17", limit: int = SKYSERVER_ROWS) -> str:
    """The address that answers `skyserver_query` with a csv file."""
    query = urlencode({"cmd": skyserver_query(limit), "format": "csv"})
    return f"https://skyserver.sdss.org/{release}/SkyServerWS/SearchTools/SqlSearch?{query}"


def _mnist(name: str, sha256: str) -> SourceFile:
    mirrors = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
    return SourceFile(f"mnist/{name}", tuple(f"{mirror}/{name}" for mirror in mirrors), "gzip", sha256)


def _microbiomehd(cohort: str) -> SourceFile:
    name = f"{cohort}_results.tar.gz"
    return SourceFile(
        path=f"microbiome/{name}",
        urls=(f"https://zenodo.org/records/569601/files/{name}?download=1",),
        kind="gzip",
        unpack_to=f"microbiome/{cohort}_results",
        wanted=is_needed,
        content=cohort_checksum,
        content_sha256=_COHORT_CONTENT[cohort],
    )


def _physionet(part: str, sha256: str) -> SourceFile:
    # 40,336 small files are read faster from the archive than from most disks, so it stays packed.
    url = f"https://archive.physionet.org/users/shared/challenge-2019/{part}.zip"
    return SourceFile(f"sepsis/{part}.zip", (url,), "zip", sha256)


SOURCES = {
    source.name: source
    for source in (
        Source(
            name="mnist",
            title="MNIST handwritten digits, from which Colored MNIST is made",
            licence="CC BY-SA 3.0",
            citation="LeCun, Bottou, Bengio, Haffner (1998), Gradient-based learning applied to document recognition",
            page="http://yann.lecun.com/exdb/mnist/",
            folder="mnist",
            files=(
                _mnist(
                    "train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
                ),
                _mnist(
                    "train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
                ),
                _mnist("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
                _mnist("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
            ),
        ),
        Source(
            name="quasar",
            title="Quasars and stars of the Sloan Digital Sky Survey, Data Release 17",
            licence="public domain; SDSS asks to be acknowledged",
            citation="Abdurro'uf et al. (2022), The Seventeenth Data Release of the Sloan Digital Sky Surveys",
            page="https://skyserver.sdss.org/dr17/SearchTools/sql",
            folder="sdss",
            files=(
                SourceFile(
                    "sdss/skyserver.csv",
                    (skyserver_url(),),
                    "csv",
                    check=partial(check_skyserver_answer, limit=SKYSERVER_ROWS),
                ),
            ),
        ),
        Source(
            name="microbiome",
            title="MicrobiomeHD, the five colorectal-cancer cohorts",
            licence="see the Zenodo record; described by others as CC BY-NC 4.0",
            citation="Duvallet, Gibbons, Gurry, Irizarry, Alm (2017), Meta-analysis of gut microbiome studies "
            "identifies disease-specific and shared responses, and the paper of each cohort",
            page="https://zenodo.org/records/569601",
            folder="microbiome",
            files=tuple(_microbiomehd(cohort) for cohort in COHORTS),
        ),
        Source(
            name="sepsis",
            title="PhysioNet/CinC Challenge 2019, training sets A and B",
            licence="open access; see the project page",
            citation="Reyna et al. (2020), Early Prediction of Sepsis From Clinical Data, doi 10.13026/v64v-d857",
            page="https://physionet.org/content/challenge-2019/1.0.0/",
            folder="sepsis",
            files=(
                _physionet("training_setA", "c0def317798312e4facc0f33ac0202b3a34f412052d9096e8b122b4d3ecb7935"),
                _physionet("training_setB", "8a88d69a5f64bc9a87d869f527fcc2741c0712cb9a7cb1f5cdcb725336b4c8cc"),
            ),
        ),
    )
}
