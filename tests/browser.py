"""Opening a page in a real browser."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pypdf import PdfReader

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

REQUESTS = """<script>
addEventListener("load", () => setTimeout(() => {
  document.documentElement.dataset.requests = performance.getEntriesByType("resource").map((r) => r.name).join(" ");
}, 500));
</script></body>"""


def assert_shown_and_printed(page: Path, scratch: Path) -> None:
    """The browser draws every chart, asks for nothing, has no word on its console, and prints every section."""
    source = page.read_text()
    watched = scratch / "watched.html"
    # Without the policy that forbids requests: it must not be needed.
    watched.write_text(re.sub(r"<meta http-equiv=.*?>", "", source).replace("</body>", REQUESTS))
    dom = _browse(watched, scratch, "--virtual-time-budget=10000", "--dump-dom")
    assert re.findall(r'data-requests="(.*?)"', dom) == [""]
    slots = source.count('<div class="chart"')
    drawn = re.split(r'<div class="chart', dom)[1:]
    assert len(drawn) == slots
    for chart in drawn:
        assert chart.startswith(" js-plotly-plot")
        assert re.search(r'class="(trace |hm")', chart), "a chart without a mark in it"

    pdf = scratch / "page.pdf"
    _browse(page, scratch, f"--print-to-pdf={pdf}")
    printed = _words(" ".join(sheet.extract_text() for sheet in PdfReader(pdf).pages))
    titles = re.findall(r"<h2>(.*?)</h2>", source)
    assert titles
    for title in titles:
        assert _words(html.unescape(title)) in printed


def _browse(page: Path, scratch: Path, *options: str) -> str:
    browser = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1280,900",
            "--enable-logging=stderr",
            f"--user-data-dir={scratch / 'profile'}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in browser.stderr
    return browser.stdout


def _words(text: str) -> str:
    """Without blanks, which a PDF need not hold."""
    return re.sub(r"\s", "", text)
