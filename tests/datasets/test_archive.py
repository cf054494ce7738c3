"""Archives: nothing leaves the folder, nothing grows without limit, nothing half-done is left."""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eber.datasets.archive import UnsafeArchiveError, members, unpack


def zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tar_of(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


Maker = Callable[[Path, dict[str, bytes]], Path]
MAKERS = pytest.mark.parametrize("make", [zip_of, tar_of])


@MAKERS
def test_an_archive_is_unpacked_whole(tmp_path: Path, make: Maker) -> None:
    files = {"a/b.txt": b"one", "c.txt": b"", "a/d/e.txt": b"x" * 3_000_000}
    target = unpack(make(tmp_path / "archive", files), tmp_path / "out")
    found = {path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert found == files


@MAKERS
@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "C:\\evil", "..\\evil", "a/.."])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, make: Maker, name: str) -> None:
    archive = make(tmp_path / "archive", {"good": b"x", name: b"x"})
    with pytest.raises(UnsafeArchiveError, match="leads out of the folder"):
        unpack(archive, tmp_path / "out" / "inner")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["archive", "out"]


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    """zipfile itself cannot write such an entry, and fails on reading it."""
    raw = zip_of(tmp_path / "archive", {"Q": b"x"}).read_bytes()
    middle, end = raw.index(b"PK\x01\x02"), bytearray(raw[raw.index(b"PK\x05\x06") :])
    local, central = bytearray(raw[:middle]), bytearray(raw[middle : raw.index(b"PK\x05\x06")])
    for header, length, name in ((local, 26, 30), (central, 28, 46)):
        header[length] = 0
        del header[name]
    struct.pack_into("<II", end, 12, len(central), len(local))
    (tmp_path / "archive").write_bytes(local + central + end)
    with pytest.raises(UnsafeArchiveError, match="a file without a name"):
        list(members(tmp_path / "archive", lambda name: True))


@given(
    parts=st.lists(st.sampled_from(["..", ".", "a", "b", "", "/", "\\", "C:"]), min_size=1, max_size=6),
    as_zip=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_whatever_a_name_is_nothing_is_written_outside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], as_zip: bool
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    archive = (zip_of if as_zip else tar_of)(folder / "archive", {"/".join(parts) + "x": b"evil"})
    target = folder / "deep" / "er" / "out"
    try:
        unpack(archive, target)
    except UnsafeArchiveError:
        assert not target.exists()
    outside = [path for path in folder.rglob("*") if path.is_file() and target not in path.parents]
    assert outside == [archive]


def tar_with(path: Path, kind: bytes) -> None:
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)


def zip_with(path: Path, kind: int) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, "/etc/passwd")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        *((tar_with, kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)),
        *((zip_with, kind) for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR)),
    ],
)
def test_links_and_devices_are_refused(tmp_path: Path, make: Callable[..., None], kind: Any) -> None:
    make(tmp_path / "archive", kind)
    with pytest.raises(UnsafeArchiveError, match="link or a device"):
        unpack(tmp_path / "archive", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@MAKERS
def test_a_decompression_bomb_is_stopped_at_the_limit(tmp_path: Path, make: Maker) -> None:
    bomb = make(tmp_path / "archive", {"zeros": bytes(20_000_000)})
    assert bomb.stat().st_size < 100_000
    with pytest.raises(UnsafeArchiveError, match="more than 1000000 bytes"):
        unpack(bomb, tmp_path / "out", max_bytes=1_000_000)
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


@MAKERS
def test_too_many_files_are_refused(tmp_path: Path, make: Maker) -> None:
    archive = make(tmp_path / "archive", {f"f{k}": b"" for k in range(11)})
    with pytest.raises(UnsafeArchiveError, match="more than 10 files"):
        unpack(archive, tmp_path / "out", max_files=10)


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", "2")
    with pytest.raises(UnsafeArchiveError, match="'a' twice"):
        unpack(tmp_path / "archive", tmp_path / "out")


@MAKERS
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_cut_off_archive_leaves_nothing_behind(tmp_path: Path, make: Maker, share: float) -> None:
    archive = make(tmp_path / "archive", {f"f{k}": bytes(range(256)) * 40 for k in range(20)})
    content = archive.read_bytes()
    archive.write_bytes(content[: min(int(share * len(content)), len(content) - 4)])
    with pytest.raises(ValueError, match="damaged, cut off"):
        unpack(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_only_wanted_files_are_unpacked(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "archive", {"keep.txt": b"1", "leave.fasta": b"2"})
    target = unpack(archive, tmp_path / "out", lambda name: name.endswith(".txt"))
    assert [path.name for path in target.iterdir()] == ["keep.txt"]


def test_a_tar_of_the_current_folder_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(b"1")
    with tarfile.open(tmp_path / "archive", "w:gz") as archive:
        archive.add(tmp_path / "in", arcname=".")
    assert (unpack(tmp_path / "archive", tmp_path / "out") / "a.txt").read_bytes() == b"1"


def test_an_existing_target_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError, match="already there"):
        unpack(zip_of(tmp_path / "archive", {"a": b"1"}), tmp_path / "out")


def test_a_folder_reads_like_an_archive(tmp_path: Path) -> None:
    files = {"b/c": b"2", "a": b"1"}
    zipped = [(name, stream.read()) for name, stream in members(zip_of(tmp_path / "archive", files))]
    unpack(tmp_path / "archive", tmp_path / "out")
    assert (
        [(name, stream.read()) for name, stream in members(tmp_path / "out")] == zipped == [("a", b"1"), ("b/c", b"2")]
    )
