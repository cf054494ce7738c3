"""What results look like: text of 80 columns, and HTML that is whole and runs nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any


class _Whole(HTMLParser):
    """Sees that every element is closed where it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_fits_80_columns(result: Any) -> str:
    """The plain text of a result."""
    text = repr(result)
    assert max(map(len, text.splitlines())) <= 80, text
    assert "\x1b" not in text
    return text


def assert_harmless_html(result: Any) -> str:
    """The HTML of a result."""
    html = str(result._repr_html_())
    parser = _Whole()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert "script" not in parser.seen
    assert "http" not in html
    assert "#" not in html.partition("</style>")[0], "colours are those of the page around it, light or dark"
    return html
