"""What a build of the site would notice late: pages can be reached, public names are listed, pictures are shown."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import eber

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PICTURES = runpy.run_path(str(DOCS / "pictures.py"))


def test_the_reference_lists_every_public_name() -> None:
    """A name that does not exist ends the build."""
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api.md").read_text(), flags=re.MULTILINE))
    assert set(eber.__all__) - {"__version__", "PAPER_FORM"} <= listed
    assert "eber.PAPER_FORM" in (DOCS / "api.md").read_text()


def test_every_page_is_in_a_list_of_contents() -> None:
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    listed = {"index", "guide/index"}
    for name in ("index", "guide/index", "theory", "project"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / f"{name}.md").read_text(), flags=re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {str((DOCS / name).parent.joinpath(entry).resolve().relative_to(DOCS)) for entry in entries}
    listed -= {page for page in listed if page.startswith("gallery/")}  # written by the build
    assert listed == {page for page in pages if not page.startswith(("gallery/", "generated/"))}


@pytest.mark.parametrize("name", PICTURES["PICTURES"])
def test_each_picture_is_kept_and_shown(name: str, tmp_path: Path) -> None:
    PICTURES["PICTURES"][name]().savefig(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 5000
    assert (DOCS / "figures" / f"{name}.svg").exists()
    shown = [page for page in DOCS.rglob("*.md") if f"figures/{name}.svg" in page.read_text()]
    assert len(shown) == 1


def test_the_pictures_keep_what_they_say() -> None:
    """The marginal rule is the mean of the environments' rules under p(e|x), and that of a pooled classifier."""
    place, noise, x = PICTURES["Place"], 1.0, np.linspace(-2, 2, 5)
    places = [place("A", -1.0), place("B", 2.0)]
    p_e, p_y = PICTURES["marginal"](places, x, noise)
    np.testing.assert_allclose(p_e.sum(1), 1)
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(one.mean, one.spread, 400_000) for one in places])
    rows, labels = z + rng.normal(0, noise, len(z)), rng.random(len(z)) < PICTURES["steep"](z)
    near = np.abs(rows[:, None] - x) < 0.1
    np.testing.assert_allclose([labels[column].mean() for column in near.T], p_y, atol=0.02)
