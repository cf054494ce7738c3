"""The downloader against a server that breaks off, corrupts, refuses and ignores what it is asked."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from eber.datasets import fetch as fetch_module
from eber.datasets.download import DownloadError, ResumingDownloader
from eber.datasets.fetch import default_data_dir, fetch, verify
from eber.datasets.sources import SOURCES, Source, SourceFile, skyserver_url

CONTENT = b"\x1f\x8b" + bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """Answers each request with the next of the planned answers, the last of them again and again."""

    def __init__(self) -> None:
        self.answers: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.requests: list[dict[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append({"path": self.path, **dict(self.headers)})
                answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/file.gz"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


def serve(
    content: bytes = CONTENT, *, stop_after: int | None = None, etag: str = '"v1"', ranges: bool = True
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Send a file, or only its first `stop_after` bytes of this answer, and break off."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        unchanged = handler.headers.get("If-Range", etag) == etag
        start = int(wanted[1]) if wanted and ranges and unchanged else 0
        if start > len(content):
            handler.send_response(416)
            handler.end_headers()
            return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if etag:
            handler.send_header("ETag", etag)
        body = content[start:]
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body if stop_after is None else body[:stop_after])

    return answer


def refuse(status: int) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def source(*urls: str, sha256: str | None = SHA256, **options: object) -> Source:
    file = SourceFile("test/file.gz", urls, "gzip", sha256, **options)  # type: ignore[arg-type]
    return Source("test", "A test", "none", "nobody", "https://example.org/page", "test", (file,))


def get(what: Source, folder: Path, attempts: int = 4) -> bytes:
    [path] = fetch(what, folder, progress=False, attempts=attempts, backoff=0.01)
    assert sorted(os.listdir(path.parent)) == [path.name], "nothing else is left behind"
    return path.read_bytes()


def test_a_whole_file_is_downloaded_once_and_noted(server: Server, tmp_path: Path) -> None:
    server.answers = [serve()]
    assert get(source(server.url), tmp_path) == CONTENT
    assert get(source(server.url), tmp_path) == CONTENT
    assert len(server.requests) == 1
    assert (tmp_path / "SHA256SUMS").read_text() == f"{SHA256}  ./test/file.gz\n"


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_a_broken_download_goes_on_where_it_ended(server: Server, tmp_path: Path, sha256: str | None) -> None:
    server.answers = [serve(stop_after=2**17), serve(stop_after=2**16), serve()]
    assert get(source(server.url, sha256=sha256), tmp_path) == CONTENT
    ranges = [request.get("Range") for request in server.requests]
    assert ranges == [None, f"bytes={2**17}-", f"bytes={2**17 + 2**16}-"]


def test_a_later_run_goes_on_with_what_an_earlier_left(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(stop_after=2**17)]
    with pytest.raises(DownloadError, match=r"gave up after 1 attempts .*goes on with the 131072 bytes"):
        get(source(server.url), tmp_path, attempts=1)
    assert not (tmp_path / "test" / "file.gz").exists()
    server.answers = [serve()]
    assert get(source(server.url), tmp_path) == CONTENT
    assert server.requests[-1]["Range"] == "bytes=131072-"


def test_a_server_that_ignores_ranges_sends_all_again(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(stop_after=2**17, ranges=False), serve(ranges=False)]
    assert get(source(server.url), tmp_path) == CONTENT


def test_two_versions_of_a_file_are_never_joined(server: Server, tmp_path: Path) -> None:
    old = CONTENT[:2] + CONTENT[:1:-1]
    server.answers = [serve(old, stop_after=2**17, etag='"old"'), serve(etag='"new"')]
    assert get(source(server.url, sha256=None), tmp_path) == CONTENT


def test_without_validator_and_checksum_a_download_begins_anew(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(stop_after=2**17, etag=""), serve(etag="")]
    assert get(source(server.url, sha256=None), tmp_path) == CONTENT
    assert "Range" not in server.requests[1]


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "file.gz.part").write_bytes(CONTENT * 2)
    server.answers = [serve()]
    assert get(source(server.url), tmp_path) == CONTENT


@pytest.mark.parametrize("status", [500, 503, 429])
def test_passing_trouble_is_waited_out(server: Server, tmp_path: Path, status: int) -> None:
    server.answers = [refuse(status), refuse(status), serve()]
    assert get(source(server.url), tmp_path) == CONTENT
    assert len(server.requests) == 3


def test_lasting_trouble_ends_with_the_reason(server: Server, tmp_path: Path) -> None:
    server.answers = [refuse(500)]
    with pytest.raises(DownloadError, match=r"gave up after 3 attempts \(the server answered 500"):
        get(source(server.url), tmp_path, attempts=3)
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_not_repeated_and_says_what_to_do(server: Server, tmp_path: Path, status: int) -> None:
    server.answers = [refuse(status)]
    with pytest.raises(DownloadError, match=rf"answered {status}(.|\n)*by hand from https://example\.org/page"):
        get(source(server.url), tmp_path)
    assert len(server.requests) == 1


def test_a_mirror_helps_when_the_first_address_refuses(server: Server, tmp_path: Path) -> None:
    server.answers = [refuse(403), serve()]
    assert get(source(server.url, f"{server.url}?mirror"), tmp_path) == CONTENT
    assert server.requests[1]["path"].endswith("?mirror")


def test_a_file_damaged_on_the_way_is_fetched_again(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(CONTENT[:-1] + b"!"), serve()]
    assert get(source(server.url), tmp_path) == CONTENT


def test_a_file_that_stays_wrong_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(CONTENT[:-1] + b"!")]
    with pytest.raises(DownloadError, match="does not match the known hash"):
        get(source(server.url), tmp_path)
    assert os.listdir(tmp_path / "test") == []


def test_a_damaged_file_in_the_folder_is_replaced(server: Server, tmp_path: Path) -> None:
    server.answers = [serve()]
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "file.gz").write_bytes(b"rubbish")
    assert get(source(server.url), tmp_path) == CONTENT


def test_an_error_page_is_not_taken_for_data(server: Server, tmp_path: Path) -> None:
    server.answers = [serve(b"<html>Too many queries</html>")]
    with pytest.raises(DownloadError, match=r"not a gzip file; it begins with b'<html>Too many"):
        get(source(server.url, sha256=None), tmp_path)
    assert os.listdir(tmp_path / "test") == []


def test_no_server_at_all_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="gave up after 2 attempts"):
        get(source("http://127.0.0.1:9/file.gz"), tmp_path, attempts=2)


def test_an_archive_is_unpacked_beside_the_download(server: Server, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("folder/data.txt")
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"data"))
    server.answers = [serve(packed.getvalue())]
    what = source(server.url, sha256=None, unpack_to="test/unpacked")
    for _ in range(2):
        [folder] = fetch(what, tmp_path, progress=False)
        assert (folder / "folder" / "data.txt").read_bytes() == b"data"
    assert len(server.requests) == 1


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no data set 'minst'; there are mnist, quasar, microbiome, sepsis"):
        fetch("minst", tmp_path)


def test_every_source_says_where_it_comes_from_and_under_which_terms() -> None:
    for name, entry in SOURCES.items():
        assert entry.name == name
        assert entry.licence
        assert entry.citation
        for file in entry.files:
            assert file.path.startswith(f"{entry.folder}/")
            assert all(url.startswith("https://") for url in file.urls)


def test_the_skyserver_address_carries_the_papers_filters() -> None:
    parts = urlsplit(skyserver_url(limit=50_000))
    arguments = parse_qs(parts.query)
    assert arguments["format"] == ["csv"]
    [query] = arguments["cmd"]
    assert query.startswith("SELECT TOP 50000 ")
    for condition in ("s.zWarning = 0", "p.clean = 1", "p.mode = 1", "p.r BETWEEN 14 AND 22"):
        assert condition in query


def test_verify_tells_right_wrong_missing_and_unknown_files_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    server.answers = [serve()]
    known = source(server.url)
    monkeypatch.setattr(fetch_module, "SOURCES", {"test": known, "mnist": SOURCES["mnist"]})
    get(known, tmp_path)
    (tmp_path / "test" / "other.txt").write_text("?")
    (tmp_path / "test" / "wrong.txt").write_text("changed")
    with (tmp_path / "SHA256SUMS").open("a") as file:
        file.write(f"{'0' * 64} *test/wrong.txt\n{'0' * 64}  ./test/gone.txt\n")
    states = {finding.path: finding.state for finding in verify(tmp_path)}
    assert states == {
        "test/file.gz": "checksum right",
        "test/gone.txt": "missing",
        "test/other.txt": "unknown",
        "test/wrong.txt": "checksum wrong",
        "mnist": "missing",
    }


def test_a_checksum_file_cannot_point_outside(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  ../secret\n")
    with pytest.raises(ValueError, match="SHA256SUMS, line 1"):
        verify(tmp_path)


def test_the_cache_folder_is_the_one_that_was_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EBER_DATA", str(tmp_path))
    assert default_data_dir() == tmp_path
    monkeypatch.delenv("EBER_DATA")
    assert "eber" in default_data_dir().parts


def test_the_real_files_are_all_right(data_dir: Path) -> None:
    findings = verify(data_dir)
    assert len(findings) >= 11
    assert {finding.state for finding in findings} == {"checksum right"}


def test_verify_names_what_an_interrupted_download_left_undone(tmp_path: Path) -> None:
    first, *others = SOURCES["mnist"].files
    (tmp_path / first.path).parent.mkdir()
    (tmp_path / first.path).write_bytes(b"")
    (tmp_path / "sepsis").mkdir()
    (tmp_path / "sepsis" / "training_setA.zip.part").write_bytes(b"PK")
    states = {finding.path: finding.state for finding in verify(tmp_path)}
    assert {states[file.path] for file in others} == {"missing"}
    assert states["sepsis/training_setA.zip.part"] == "unfinished"
    assert states["sepsis"] == "missing"


class Endless:
    """A server's answer that never ends."""

    status_code, url, headers = 200, "https://example.org/file", {"Content-Length": ""}

    def iter_content(self, size: int) -> Any:
        while True:
            yield b"x" * size


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"max_bytes": 100_000, "max_seconds": 1.0}, "larger than"), ({"max_seconds": 0.1}, "not fin")],
)
def test_a_download_without_end_is_given_up(limits: dict[str, Any], message: str, tmp_path: Path) -> None:
    downloader = ResumingDownloader(tmp_path / "part", checked=True, attempts=1, backoff=0, **limits)
    with pytest.raises(DownloadError, match=message):
        downloader._receive(Endless(), 0)
    assert (tmp_path / "part").exists() == ("max_bytes" not in limits)
