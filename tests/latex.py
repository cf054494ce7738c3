"""LaTeX, compiled where there is a TeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no TeX here")

BEFORE = r"""\documentclass{article}
\usepackage{booktabs,graphicx}
\let\shrink\resizebox
\renewcommand{\resizebox}[3]{\sbox0{#3}\typeout{Natural width \the\wd0 \space of \the\linewidth.}\shrink{#1}{#2}{#3}}
\begin{document}
"""
SMALLEST = 0.8
"""Tables are set in 8 points; shrunk by less than this they still have more than 6."""


def assert_compiles_and_fits(tables: str, folder: Path) -> None:
    """Compile tables in a plain article: no error, nothing wider or higher than the page, no label twice, and no table
    shrunk until nobody can read it.
    """
    (folder / "tables.tex").write_text(f"{BEFORE}{tables}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    for complaint in ("Overfull", "Float too large", "multiply defined", "Missing character"):
        assert complaint not in done.stdout, done.stdout
    widths = re.findall(r"Natural width ([\d.]+)pt of ([\d.]+)pt", done.stdout)
    assert len(widths) == tables.count(r"\begin{tabular}") > 0
    for natural, line in widths:
        assert float(line) / float(natural) >= SMALLEST, f"a table of {natural} points in a line of {line}"
