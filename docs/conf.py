"""How the site is built: `make docs`, offline, with warnings as errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

import eber

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project, author = "eber", "the eber developers"
copyright = author  # the name that Sphinx knows
version = release = eber.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["site", "gallery/*.py", "gallery/*.ipynb"]
default_role = "code"  # single back quotes in docstrings are names of things

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("eber",),
    "reference_url": {"eber": None},
    "abort_on_example_error": True,
    "min_reported_time": 3,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"eber {release}"
html_static_path = ["_static"]
html_css_files = ["eber.css"]
html_math_renderer = "mathml"
html_copy_source = html_show_sourcelink = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "eber"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

doctest_global_setup = "import warnings; warnings.simplefilter('ignore')"

OUTSIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages that live above this folder, and the pages here that include them."""


def stay_inside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links from a page to a file above this folder lead to the page that includes it."""
    for above, here in OUTSIDE.items():
        up = "../" * docname.count("/")
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(above)}", f"]({up}{here}", source[0])


def stay_inside_included(app: Sphinx, relative_path: Path, parent: str, content: list[str]) -> None:
    """In an included page, links are those of the folder above."""
    content[0] = re.sub(r"\]\(docs/", "](", content[0])
    for above, here in OUTSIDE.items():
        content[0] = content[0].replace(f"]({above}", f"]({here}")


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("source-read", stay_inside)
    app.connect("include-read", stay_inside_included)
