"""The little Markdown that texts of a report may have: `code` and *emphasis*."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_MARKED = re.compile(r"`([^`]+)`|\*(\S|\S[^*]*\S)\*")


def inline_markup(text: str) -> Markup:
    """The text of a paragraph as HTML; whatever else it holds is escaped."""
    return Markup(_MARKED.sub(_tagged, str(escape(text))))


def _tagged(found: re.Match[str]) -> str:
    return f"<code>{found[1]}</code>" if found[1] else f"<em>{found[2]}</em>"
