"""LaTeX, compiled where there is a TeX."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no TeX here")

BEFORE = "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n"


def assert_compiles_and_fits(tables: str, folder: Path) -> None:
    """Compile tables in a plain article: no error, nothing wider or higher than the page, no label twice."""
    (folder / "tables.tex").write_text(f"{BEFORE}{tables}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    for complaint in ("Overfull", "Float too large", "multiply defined", "Missing character"):
        assert complaint not in done.stdout, done.stdout
