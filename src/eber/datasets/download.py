"""Downloads that go on where they broke off."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eber.datasets.checks import optional_module

_CHUNK = 2**14
# The server may well answer the same request later.
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_MAX_WAIT = 60.0
MAX_BYTES = 4 << 30
"""Of a file; the largest that is asked for has some hundred megabytes."""
MAX_SECONDS = 6 * 3600.0
"""For a file, however slowly it drips."""


class DownloadError(RuntimeError):
    """A file could not be downloaded, or what came is not what was asked for."""


class _PassingTroubleError(Exception):
    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class ResumingDownloader:
    """A downloader for pooch that keeps what has arrived and asks only for the rest.

    The bytes go to `part` first. It outlives the process, so that the next one can go on with it; beside it stands the
    server's validator (ETag or date), by which the server tells whether its file is still the same. A part is never
    continued when neither validator nor checksum could show that two different files were joined.

    Parameters
    ----------
    part : Path
        File for what has arrived.
    checked : bool
        Whether a checksum will be compared afterwards.
    attempts : int
        Requests before giving up.
    backoff : float
        Seconds to wait after the first failure, doubled after each further one.
    report : callable
        Told the bytes that are there and, where known, the bytes in all.
    timeout : pair of float
        Seconds to wait for a connection, and for the next bytes.
    max_bytes, max_seconds
        A file that is larger, or takes longer in one go, is given up.
    """

    def __init__(
        self,
        part: Path,
        *,
        checked: bool,
        attempts: int,
        backoff: float,
        report: Callable[[int, int | None], None] = lambda done, total: None,
        timeout: tuple[float, float] = (20.0, 60.0),
        max_bytes: int = MAX_BYTES,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        self.part = part
        self.validator_file = part.with_name(f"{part.name}.validator")
        self.checked = checked
        self.attempts = attempts
        self.backoff = backoff
        self.report = report
        self.timeout = timeout
        self.max_bytes, self.max_seconds = max_bytes, max_seconds
        self._deadline = time.monotonic() + max_seconds

    def __call__(self, url: str, output_file: str, pooch: Any, check_only: bool = False) -> None:
        """Download `url` into `output_file`; the signature is pooch's."""
        trouble = _PassingTroubleError("no attempt was allowed")
        self._deadline = time.monotonic() + self.max_seconds
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(max(self.backoff * 2 ** (attempt - 1), trouble.wait))
            try:
                self._get_rest(url)
                break
            except _PassingTroubleError as error:
                trouble = error
        else:
            raise DownloadError(
                f"{url}: gave up after {self.attempts} attempts ({trouble}). Run the same again later: it goes on with "
                f"the {self._size()} bytes in {self.part}."
            )
        os.replace(self.part, output_file)
        self.validator_file.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove what has arrived."""
        self.part.unlink(missing_ok=True)
        self.validator_file.unlink(missing_ok=True)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _get_rest(self, url: str) -> None:
        requests = optional_module("requests", "to download data")
        exceptions = requests.exceptions
        validator = self.validator_file.read_text() if self.validator_file.exists() else ""
        if not (validator or self.checked):
            self.forget()
        have = self._size()
        headers = {"Accept-Encoding": "identity", "User-Agent": "eber"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if validator:
                headers["If-Range"] = validator
        try:
            with requests.get(url, headers=headers, stream=True, timeout=self.timeout) as response:
                self._check_status(response, url)
                self._receive(response, have)
        except (exceptions.ConnectionError, exceptions.Timeout, exceptions.ChunkedEncodingError) as error:
            raise _PassingTroubleError(str(error)) from error
        except exceptions.RequestException as error:
            raise DownloadError(f"{url}: {error}") from error

    def _check_status(self, response: Any, url: str) -> None:
        status = response.status_code
        if status in _PASSING:
            wanted = response.headers.get("Retry-After", "")
            wait = min(float(wanted), _MAX_WAIT) if wanted.isdigit() else 0.0
            raise _PassingTroubleError(f"the server answered {status} {response.reason}", wait)
        if status == 416:
            # The part is as long as the server's file, or longer, and cannot be continued.
            self.forget()
            raise _PassingTroubleError("the server has no more bytes than are here")
        if status not in (200, 206):
            raise DownloadError(
                f"{url}: the server answered {status} {response.reason}. The file may have moved, or the server may "
                "not serve this machine."
            )

    def _receive(self, response: Any, have: int) -> None:
        if response.status_code == 206:
            start = response.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
            if start != str(have):
                self.forget()
                raise _PassingTroubleError(f"the server went on at byte {start or '?'} instead of {have}")
        else:
            have = 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        etag = response.headers.get("ETag", "")
        # A weak ETag promises the same meaning, not the same bytes.
        validator = response.headers.get("Last-Modified", "") if not etag or etag.startswith("W/") else etag
        self.validator_file.write_text(validator)
        with self.part.open("ab" if have else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                if file.tell() + len(chunk) > self.max_bytes or (total or 0) > self.max_bytes:
                    self.forget()
                    raise DownloadError(
                        f"{response.url}: the file is larger than the {self.max_bytes} bytes it may have."
                    )
                if time.monotonic() > self._deadline:
                    raise DownloadError(
                        f"{response.url}: not finished after {self.max_seconds:g} seconds. Run the same again: it goes "
                        f"on with what is in {self.part}."
                    )
                file.write(chunk)
                self.report(file.tell(), total)
        if total is not None and self._size() < total:
            raise _PassingTroubleError(f"the connection ended after {self._size()} of {total} bytes")
