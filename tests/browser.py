"""Opening a page in a real browser."""

from __future__ import annotations

import html
import json
import re
import resource
import shutil
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

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
        assert _words(html.unescape(title)) in printed, title


def answer_of(page: Path, scratch: Path, script: str, width: int = 1300) -> Any:
    """What a script says in the page of a browser window so wide, when the charts are drawn.

    Parameters
    ----------
    script : str
        The body of a function that returns something for JSON.
    """
    asked = scratch / "asked.html"
    asking = (
        '<script>addEventListener("load", () => setTimeout(() => { document.documentElement.dataset.answer = '
        f"JSON.stringify((() => {{ {script} }})()); }}, 500));</script></body>"
    )
    asked.write_text(page.read_text().replace("</body>", asking))
    dom = _browse(asked, scratch, "--virtual-time-budget=10000", "--dump-dom", f"--window-size={width},900")
    found = re.search(r'data-answer="(.*?)"', dom, flags=re.DOTALL)
    assert found
    return json.loads(html.unescape(found[1]))


def filled_sheets(page: Path, scratch: Path) -> list[float]:
    """How far down text reaches on each printed sheet, as a share of its height."""
    pdf = scratch / "sheets.pdf"
    _browse(page, scratch, "--virtual-time-budget=10000", "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    shares = []
    for sheet in PdfReader(pdf).pages:
        heights: list[float] = []

        def note(
            text: str, current: list[float], matrix: list[float], *_: object, found: list[float] = heights
        ) -> None:
            if text.strip():
                found.append(current[3] * matrix[5] + current[5])

        sheet.extract_text(visitor_text=note)
        shares.append(1 - min(heights) / float(sheet.mediabox.height))
    return shares


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
        preexec_fn=_lift_limit_of_memory,
    )
    assert "CONSOLE" not in browser.stderr
    return browser.stdout


def _lift_limit_of_memory() -> None:
    """A browser reserves far more addresses than memory, so it does not start where `make sabotage` bounds them."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _words(text: str) -> str:
    """Without blanks, which a PDF need not hold, and without ligatures, which its fonts may have made of letters."""
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text))
