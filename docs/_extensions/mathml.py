"""Formulas as MathML, which browsers draw themselves: no script, no font and no network is needed.

docutils has the converter; Sphinx lets an extension say how its nodes for mathematics are written.
"""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator


def formula(node: nodes.Element, *, display: bool) -> str:
    """The formula of a node; one that cannot be converted ends the build and is named."""
    text = node.astext().strip()
    if display and r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    try:
        return tex2mathml(text, as_block=display)
    except MathError as error:
        raise ExtensionError(f"{node.source}:{node.line}: {error} In the formula: {text}") from error


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula within a line."""
    self.body.append(formula(node, display=False))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula by itself, with its number and a link to it where it has a label."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(formula(node, display=True))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Tell Sphinx of it; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
