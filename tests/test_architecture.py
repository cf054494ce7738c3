"""The house is as it is drawn: imports go down only, few modules lie on the top level, tests mirror the rooms."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "eber"
MAX_TOP_MODULES = 6


def rooms(folder: Path) -> set[str]:
    """Names of the packages in a folder."""
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def import_linter(root: Path) -> tuple[bool, str]:
    """Whether import-linter finds the layers of a tree's pyproject.toml kept, and what it says.

    In a process of its own, so that the tree that is asked for is looked at and not the one that is imported here.
    """
    command = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return done.returncode == 0, done.stdout


def planted(folder: Path, module: str, line: str) -> Path:
    """A copy of the tree in which a module ends in one more line."""
    shutil.copytree(PACKAGE, folder / "src" / "eber", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    with (folder / "src" / "eber" / module).open("a") as file:
        file.write(f"{line}\n")
    return folder


def test_imports_go_down_only() -> None:
    kept, said = import_linter(ROOT)
    assert kept, said


def test_a_back_edge_is_reported_with_its_line(tmp_path: Path) -> None:
    last = len((PACKAGE / "io" / "text.py").read_text().splitlines())
    kept, said = import_linter(planted(tmp_path, "io/text.py", "import eber.report.tables"))
    assert not kept
    assert f"eber.io.text -> eber.report.tables (l.{last + 1})" in said


def test_a_room_that_is_not_drawn_is_refused(tmp_path: Path) -> None:
    (tree := planted(tmp_path, "io/text.py", "")).joinpath("src", "eber", "attic.py").write_text('"""Old things."""\n')
    kept, said = import_linter(tree)
    assert not kept
    assert "attic" in said


def test_few_modules_lie_on_the_top_level() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MAX_TOP_MODULES


def test_every_room_has_its_tests() -> None:
    assert len(rooms(PACKAGE)) > 10
    for room in rooms(PACKAGE):
        assert list((ROOT / "tests" / room).rglob("test_*.py")), f"there are no tests/{room} for src/eber/{room}"


def test_the_map_of_the_readme_shows_the_layers_from_the_top() -> None:
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    names = [layer.strip("()") for layer in contract["layers"]]
    drawn = re.findall(r"^  (\w+)(?:/|\.py) ", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert drawn == [name for name in names if name in drawn], "in the order of the layers, each once"
    assert rooms(PACKAGE) <= set(drawn)
    assert {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"} <= set(drawn)
