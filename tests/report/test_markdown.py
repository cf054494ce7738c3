"""Texts of a report: little markup, and everything else escaped."""

from __future__ import annotations

import pytest

from eber.report.markdown import inline_markup


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "plain"),
        ("`eber fit` and *more*", "<code>eber fit</code> and <em>more</em>"),
        ("`a *b* c`", "<code>a *b* c</code>"),
        ("2 * 3 * 4 and env_loss_weight", "2 * 3 * 4 and env_loss_weight"),
        ("<script>`<b>`*<i>*", "&lt;script&gt;<code>&lt;b&gt;</code><em>&lt;i&gt;</em>"),
        ("*a* * b", "<em>a</em> * b"),
    ],
)
def test_code_and_emphasis_are_marked_and_the_rest_is_escaped(text: str, html: str) -> None:
    assert inline_markup(text) == html
