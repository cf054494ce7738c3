"""Checks a built site: every link and picture inside it exists, and no page asks for anything from another host.

``python docs/check_site.py build/site`` prints what is wrong and ends with 1, or says how many links it has followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches unasked."""
HARMLESS = ("canonical", "next", "prev", "index", "search", "author", "copyright")
"""Kinds of <link> that are not fetched."""


class Page(HTMLParser):
    """The places of a page that can be linked to, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        given = dict(attrs)
        self.places |= {value for name, value in attrs if name in ("id", "name") and value}
        fetched = tag != "link" or given.get("rel") not in HARMLESS
        for name, value in attrs:
            if value and (tag, name) in LOADED and fetched:
                self.loaded.append(value)
            elif value and name == "href":
                self.links.append(value)


def problems(site: Path) -> tuple[list[str], int]:
    """What is wrong, in sentences, and how many links inside the site were followed."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    found: list[str] = []
    followed = 0
    for path, page in pages.items():
        shown = path.relative_to(site)
        found += [f"{shown} loads {url}" for url in page.loaded if urlsplit(url).netloc]
        for url in [*page.links, *page.loaded]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{shown} links to {url}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{shown} links to {url}, a place that is not on that page")
    return found, followed


def main(site: Path) -> int:
    """Print what is wrong."""
    found, followed = problems(site.resolve())
    print(*(found or [f"{followed} links inside the site lead somewhere; nothing is loaded from elsewhere."]), sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
