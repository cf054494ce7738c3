"""The page of promises names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINE = re.compile(r"^- .*: `(tests/\S+\.py)::(test_\w+)`$")


def test_every_promise_names_a_test_that_exists() -> None:
    lines = [line for line in (ROOT / "docs" / "promises.md").read_text().splitlines() if line.startswith("- ")]
    assert len(lines) > 30
    for line in lines:
        found = LINE.match(line)
        assert found, f"no test is named in: {line}"
        path, name = found.groups()
        functions = [
            node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, f"{path} has no {name}"
