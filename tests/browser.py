"""Opening a page in a real browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def assert_shown_and_printed(page: Path, scratch: Path) -> None:
    """The browser shows the page without a word on its console and prints it to PDF."""
    pdf = scratch / "page.pdf"
    browser = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            f"--user-data-dir={scratch / 'profile'}",
            f"--print-to-pdf={pdf}",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in browser.stderr
    assert pdf.read_bytes().startswith(b"%PDF")
