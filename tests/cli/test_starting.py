"""Help is there at once, and whole on a narrow terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMMANDS = ("", "compare", "fit", "predict", "report", "example", "reproduce", "data", "data list", "data fetch")
HEAVY = {"torch", "sklearn", "pandas", "pyarrow", "matplotlib", "scipy", "numpy", "plotly"}
"""What takes seconds to import."""
ASK = """
import sys
from eber.cli import main
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def ask(*arguments: str, columns: int = 80) -> tuple[str, set[str]]:
    """What a command prints in a process of its own, and the packages that it has imported for it."""
    command = [sys.executable, "-c", ASK, *arguments]
    environment = {**os.environ, "COLUMNS": str(columns)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    return done.stdout, set(done.stderr.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import eber, sys; dir(eber); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    imported = {name.partition(".")[0] for name in done.stdout.split()}
    assert "eber" in imported
    assert not imported & HEAVY


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_nothing_heavy(command: str) -> None:
    text, imported = ask(*command.split(), "--help")
    assert "Usage: " in text
    assert "typer" in imported, "the list is of what was imported"
    assert not imported & HEAVY


def test_versions_are_said_without_importing_what_they_are_of() -> None:
    text, imported = ask("--version")
    assert text.startswith("eber 0.")
    for name in ("Python 3.", "torch ", "numpy ", "scikit-learn ", "pandas "):
        assert name in text
    assert not imported & HEAVY


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_whole_on_a_narrow_terminal(command: str, columns: int) -> None:
    text, _ = ask(*command.split(), "--help", columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "--help" in text
    assert not set(text) & set("│┃╭─━"), "no frame, in whose cells words are cut"
    assert "…" not in text
    assert "..." not in text.replace("[ARGS]...", "").replace("names...", "").replace("NAMES...", "").replace(
        "{names}...", ""
    ).replace("0, 1, ...", ""), "nothing is cut"
