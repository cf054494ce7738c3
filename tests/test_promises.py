"""The page of promises names tests that exist, and each of them is known to fail when its promise is broken."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.sabotage.catalogue import SABOTAGES

ROOT = Path(__file__).parent.parent
LINE = re.compile(r"^- .*: `(tests/\S+\.py)::(test_\w+)`$")


def promises() -> list[tuple[str, str]]:
    """File and name of the test of every promise."""
    lines = [line for line in (ROOT / "docs" / "promises.md").read_text().splitlines() if line.startswith("- ")]
    found = [LINE.match(line) for line in lines]
    assert all(found), f"no test is named in: {[line for line, match in zip(lines, found, strict=True) if not match]}"
    return [(match[1], match[2]) for match in found if match]


def test_every_promise_names_a_test_that_exists() -> None:
    assert len(promises()) > 30
    for path, name in promises():
        functions = [
            node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, f"{path} has no {name}"


def test_every_promise_has_a_sabotage_and_every_sabotage_breaks_a_promise() -> None:
    assert {sabotage.promise for sabotage in SABOTAGES} == {f"{path}::{name}" for path, name in promises()}


def test_every_sabotage_still_finds_what_it_changes() -> None:
    """`make sabotage` sees that each is noticed; here only that none of them has come to change nothing."""
    for sabotage in SABOTAGES:
        changed = ast.parse(sabotage.content(ROOT))  # refuses a text that does not stand in the file exactly once
        assert ast.dump(changed) != ast.dump(ast.parse(sabotage.path(ROOT).read_text())), sabotage.broken
    assert len({(s.test, s.file, s.before, s.after) for s in SABOTAGES}) == len(SABOTAGES), "no two are one"
