"""The same figure is the same file, and looks the same whatever style the user has."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from eber.report.figures import INK, inline_svg, save_figure, style
from eber.runs.figure import ReportFigure


def draw() -> Figure:
    with style():
        figure = Figure()
        axes = figure.subplots()
        axes.plot([0, 1], [1, 0], label="a line")
        axes.imshow([[0.0, 1.0]])
        axes.set_xlabel("x")
        axes.legend()
    return figure


def test_the_same_figure_gives_the_same_bytes_whatever_the_users_style(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in save_figure(draw(), tmp_path / "first")]
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "savefig.dpi": 10, "svg.hashsalt": None}):
        second = [path.read_bytes() for path in save_figure(draw(), tmp_path / "second")]
    assert first == second
    assert first[0].startswith(b"\x89PNG")


def test_only_the_two_files_are_left(tmp_path: Path) -> None:
    save_figure(draw(), tmp_path / "figures" / "rho=0.1")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["rho=0.1.png", "rho=0.1.svg"]


def test_an_inline_figure_takes_the_pages_ink_and_keeps_its_references(tmp_path: Path) -> None:
    _, svg = save_figure(draw(), tmp_path / "figure")
    element = inline_svg(svg.read_text(), "mine", 'falls from "1" to 0 & <ends>')
    assert INK not in element
    assert "currentColor" in element
    root = ET.fromstring(element)
    assert root.attrib["aria-label"] == 'falls from "1" to 0 & <ends>'
    identifiers = {node.attrib["id"] for node in root.iter() if "id" in node.attrib}
    assert identifiers
    assert all(name.startswith("mine-") for name in identifiers)
    for node in root.iter():
        for name, value in node.attrib.items():
            if name.endswith("href") and value.startswith("#"):
                assert value[1:] in identifiers
            if value.startswith("url(#"):
                assert value[5:-1] in identifiers


@pytest.mark.parametrize("name", ["", "../up", "a b", ".hidden"])
def test_a_figures_name_must_be_a_file_name(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be named"):
        ReportFigure(name, Figure(), "", "")
