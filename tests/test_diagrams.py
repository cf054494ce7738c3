"""The diagrams of the documentation are those that their program draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PROGRAM = runpy.run_path(str(DOCS / "diagrams.py"))


@pytest.mark.parametrize("name", PROGRAM["DIAGRAMS"])
def test_each_diagram_is_kept_and_shown(name: str, tmp_path: Path) -> None:
    PROGRAM["main"](tmp_path)
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert drawn.startswith("<?xml")
    assert len(drawn) > 5000
    assert (DOCS / "figures" / f"{name}.svg").exists()
    assert f"figures/{name}.svg" in (DOCS / "method.md").read_text()
